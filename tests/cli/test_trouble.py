"""What people meet: terminals that know only ASCII, pipes that close, huge numbers, models that exit; each ends with a sentence, or not at all."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bismut as bm
from bismut.cli.runs.json_summary import observed
from bismut.cli.runs.prepare import prepare
from bismut.cli.runs.toml import lines_of
from bismut.cli.terminal import CLOSED
from bismut.ensembles import Report
from bismut.gallery import entries

ROOT = Path(__file__).parents[2]
SMALL = ("--steps", 4, "--trajectories", 3)


def shell(line: str, **environment: str) -> subprocess.CompletedProcess:
    """A line of bash, with its last exit code that is not 0."""
    known = os.environ | {"PYTHONPATH": str(ROOT / "src"), "BISMUT": f"{sys.executable} -m bismut"} | environment
    return subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], env=known, capture_output=True, text=True, check=False, encoding="utf-8")


def test_ascii_terminals_see_formulas_spelled():
    both = "from bismut.cli.main import app, make_readable; make_readable(); "
    both += "app(['show', 'heavy-top'], standalone_mode=False); app(['list'], standalone_mode=False)"
    found = shell(f'{sys.executable} -c "{both}"', PYTHONIOENCODING="ascii")
    assert found.returncode == 0, found.stderr
    assert found.stdout.isascii()
    assert "gamma" in found.stdout


def test_a_reader_that_has_gone_ends_the_command_without_a_word():
    """The gallery as JSON, fifty times over, into a pipe that nobody reads."""
    text = "from bismut.cli.group import Commands\nimport typer\napp = typer.Typer(cls=Commands)\napp.command('a')(lambda: print('x' * 10**6))\n"
    text += "app.command('b')(lambda: None)\napp(['a'])"
    found = shell(f'{sys.executable} -c "{text}" | true')
    assert found.returncode == CLOSED
    assert found.stderr == ""
    assert shell("$BISMUT list >&-").returncode == 0


@pytest.mark.parametrize("words", [("plot", "a"), ("figure", "ballistic-pendulum", "--quick")])
def test_without_matplotlib_pictures_say_what_to_install(bismut, monkeypatch, words):
    assert words[0] == "figure" or bismut("run", "oscillator", *SMALL, "--out", "a").exit_code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    clock = time.perf_counter()
    found = bismut(*words)
    assert (found.exit_code, "pip install 'bismut[figures]'" in found.stderr) == (2, True)
    assert time.perf_counter() - clock < 5  # before the experiment of the figure, which takes longer


def test_whole_numbers_may_be_typed_with_an_exponent(bismut):
    told = json.loads(bismut("run", "oscillator", "--steps", "4", "--trajectories", "1e6", "--dry-run", "--json").stdout)
    assert told["plan"]["trajectories"] == 1_000_000
    refused = bismut("run", "oscillator", "--trajectories", "1e-3")
    assert refused.exit_code == 2
    assert "expected a whole number such as 1000 or 1e6, got '1e-3'" in " ".join(refused.stderr.split())


# Files.


def test_lines_are_found_in_one_pass():
    """A list of 200 000 numbers in one line: 0.05 s; looking at the rest of the line again for every character took 40."""
    text = f"steps = 3\nx = [{', '.join(['1.5'] * 200_000)}]\ny = '''\n[z]\n''' # ]\n[t]\na = \"]\"\n"
    clock = time.perf_counter()
    assert lines_of(text) == {("steps",): 1, ("x",): 2, ("y",): 3, ("t",): 6, ("t", "a"): 7}
    assert time.perf_counter() - clock < 2


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f"steps = {'9' * 400}", "steps: expected a whole number ≥ 1, got 99999"),
        (f"step = {'9' * 400}", "step: expected a positive number"),
        (f"seed = {'9' * 5000}", "a number that cannot be read"),
        (f"t0 = {'[' * 500}1{']' * 500}", "nested too deeply"),
        (f"t0 = {'[' * 100}1{']' * 100}", "t0: expected a number"),
        (f"start.q = {'[' * 100}1.0{']' * 100}", "start.q: expected a number or lists of numbers"),
        (f"bath.friction = {'[' * 100}1.0{']' * 100}", "bath.friction: expected a number, a list of numbers or a matrix"),
        ("start.q = [1" + "0" * 400 + "]", "start.q: expected a number or lists of numbers"),
        ('observe."".of = "energy"', "expected a name of letters, digits, _ and -"),
        ("sweep.time = [1.0, 2.0]", "called 'time' cannot be swept"),
        ('observe.a = {kind = "time_average", of = "energy", every = 5000}', "looks every 5000 steps, but the run has 1000"),
    ],
)
def test_numbers_nobody_means_are_refused_in_a_sentence(bismut, line, wanted):
    Path("run.toml").write_text(f'{line}\n[system]\nname = "oscillator"\n')
    found = bismut("check", "run.toml")
    assert found.exit_code == 2, found.exception
    assert wanted in found.stderr
    assert max(map(len, found.stderr.splitlines())) < 500


@pytest.mark.parametrize("name", ["oscillator", "heavy-top"])
def test_a_run_file_has_every_default(name):
    kinds = {
        "a": {"kind": "histogram", "of": "q", "range": [-1.0, 1.0]} if name == "oscillator" else {"of": "energy"},
        "b": {"kind": "autocorrelation", "of": "energy"},
        "c": {"kind": "quantiles", "of": "energy"},
        "d": {"kind": "section", "of": "energy", "at": ["energy"]},
    }
    document = prepare({"system": {"name": name}, "observe": kinds}, {}).document
    numbers = {key: document[key] for key in ("steps", "trajectories", "seed", "every", "burn_in", "t0")}
    assert numbers == {"steps": 1000, "trajectories": 100, "seed": 0, "every": 10, "burn_in": 0, "t0": 0.0}
    assert document["scheme"]["name"] == type(entries()[name].scheme(entries()[name].system())).__name__
    assert document["output"] == {"final": True}
    assert name != "oscillator" or document["observe"]["a"]["bins"] == 100
    assert document["observe"]["b"] | {"lags": 100} == document["observe"]["b"]
    assert document["observe"]["c"]["levels"] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert (document["observe"]["d"]["direction"], document["observe"]["d"]["level"]) == (1, 0.0)
    assert prepare({"system": {"name": name}, "bath": {"temperature": 1.0, "rate": 1.0}}, {}).document["bath"]["splitting"] == "BAOAB"


# Results as numbers.


def test_json_gives_numbers_with_errors(bismut):
    told = json.loads(bismut("run", "oscillator", *SMALL, "--observe", "energy,time_average:energy,p", "--out", "a", "--json").stdout)
    energy, average = told["observed"]["energy"], told["observed"]["time_average_energy"]
    kept = bm.load("a/statistics")["energy"]
    assert energy["mean"] == float(kept["mean"][-1])
    assert energy["stderr"] == float(kept["stderr"][-1])
    assert (energy["count"], energy["time"]) == (3, 0.2)
    assert isinstance(average["mean"], float)
    assert isinstance(average["stderr"], float)


def test_json_has_neither_nan_nor_walls_of_numbers():
    mean = np.array([[1.0, 2.0], [np.nan, np.inf]])
    report = Report("x", {"mean": (("time", "x_0"), mean), "large": (("n",), np.zeros(2000))}, {"time": np.array([0, 1])})
    assert observed({"x": report}) == {"x": {"mean": [None, None], "large": {"shape": [2000]}, "time": 1}}


# Models.

MODEL = """from __future__ import annotations
import dataclasses
import bismut as bm, jax.numpy as jnp
{extra}
@dataclasses.dataclass
class Settings:
    stiffness: float = 2.0

