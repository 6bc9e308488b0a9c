"""Commands that tell: list, show, new, bench, doctor, help, and what is said to a word nobody knows."""

import json
from pathlib import Path

import numpy as np
import pytest

from bismut.cli import bench as benchmarks
from bismut.cli.group import figure_names, system_names
from bismut.cli.main import app
from bismut.figures import Figure, FigureTable, figures
from bismut.gallery import entries
from tests.findings import saboteurs

COMMANDS = [str(command.name) for command in app.registered_commands]


def test_the_list_names_every_system(bismut):
    printed = bismut("list").stdout
    assert all(name in printed for name in entries())
    assert [row["name"] for row in json.loads(bismut("list", "--json").stdout)] == list(entries())


def test_show_tells_physics_parameters_and_symmetries(bismut):
    printed = bismut("show", "heavy-top").stdout
    for wanted in (
        "L = ½ w·Iw",
        "inertia  = 1,2,3",
        "sideways = none",
        "vertical: rotation about",
        "VariationalEuler, step 0.01",
        "q (3, 3), velocity (3,)",
        "Sweep     noise, weight",
    ):
        assert wanted in printed
    told = json.loads(bismut("show", "heavy-top", "--json").stdout)
    assert told["parameters"]["weight"] == 3.0
    assert told["symmetries"]["vertical"]["kept"]
    assert (told["start"], told["sweep"]) == ({"q": [[3, 3]], "velocity": [[3]]}, ["noise", "weight"])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("show", "heavy-tpo"), "heavy-top"),
        (("run", "pendulm"), "pendulum"),
        (("run", "oscillator", "--set", "nois=1"), "noise"),
        (("run", "oscillator", "--scheme", "Midpont"), "Midpoint"),
        (("run", "oscillator", "--temperature", "1", "--friction", "1", "--splitting", "BAOBA"), "BAOAB"),
        (("run", "oscillator", "--observe", "enrgy"), "energy"),
        (("run", "oscillator", "--observe", "time_average:enrgy"), "energy"),
        (("run", "oscillator", "--observe", "extrems:energy"), "extremes"),
        (("run", "oscillator", "--sweep", "frequncy=1,2"), "frequency"),
        (("run", "oscillator", "--until", "enrgy=1"), "energy"),
        (("run", "oscillator", "--start", "velocty=1"), "velocity"),
        (("figure", "spring-latice"), "spring-lattice"),
        (("lst",), "list"),
    ],
)
def test_an_unknown_word_ends_with_2_and_suggests_the_nearest(bismut, words, hint):
    found = bismut(*words)
    assert found.exit_code == 2
    assert f"Did you mean '{hint}'?" in found.stderr


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("run", "oscillator", "--set", "noise"), "name=value"),
        (("run", "oscillator", "--set", "noise=much"), "expected a number"),
        (("run", "oscillator", "--steps", "0"), "whole number ≥ 1"),
        (("run", "oscillator", "--steps", "few"), "--steps"),
        (("run", "oscillator", "--friction", "1"), "bath.temperature: missing"),
        (("run", "oscillator", "--temperature", "1", "--friction", "1", "--rate", "1"), "one of friction and rate"),
        (("run", "oscillator", "--temperature", "1", "--friction", "x"), "--friction expects"),
        (("run", "oscillator", "--observe", "a={of=3"), "a table as in a run file"),
        (("run", "oscillator", "--start", "q"), "name=value, as in --start q=0.5"),
        (("run", "oscillator", "--start", "q=[1"), "An array is written as"),
        (("run", "oscillator", "--start", "q=1,2"), "start.q: q has shape (2,)"),
        (("run", "oscillator", "--sweep", "frequency=low,high"), "a list of one or more numbers"),
        (("run", "oscillator", "--until", "energy=0"), "a positive standard error"),
        (("run", "missing.toml"), "no run file"),
        (("run", "missing.py:system"), "bismut new missing.py"),
        (("run", "missing.py"), "file.py:name"),
        (("info", "nowhere"), "There is no result or run at nowhere"),
        (("plot", "nowhere"), "There is no result or run at nowhere"),
        (("figure", "convergence", "--format", "gif"), "png, pdf, svg"),
        (("new", "model.txt"), "my_model.py"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_was_wanted(bismut, words, wanted):
    found = bismut(*words)
    assert found.exit_code == 2
    assert wanted in found.stderr


def test_every_command_has_help_with_an_example(bismut):
    assert {"run", "resume", "verify", "expect", "transport"} < set(COMMANDS)
    for command in COMMANDS:
        found = bismut(command, "--help")
        assert found.exit_code == 0
        assert f"  bismut {command}" in found.stdout


def test_names_for_completion_are_those_of_the_catalogues():
    assert system_names() == list(entries())
    assert figure_names() == [*figures(), "all"]
    assert system_names("heavy") == ["heavy-top", "heavy-top-reduced"]


def test_help_names_every_command_in_a_whole_line(bismut):
    """Nothing a newcomer reads first ends in dots."""
    printed = bismut("--help").stdout
    assert "..." not in printed.partition("Commands:")[2]
    assert all(f"  {command} " in printed for command in COMMANDS)


def test_a_figure_tells_its_numbers_as_json(bismut, monkeypatch):
    """The table, the caption and the files, without anything else on the way."""
    table = FigureTable("numbers", ("method", "value"), [("ours", np.float64(1.5))])
    fake = Figure("fake", "A line", lambda quick, note: note("busy"), _line, lambda _: table, lambda _: table, lambda _: "A caption.")
    monkeypatch.setattr("bismut.figures.figure", lambda name: fake)
    (told,) = json.loads(bismut("figure", "fake", "--json", "--out", "here").stdout)
    assert told["table"] == {"title": "numbers", "columns": ["method", "value"], "rows": [["ours", 1.5]]}
    assert told["files"] == {"picture": "here/fake.png", "data": "here/fake.csv", "words": "here/fake.txt"}
    assert Path("here/fake.png").exists()
    assert [row["name"] for row in json.loads(bismut("figure", "--json").stdout)] == list(figures())


def _line(_):
    import matplotlib.pyplot as plt

    return plt.figure()


def test_doctor_finds_one_step_symplectic(bismut):
    found = bismut("doctor", "--json")
    told = json.loads(found.stdout)
    assert found.exit_code == 0
    assert told["float64"]
    assert told["self_test"]["symplectic_defect"] < told["self_test"]["limit"]
    assert told["compiler"] == {"wrong_rows": 0, "rows": 40_000, "held": True}
    assert told["versions"]["jax"]
    assert told["noise"]["held"]
    assert abs(told["noise"]["variance"] - 1) < 0.05
    assert told["pages"] == "run as WebAssembly, written here without a linker"
    assert {kind: one["engine"] for kind, one in told["engines"].items()} == dict.fromkeys(
        ("bodies with pair energies", "implicit solve", "pendulum", "constraint"), "native"
    )


def test_doctor_ends_with_1_where_xla_computes_what_the_native_engine_should(bismut, monkeypatch):
    monkeypatch.setattr("bismut.cli.doctor._self_test", lambda: 0.0)
    monkeypatch.setattr(
        "bismut.cli.doctor._engines", lambda: {"pendulum": {"engine": "xla", "why": "there is no machine code for call_hi_primitive"}}
    )
    found = bismut("doctor")
    assert found.exit_code == 1
    assert "✗ pendulum: the xla engine computes, because there is no machine code for call_hi_primitive" in found.stdout


def test_doctor_says_where_no_page_can_be_written(bismut, monkeypatch):
    """An LLVM without WebAssembly is no defect: it ends in 0."""
    monkeypatch.setattr("bismut.cli.doctor._self_test", lambda: 0.0)
    monkeypatch.setattr("bismut.cli.doctor._engines", dict)
    monkeypatch.setattr("bismut.engines.native.wasm.available", lambda: False)
    found = bismut("doctor")
    assert found.exit_code == 0
    assert "do not run: this llvmlite writes no WebAssembly" in found.stdout


def test_doctor_ends_with_1_when_the_test_fails(bismut, monkeypatch):
    monkeypatch.setattr("bismut.cli.doctor._self_test", lambda: 1e-3)
    monkeypatch.setattr("bismut.cli.doctor._engines", dict)
    found = bismut("doctor")
    assert found.exit_code == 1
    assert "✗" in found.stdout


def test_doctor_ends_with_1_when_noise_is_too_strong(bismut, monkeypatch):
    """Increments × 1.1, as a generator of another law would draw them."""
    monkeypatch.setattr("bismut.noise.Wiener", saboteurs.Strong)
    monkeypatch.setattr("bismut.cli.doctor._self_test", lambda: 0.0)
    monkeypatch.setattr("bismut.cli.doctor._engines", dict)
    found = bismut("doctor", "--json")
    told = json.loads(found.stdout)
    assert found.exit_code == 1
    assert not told["noise"]["held"]
    assert told["noise"]["variance"] > 1.15
    assert not told["ok"]


def test_doctor_ends_with_1_when_the_compiler_is_wrong(bismut, monkeypatch):
    monkeypatch.setattr("bismut.engines.xla_selfcheck.wrong_rows", lambda: 3616)
    monkeypatch.setattr("bismut.cli.doctor._self_test", lambda: 0.0)
    monkeypatch.setattr("bismut.cli.doctor._engines", dict)
    found = bismut("doctor")
    assert found.exit_code == 1
    assert "✗ compiled sums agree with NumPy: 3616 of 40000 rows are wrong; install another jax" in found.stdout


def test_bench_says_how_where_there_is_no_checkout(bismut, monkeypatch):
    monkeypatch.setattr(benchmarks, "checkout", lambda: None)
    monkeypatch.setattr("bismut.cli.bench.checkout", lambda: None)
    found = bismut("bench")
    assert found.exit_code == 2
    assert "make bench" in found.stderr


def test_bench_runs_what_is_in_the_checkout(bismut, monkeypatch, tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "src" / "bismut").mkdir(parents=True)
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; open('asked', 'w').write(' '.join(sys.argv[1:])); sys.exit(3)")
    assert bismut("bench", "--quick", "--only", "pendulum").exit_code == 3
    assert (tmp_path / "asked").read_text() == "--quick --only pendulum"
