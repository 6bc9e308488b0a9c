"""Run files: all mistakes at once, each with its line; nothing in them is code."""

import json
import tomllib
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.cli.runs.prepare import prepare
from bismut.cli.runs.starts import started
from bismut.cli.runs.toml import write
from bismut.gallery import entries

BAD = """step = -0.1
stepz = 3
seed = true

[system]
name = "heavy-top"
[system.parameters]
inertia = [1.0, 2.0]
wieght = 3.0
noise = [0.1,
  0.2]
sideways = "none"
[scheme]
name = "Midpont"
[bath]
friction = 1.0
rate = 1.0
[observe.a]
of = "enrgy"
[observe.b]
kind = "histogram"
of = "energy"
range = [3.0, 1.0]
[observe.c]
of = { name = "momentum", symmetry = "vertcal" }
[observe.d]
kind = "paths"
trajectories = [0, 500]
[observe.e]
of = "energy"
bins = 3
[observe.f]
of = { name = "p", component = 7 }
[observe.final]
of = "energy"
[output]
folder = 3
"""

WANTED = {  # line: what is said there
    1: "step: expected a positive number, got -0.1",
    2: "stepz: there is no such key. Did you mean 'step'?",
    3: "seed: expected a whole number ≥ 0, got true",
    8: "expected a list of 3 numbers, as in the default [1.0, 2.0, 3.0], got [1.0, 2.0]",
    9: "Did you mean 'weight'?",
    14: "Did you mean 'Midpoint'?",
    15: "bath.temperature: missing",
    17: "one of friction and rate",
    18: "there is no quantity 'enrgy'. Did you mean 'energy'?",
    23: "observe.b.range: expected (low, high) with low < high",
    24: "no symmetry 'vertcal'. Did you mean 'vertical'?",
    26: "trajectories [500] were requested, but the run has 100",
    31: "observe.e.bins: there is no such key",
    32: "component [7] was requested, but the array has shape (3,)",
    34: "this name is reserved in results",
    37: "output.folder: expected a word in quotation marks, got 3",
}


def test_every_mistake_is_listed_with_its_line(bismut):
    Path("bad.toml").write_text(BAD)
    found = bismut("check", "bad.toml")
    assert found.exit_code == 2
    told = [line for line in found.stderr.splitlines() if line.startswith("  line ")]
    assert [int(line.split()[1].rstrip(":")) for line in told] == list(WANTED)
    for line, wanted in zip(told, WANTED.values(), strict=True):
        assert wanted in line
    as_json = json.loads(bismut("check", "bad.toml", "--json").stdout)
    assert [mistake["line"] for mistake in as_json["mistakes"]] == list(WANTED)


MORE = """t0 = "now"
[system]
name = "heavy-top"
[start]
q = [1.0, 0.0]
velocity = [1.0]
momentum = [1.0]
temprature = 1.0
[sweep]
weigth = [1, 2]
noise = []
[until]
enrgy = 0.1
energy = -1
spread = 0.1
[observe]
energy.of = "energy"
spread = { kind = "histogram", of = "energy", range = [0, 1] }
"""

MORE_WANTED = {
    1: 't0: expected a number, got "now"',
    5: "start.q: q has shape (2,), but SO3() works with rotation matrices (3, 3)",
    6: "start.velocity: velocity has shape (1,), but on SO3() it has shape (3,)",
    7: "start.momentum: velocity is given already",
    8: "start.temprature: there is no such key. Did you mean 'temperature'?",
    10: "no parameter 'weigth' to sweep. Did you mean 'weight'?",
    11: "sweep.noise: expected a list of one or more numbers, got []",
    13: "until.enrgy: 'enrgy' is not observed. Did you mean 'energy'?",
    14: "until.energy: expected a positive standard error, got -1",
    15: "until.spread: this observer has no standard error",
}


def test_starts_sweeps_and_targets_are_checked_against_the_system(bismut):
    Path("more.toml").write_text(MORE)
    found = json.loads(bismut("check", "more.toml", "--json").stdout)["mistakes"]
    assert [mistake["line"] for mistake in found] == list(MORE_WANTED)
    for mistake, wanted in zip(found, MORE_WANTED.values(), strict=True):
        assert wanted in f"{mistake['key']}: {mistake['text']}"


