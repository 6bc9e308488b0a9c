"""Runs: what they leave, that a written file repeats them to the bit, and how they end."""

import json
import os
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray

import bismut as bm
from bismut.cli.runs.model import from_file
from bismut.cli.runs.prepare import prepare
from bismut.cli.runs.toml import read
from bismut.errors import BismutError
from bismut.figures.runs import pictures
from bismut.store import read_run

SMALL = ("--steps", 12, "--trajectories", 5, "--seed", 3)


def same(a: str, b: str) -> bool:
    """Whether two runs hold the same numbers."""
    first, second = (read_run(folder).statistics for folder in (a, b))
    return first.identical(second) or all(first[name].to_dataset().equals(second[name].to_dataset()) for name in first.children)


@pytest.mark.long
def test_a_written_run_repeats_itself_to_the_bit(bismut):
    """run NAME ... --write FILE, run FILE and the folder's own run.toml give identical statistics; another seed does not."""
    options = ("--set", "noise=0.7", "--scheme", "Midpoint", "--retraction", "exp", "--step", 0.03, "--observe", "energy,q,p,paths", *SMALL)
    first = bismut("run", "oscillator", *options, "--write", "a.toml", "--out", "a")
    assert first.exit_code == 0, first.stderr
    assert bismut("run", "a.toml", "--out", "b").exit_code == 0
    assert bismut("run", "a/run.toml", "--out", "c").exit_code == 0
    assert bismut("run", "a.toml", "--seed", 4, "--out", "d").exit_code == 0
    assert same("a", "b")
    assert same("a", "c")
    assert not same("a", "d")
    written = tomllib.loads(Path("a.toml").read_text())
    assert written["system"] == {"name": "oscillator", "parameters": {"frequency": 1.0, "noise": 0.7}}
    assert written["scheme"] == {"name": "Midpoint", "retraction": "exp"}


TYPED = (
    *("--start", "q=1.5", "--start", "velocity=-0.5", "--sweep", "frequency=1,2", "--t0", 2, "--until", "energy=10"),
    *("--observe", "energy,time_average:energy", "--observe", 'spread={kind="histogram", of="q", range=[-3, 3], bins=8}'),
    *("--steps", 6, "--trajectories", 9000),
)


def test_all_that_can_be_typed_can_be_written(bismut):
    """Start, sweep, target, t0 and observers: the file reads back to the run that was typed, and the run does what it says."""
    found = bismut("run", "oscillator", *TYPED, "--write", "a.toml", "--out", "a", "--json")
    assert found.exit_code == 0, found.stderr  # stopping early because enough is known is no interruption
    told = json.loads(found.stdout)
    assert "standard errors small enough after" in told["outcome"]
    assert told["observed"]["energy"]["frequency"] == [1.0, 2.0]
    assert np.shape(told["observed"]["energy"]["mean"]) == (2,)
    document, lines = read(Path("a.toml"))
    again = prepare(document, lines)
    assert again.document == document
    assert document["start"] == {"q": 1.5, "velocity": -0.5}
    assert (document["sweep"], document["until"], document["t0"]) == ({"frequency": [1, 2]}, {"energy": 10}, 2.0)
    assert document["observe"]["time_average_energy"] == {"kind": "time_average", "of": "energy"}
    statistics = read_run("a").statistics
    energy = statistics["energy"]["mean"]
    assert energy.dims == ("frequency", "time")
    assert energy["time"].values[0] == 2.0
    assert np.allclose(energy[:, 0], [0.5 * (0.5**2 + k**2 * 1.5**2) for k in (1, 2)])
    assert statistics["final"]["q0"].dims[:2] == ("frequency", "trajectory")
    assert set(json.loads(bismut("plot", "a", "--list", "--json").stdout)) >= {"energy", "energy-sweep", "time_average_energy-sweep", "spread"}
    assert labels_of("a", "energy-sweep")["energy-sweep"] == ("frequency", "mean energy ± 2 standard errors")


def labels_of(folder: str, *names: str) -> dict[str, tuple[str, str]]:
    """What stands beside the axes of some pictures of a run."""
    run, found = read_run(folder), {}
    drawable = pictures(run.statistics, run.provenance["run"], run.provenance["labels"])
    for name in names:
        figure = plt.figure()
        drawable[name].draw(figure)
        found[name] = (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())
        plt.close(figure)
    return found