def system(length=1.0):
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: Settings().stiffness * jnp.sum(q**2))

def start(scheme):
    {start}scheme.start(jnp.ones(1), velocity=jnp.ones(1))
"""


def test_models_import_what_lies_beside_them_and_have_dataclasses(bismut):
    Path("models").mkdir()
    Path("models/sibling_of_a_model.py").write_text("K = 3.0\n")
    Path("models/random.py").write_text(MODEL.format(extra="from sibling_of_a_model import K", start="return "))
    found = bismut("run", "models/random.py:system", *SMALL, "--observe", "energy", "--out", "a")
    assert found.exit_code == 0, found.stderr


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import sys\nsys.exit(0)\n", "exits the program when it is read"),
        ("def system(): pass\nstart = print\n", "must be a System or return one, got None. Is a return missing?"),
        ("def system(): raise SystemExit\nstart = print\n", "cannot be built: SystemExit"),
        (MODEL.format(extra="", start=""), "start(scheme) must return scheme.start(q, velocity=... | temperature=...), got None"),
        (MODEL.format(extra="scheme = lambda system: None", start="return "), "scheme(system) must return a scheme such as bm.Midpoint(system)"),
        (MODEL.format(extra="step = 'small'", start="return "), "step in m.py must be a positive number, got 'small'"),
    ],
)
def test_a_model_that_ends_or_returns_nothing_is_a_mistake(bismut, text, wanted):
    Path("m.py").write_text(text)
    found = bismut("run", "m.py:system", *SMALL)
    assert found.exit_code == 2
    assert wanted in found.stderr


def test_the_template_s_own_arguments_can_be_swept(bismut):
    assert bismut("new", "my_model.py").exit_code == 0
    found = bismut("run", "my_model.py:system", *SMALL, "--sweep", "length=1,2", "--observe", "energy", "--out", "a")
    assert found.exit_code == 0, found.stderr
    assert np.allclose(bm.load("a/statistics")["energy"]["mean"][:, 0], [-np.cos(1.0), -2 * np.cos(1.0)], rtol=1e-15)
    Path("m.py").write_text(MODEL.format(extra="", start="return "))
    refused = bismut("run", "m.py:system", *SMALL, "--sweep", "length=1,2")
    assert "length is built into the functions of m.py:system. Give it as parameters={'length': length}" in refused.stderr


def test_only_measures_nothing_else(monkeypatch, tmp_path, capsys):
    import benchmarks.__main__ as benchmark

    asked = []
    monkeypatch.setattr(benchmark, "contest", lambda goals, rounds, say: asked.extend(goals) or [])
    monkeypatch.setattr(benchmark, "first_results", lambda *a: pytest.fail("first results were not asked for"))
    for study in ("trajectories", "steps", "bodies"):
        monkeypatch.setattr(benchmark.scaling, study, lambda *a: pytest.fail("a study of scaling was not asked for"))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--only", "pendulum", "--json", str(tmp_path / "a.json")])
    benchmark.main()
    assert {"pendulum" in goal.work for goal in asked} == {True}
    assert "written to" in capsys.readouterr().out


def test_info_marks_numbers_over_survivors(bismut, tmp_path):
    model = tmp_path / "away.py"
    model.write_text(
        "import bismut as bm, jax.numpy as jnp\n"
        "def system():\n    return bm.mechanical(bm.Euclidean(1), potential=lambda q: -(q[0] ** 4), noise=lambda q: 0.7 * q)\n"
        "def start(scheme):\n    return scheme.start(jnp.array([0.3]), velocity=jnp.zeros(1))\n"
    )
    bismut("run", f"{model}:system", "--step", "0.1", "--steps", "60", "--trajectories", "8", "--out", str(tmp_path / "run"))
    line = next(line for line in bismut("info", str(tmp_path / "run")).stdout.splitlines() if line.startswith("  energy:"))
    assert "⚠ over" in line
    assert "failed" in line


def test_what_cannot_be_written_or_read_ends_with_a_sentence(bismut):
    """A folder that is a file, whoever asks; permissions would not stop a superuser, but take the same way."""
    Path("file").write_text("")
    assert bismut("run", "oscillator", *SMALL, "--out", "a").exit_code == 0
    for words in (("new", "file/m.py"), ("plot", "a", "--out", "file/p"), ("export", "a", "--to", "csv", "--out", "file/c"), ("check", "a")):
        found = bismut(*words)
        assert found.exit_code == 2, words
        assert found.stderr.startswith("bismut: "), words
    assert "a/run.toml" in found.stderr
    Path("wind.npy").write_text("")
    Path("r.toml").write_text('[system]\nname = "oscillator"\n[path]\nname = "Recorded"\nfile = "wind.npy"\n')
    found = bismut("check", "r.toml")
    assert (found.exit_code, "wind.npy is not an array of numbers" in found.stderr) == (2, True)


def test_the_run_of_a_model_is_repeated_by_its_command(bismut):
    assert bismut("new", "m.py").exit_code == 0
    assert bismut("run", "m.py:system", *SMALL, "--out", "a").exit_code == 0
    assert "run.toml" not in bismut("info", "a").stdout.splitlines()[-1]
    found = bismut("run", "a/run.toml")
    assert (found.exit_code, "Python model" in found.stderr) == (2, True)