@cache
def on_a_line():
    """A body in the plane whose first coordinate is held, and a start of it."""
    space = bm.Euclidean(2) * bm.SO2()
    scheme = bm.Verlet(bm.mechanical(space, constraint=lambda q: q[0][:1]))
    return scheme, scheme.start(space.origin(), velocity=space.zero())


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        ({"q": [[0.0, 0.0], [[1, 0], [0, 2]]]}, "start.q: q[1] lies off SO2()"),
        ({"q": [[0.0, 0.0], [[1, 0], [0]]]}, "start.q: expected numbers in the shape (2,) and (2, 2)"),
        ({"velocity": [0.0, 0.0, 1.0]}, "start.velocity: expected numbers in the shape (2,) and ()"),
        ({"momentum": [[0.0, 0.0, 0.0], 1.0]}, "start.momentum: momentum has shape (3,)"),
        ({"q": [[[0.0, 0.0]] * 3, [[[1, 0], [0, 1]]] * 3]}, "start: there are starts for 3 trajectories, but the run has 2"),
        ({"velocity": [[1.0, 1.0], 0.0]}, "start: The start velocity leads off the constraints"),
        (
            {"q": [[1.0, 0.0], [[1, 0], [0, 1]]]},
            "start: The start lies off the constraints: |g(q)| is 1 in row 0. project = true brings it onto them",
        ),
    ],
)
def test_a_start_that_is_none_is_refused_in_words(start, wanted):
    scheme, own = on_a_line()
    found = []
    started(scheme, own, {"start": start, "trajectories": 2, "t0": 0.0}, found)
    assert [f"{'.'.join(mistake.path)}: {mistake.text}"[: len(wanted)] for mistake in found] == [wanted]


def test_what_a_start_leaves_out_is_the_model_s_own():
    """q alone keeps the momentum or the temperature, and these alone keep q."""
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=2.0))
    still, warm = scheme.start([0.5], momentum=[1.0]), scheme.start([0.5], temperature=3.0)
    made = lambda own, **start: started(scheme, own, {"start": start, "trajectories": 2, "t0": 0.0}, [])
    assert (float(made(still, q=3.0).q[0]), float(made(still, q=3.0).p[0])) == (3.0, 1.0)
    assert (float(made(still, velocity=[2.0]).q[0]), float(made(still, velocity=[2.0]).p[0])) == (0.5, 4.0)
    assert (float(made(warm, q=3.0).q[0]), float(made(warm, q=3.0).temperature)) == (3.0, 3.0)
    assert float(made(warm, temperature=1.0).q[0]) == 0.5


@pytest.mark.parametrize("name", ["my_model.py:system", "bismut.gallery.heavy_top:heavy_top", "os:system", "../model.py", "heavy_top.heavy_top"])
def test_a_run_file_names_no_code(bismut, name):
    """Neither an import path nor a file is looked at, even where it exists."""
    Path("my_model.py").write_text("open('ran', 'w')")
    Path("run.toml").write_text(f'[system]\nname = "{name}"\n')
    for command in ("check", "run"):
        found = bismut(command, "run.toml")
        assert found.exit_code == 2
        assert "line 2: system.name" in found.stderr
    assert not Path("ran").exists()


def test_keys_that_would_be_code_are_unknown(bismut):
    Path("run.toml").write_text('[system]\nname = "oscillator"\nmodel = "my_model.py:system"\n[observe.a]\nof = "__import__(\'os\')"\n')
    found = bismut("run", "run.toml")
    assert found.exit_code == 2
    assert "line 3: system.model: there is no such key" in found.stderr
    assert "line 4: observe.a: there is no quantity" in found.stderr


def test_what_is_not_toml_is_said_with_its_line(bismut):
    Path("run.toml").write_text("steps = \n")
    found = bismut("check", "run.toml")
    assert found.exit_code == 2
    assert "line 1" in found.stderr


def test_a_right_file_is_planned(bismut):
    Path("run.toml").write_text('steps = 30\ntrajectories = 5\n[system]\nname = "oscillator"\n[observe.p]\nkind = "time_average"\nof = "p"\n')
    found = bismut("check", "run.toml")
    assert found.exit_code == 0, found.stderr
    assert "no mistakes" in found.stdout
    assert "5 trajectories × 30 steps" in found.stdout
    assert not Path("output").exists()
    assert json.loads(bismut("check", "run.toml", "--json").stdout)["plan"]["steps"] == 30


@pytest.mark.parametrize("name", list(entries()))
def test_every_system_is_said_whole_by_its_run_file(name):
    """A run with nothing but a name, written out, reads back to the same document, and that to the same system."""
    ready = prepare({"system": {"name": name}}, {})
    document = tomllib.loads(write(ready.document))
    assert document == ready.document | {"system": document["system"]}
    again = prepare(document, {})
    assert again.document == document
    assert jax.tree.structure(again.scheme.system.parameters) == jax.tree.structure(ready.scheme.system.parameters)
    assert all(map(np.array_equal, *map(jax.tree.leaves, (ready.scheme.system.parameters, again.scheme.system.parameters))))