def test_a_run_is_what_the_library_computes(bismut):
    """The folder holds the statistics of simulate(...) with the same numbers."""
    assert bismut("run", "oscillator", "--observe", "energy", *SMALL, "--out", "a").exit_code == 0
    from bismut.gallery import entry

    scheme = entry("oscillator").scheme(entry("oscillator").system())
    result = bm.simulate(scheme, entry("oscillator").start(scheme), step=0.05, steps=12, trajectories=5, seed=3, observe={"energy": bm.energy})
    assert np.array_equal(bm.load("a")["energy"]["mean"], result.energy.mean)


def test_a_run_leaves_configuration_provenance_and_statistics(bismut):
    found = bismut("run", "oscillator", *SMALL, "--json")
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["folder"] == "output/oscillator"
    run = read_run("output/oscillator")
    assert run.provenance["seed"] == 3
    assert run.provenance["versions"]["jax"]
    assert run.provenance["command"].startswith("bismut")
    assert tomllib.loads(run.configuration)["trajectories"] == 5
    assert set(run.statistics.children) == {"energy", "temperature", "final", "outcome"}
    assert (Path("output/oscillator") / "README.txt").read_text().startswith("A run of bismut")
    printed = bismut("info", "output/oscillator").stdout
    assert "all 5 trajectories finished" in printed
    assert "energy: mean" in printed
    as_json = json.loads(bismut("info", "output/oscillator", "--json").stdout)
    assert as_json["statistics"]["energy"]["arrays"]["mean"] == {"time": 13}
    assert json.loads(bismut("run", "oscillator", *SMALL, "--json").stdout)["folder"] == "output/oscillator-2"
    assert {path.name for path in Path("output").iterdir()} == {"oscillator", "oscillator-2"}
    assert json.loads(bismut("run", "oscillator", *SMALL, "--json", "--overwrite").stdout)["folder"] == "output/oscillator"


def test_an_old_run_is_replaced_only_on_request_and_nothing_else_ever(bismut):
    words = ("run", "oscillator", *SMALL, "--out", "a")
    assert bismut(*words).exit_code == 0
    refused = bismut(*words)
    assert (refused.exit_code, "--overwrite" in refused.stderr) == (2, True)
    assert bismut(*words, "--overwrite").exit_code == 0
    Path("mine").mkdir()
    Path("mine/thesis").write_text("")
    refused = bismut(*words[:-1], "mine", "--overwrite")
    assert (refused.exit_code, "not the folder of a run" in refused.stderr) == (2, True)
    assert Path("mine/thesis").exists()


@pytest.mark.long
def test_pictures_of_whatever_was_observed(bismut):
    Path("run.toml").write_text(
        """steps = 12
trajectories = 5
every = 1
[system]
name = "oscillator"
[bath]
temperature = 0.5
rate = 1.0
splitting = "OBABO"
[observe]
energy.of = "energy"
heat.of = "heat"
spread = { kind = "histogram", of = "q", range = [-3, 3], bins = 8 }
plane = { kind = "histogram", of = [{ name = "q", component = 0 }, { name = "p", component = 0 }], range = [[-3, 3], [-3, 3]], bins = [8, 6] }
shares = { kind = "quantiles", of = "energy" }
memory = { kind = "autocorrelation", of = "p", lags = 5 }
moved = { kind = "mean_squared_displacement", lags = 5 }
crossed = { kind = "section", of = { name = "p", component = 0 }, level = 0.1, at = ["q", "energy"], direction = 0, capacity = 5 }
some = { kind = "paths", trajectories = [0, 4] }
average = { kind = "time_average", of = "energy" }
"""
    )
    found = bismut("run", "run.toml", "--out", "a")
    assert found.exit_code == 0, found.stderr
    wanted = {"energy", "heat", "spread", "plane", "shares", "memory", "moved", "crossed", "some-portrait", "final-portrait", "final-momenta"} | {
        "certificate"
    }
    assert set(json.loads(bismut("plot", "a", "--list", "--json").stdout)) == wanted
    assert bismut("plot", "a").exit_code == 0
    assert {file.stem for file in Path("a/pictures").glob("*.png")} == wanted
    drawn = labels_of("a", "plane", "crossed", "spread", "memory")
    assert drawn["plane"] == ("q[0]", "p[0]")
    assert drawn["crossed"] == ("q", "energy")
    assert drawn["spread"] == ("q", "density")
    assert drawn["memory"] == ("lag τ", "autocorrelation of p")
    assert bismut("plot", "a", "energy", "--format", "svg", "--out", "p").exit_code == 0
    assert [file.name for file in Path("p").iterdir()] == ["energy.svg"]
    refused = bismut("plot", "a", "enrgy")
    assert (refused.exit_code, "Did you mean 'energy'?" in refused.stderr) == (2, True)


def test_orientations_are_drawn_on_the_sphere(bismut):
    found = bismut(
        "run", "free-rigid-body", "--steps", 10, "--trajectories", 2, "--observe", "angular,orientation", "--observe", "paths", "--out", "a"
    )
    assert found.exit_code == 0, found.stderr
    names = ("orientation-sphere", "paths-sphere", "final-sphere")
    assert bismut("plot", "a", *names).exit_code == 0
    assert {file.stem for file in Path("a/pictures").glob("*.png")} == set(names)


def test_a_new_model_runs_at_once(bismut):
    assert bismut("new", "my_model.py").exit_code == 0
    assert bismut("new", "my_model.py").exit_code == 2
    found = bismut("run", "my_model.py:system", *SMALL, "--set", "length=2", "--observe", "energy,height")
    assert found.exit_code == 0, found.stderr
    run = read_run("output/my_model")
    assert {"energy", "height"} <= set(run.statistics.children)
    assert "'length': 2" in run.configuration
    assert (Path("output/my_model") / "model.txt").read_text() == Path("my_model.py").read_text()
    assert bismut("run", "output/my_model/run.toml").exit_code == 2
    refused = bismut("run", "my_model.py:system", "--write", "a.toml")
    assert (refused.exit_code, "cannot execute code" in refused.stderr) == (2, True)
    assert not Path("a.toml").exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = (", "line 1: SyntaxError"),
        ("x = 1\ny = x / 0\n", "line 2: ZeroDivisionError"),
        ("sytem = print\n", "Did you mean 'sytem'?"),
        ("system = 3\n", "must be a System"),
        ("system = print\n", "start(scheme)"),
        ("def system(a): return a\nstart = print\n", "a is missing; it has no default"),
        ("def system(): return 3\nstart = print\n", "must be a System or return one, got int"),
        ("def system(): return 1 / 0\nstart = print\n", "ZeroDivisionError"),
    ],
)
def test_a_wrong_model_is_explained(bismut, text, wanted):
    Path("m.py").write_text(text)
    found = bismut("run", "m.py:system")
    assert found.exit_code == 2
    assert wanted in found.stderr


# Down a quartic hill the state ceases to be finite.
HILL = """
import jax.numpy as jnp, bismut as bm
system = bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.sum(q**4))
start = lambda scheme: scheme.start(jnp.ones(1), velocity=jnp.ones(1))
step = 0.5
"""


def test_failed_trajectories_end_with_1_and_are_kept(bismut):
    Path("hill.py").write_text(HILL)
    found = bismut("run", "hill.py:system", "--steps", 40, "--trajectories", 2, "--out", "a")
    assert found.exit_code == 1
    assert "2 of 2 trajectories failed" in found.stdout
    assert len(read_run("a").provenance["outcome"]["failed"]) == 2


def test_a_dry_run_writes_the_file_and_runs_nothing(bismut):
    found = bismut("run", "oscillator", *SMALL, "--write", "a.toml", "--dry-run")
    assert found.exit_code == 0, found.stderr
    assert "5 trajectories × 12 steps" in found.stdout
    assert [path.name for path in Path().iterdir()] == ["a.toml"]
    assert bismut("run", "oscillator", *SMALL, "--write", "a.toml", "--dry-run").exit_code == 2
    assert json.loads(bismut("run", "oscillator", *SMALL, "--dry-run", "--json").stdout)["plan"]["trajectories"] == 5


def test_three_positions_are_not_taken_for_a_rotation():
    """Positions of three bodies have the shape of a rotation matrix; what turns is told from what moves."""
    ready = prepare({"system": {"name": "magnetic-dipoles"}, "observe": {"axes": {"of": "orientation"}}}, {})
    start = ready.start
    assert isinstance(start, bm.State)
    assert np.allclose(ready.observe["axes"](start), start.q[1][..., 2])
    states = {
        kind: (("trajectory", f"{kind}_0", f"{kind}_1", f"{kind}_2")[: np.ndim(value) + 1], np.asarray(value)[None])
        for kind, value in (("q0", start.q[0]), ("q1", start.q[1]), ("p0", start.p[0]), ("p1", start.p[1]))
    }
    tree = xarray.DataTree.from_dict({"/final": xarray.Dataset(states)})
    how = {"scheme": "", "space": "", "trajectories": 1, "steps": 1, "step": 1.0, "seed": 0}
    found = pictures(tree, how)
    assert set(found) == {"final-portrait", "final-sphere", "final-momenta"}
    assert found["final-sphere"].draw.args[0].keywords["turns"].name == "q1"
    with pytest.raises(BismutError, match="no rotations"):
        prepare({"system": {"name": "oscillator"}, "observe": {"a": {"of": "orientation"}}}, {})


def test_a_model_is_read_as_it_is_written_now(tmp_path):
    """Also when its text changes within the second and the length by which Python knows bytecode, and nothing is written beside it."""
    model, steps = tmp_path / "model.py", []
    for step in ("0.01", "0.02"):
        model.write_text(f"import bismut as bm\nsystem = bm.mechanical(bm.Circle())\nstart = lambda scheme: None\nstep = {step}\n")
        os.utime(model, (1e9, 1e9))
        steps.append(from_file(f"{model}:system").entry.step)
    assert steps == [0.01, 0.02]
    assert list(tmp_path.iterdir()) == [model]


def test_a_run_without_a_bath_keeps_books(bismut, tmp_path):
    """The work of noise is that of the energy, less what the integrator misses: heat is 0, and nothing asks for a bath."""
    found = bismut(
        "run", "oscillator", "--steps", "20", "--trajectories", "2", "--observe", "heat,work,integrator_error", "--out", str(tmp_path / "run")
    )
    assert found.exit_code == 0, found.stderr


@pytest.mark.parametrize(
    "words",
    [
        'oscillator --observe energy,time_average:energy,paths,heat --observe spread={kind="histogram",of="q",range=[-3,3],bins=8}',
        "oscillator --sweep frequency=1,2 --observe energy,autocorrelation:q --no-final",
        "hill.py:system",
    ],
)
def test_a_complete_run_that_is_resumed_answers_as_it_did_when_it_ended(bismut, words):
    """Observed values, certificate, failures and exit code: all but the time it took and what was computed."""
    Path("hill.py").write_text(HILL)
    fails = words.startswith("hill")
    ran = bismut("run", *words.split(), "--steps", "40", "--trajectories", "3", "--out", "run", "--json")
    again = bismut("resume", "run", "--json")
    before, after = (json.loads(found.stdout) for found in (ran, again))
    assert before.pop("computed") > after.pop("computed") == 0
    assert before.pop("seconds") > after.pop("seconds") == 0
    assert after == before
    assert after["ok"] != fails
    assert again.exit_code == ran.exit_code == fails
    assert "complete" in bismut("resume", "run").stdout


def test_a_run_with_a_remark_says_it_wherever_it_is_shown(bismut):
    """Noise beside a bath: in the header, in `info`, and in the certificate in words that are no temperature. The run is complete: it ends in 0."""
    run = bismut("run", "pendulum", "--temperature", 0.5, "--friction", 1, *SMALL, "--out", "hot")
    assert run.exit_code == 0, run.stderr
    for told in (run.stdout, bismut("info", "hot").stdout):
        assert "note: The system's own noise drives it beside the bath" in told
        assert "noise of the system raises kT by 77%" in told
        assert "± 0 kT" not in told


def test_overdamped_motion_is_a_bath_with_a_mobility(bismut):
    """From options, and from the file that they make, to the bit; what does not go together is refused."""
    options = ("--temperature", "1", "--mobility", "0.5", "--steps", "20", "--trajectories", "4")
    assert bismut("run", "pendulum", *options, "--out", "a").exit_code == 0
    table = tomllib.loads(Path("a/run.toml").read_text())
    assert table["bath"] == {"temperature": 1, "mobility": 0.5, "metropolised": False}
    assert bismut("run", "a/run.toml", "--out", "b").exit_code == 0
    assert same("a", "b")
    refused = bismut("run", "pendulum", *options, "--friction", "2", "--out", "c")
    assert refused.exit_code == 2
    assert "mobility is given already" in refused.output
