"""One of each kind from an installed package works wherever one of ours does; a broken package affects no run that does not use it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bismut.registry import REGISTRIES

EXTENSION = Path(__file__).with_name("fieldwork.py")
PUBLISHED = {
    "spaces": "Positive",
    "schemes": "Leaning",
    "splittings": "AOBOA",
    "paths": "Doubled",
    "quantities": "radius",
    "observers": "crossings",
    "pair_energies": "morse",
    "formats": "notes = fieldwork:NOTES",
    "gallery": "bubble = fieldwork:ENTRY",
    "checks": "positive_radius",
    "figures": "breathing = fieldwork:FIGURE",
}
RUN = """steps = 40
trajectories = 16
block = 8
seed = 3
[system]
name = "bubble"
[system.parameters]
pressure = 1.5
[scheme]
name = "Leaning"
share = 0.5
[path]
name = "Doubled"
scale = 0.5
[observe.r]
of = "radius"
[observe.c]
kind = "crossings"
of = { name = "p", component = 0 }
"""


def install(place: Path, name: str, points: dict[str, str], text: str, version: str = "1.2") -> None:
    """A package as pip leaves it: a module, and metadata with entry points."""
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    folder = place / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = (f"[bismut.{group}]\n{line if '=' in line else f'{line} = {name}:{line}'}\n" for group, line in points.items())
    (folder / "entry_points.txt").write_text("\n".join(lines))


def in_process(place: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, where the packages of a folder are installed. `command` runs bismut, and gives what it prints."""
    head = """
import json, sys
from typer.testing import CliRunner
from bismut.cli.main import app
def command(*words, code=0):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, (words, done.output, done.stderr, done.exception)
    return done.output if code == 0 else done.output + done.stderr
"""
    path = os.pathsep.join([str(place), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, "-c", head + script], cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_one_of_each_kind_works_from_another_package(tmp_path):
    """All kinds that are advertised; in Python, in run files, in `list`, extended from checkpoints, written in its own format, and in `verify`."""
    assert set(PUBLISHED) == set(REGISTRIES)
    install(tmp_path, "fieldwork", PUBLISHED, EXTENSION.read_text(encoding="utf-8"))
    (tmp_path / "run.toml").write_text(RUN)
    done = in_process(
        tmp_path,
        f"PUBLISHED = { {group: line.partition(' =')[0] for group, line in PUBLISHED.items()} }\n"
        """
import numpy as np, bismut as bm, fieldwork
from bismut.registry import PAIR_ENERGIES, REGISTRIES
from bismut.store import read_run

for group, name in PUBLISHED.items():
    listed = {row["name"]: row for row in json.loads(command("list", group, "--json"))}
    assert listed[name]["package"] == "fieldwork 1.2", (group, name, listed)
    assert "fieldwork 1.2" in command("list", group)
assert "Leaning" in command("run", "--help")
assert "notes" in command("export", "--help")
assert "Bubble" in command("show", "bubble")

assert bm.check_space(fieldwork.Positive()).ok
scheme = fieldwork.Leaning(fieldwork.bubble(1.5), share=0.5)
start = scheme.start([1.2], velocity=[0.1])
observe = {"r": fieldwork.radius, "c": fieldwork.crossings(lambda state: state.p[0])}
result = bm.simulate(scheme, start, step=0.02, steps=40, trajectories=16, block=8, every=1, path=fieldwork.Doubled(3, scale=0.5), observe=observe)

command("run", "run.toml", "--out", "all")
found = read_run("all")
np.testing.assert_array_equal(found.statistics["r"]["mean"].values, result.r.mean.values)
assert int(found.statistics["c"]["count"]) == int(result.c.count)
assert 'share = 0.5' in open("all/run.toml").read()
assert json.load(open("all/provenance.json"))["versions"]["fieldwork"] == "1.2"

command("run", "run.toml", "--steps", "25", "--every", "1", "--out", "half")
command("extend", "half", "--steps", "15")
again = read_run("half")
np.testing.assert_array_equal(again.statistics["r"]["mean"].values, found.statistics["r"]["mean"].values)
assert int(again.statistics["c"]["count"]) == int(found.statistics["c"]["count"])
assert "complete" in command("resume", "half")

command("export", "all", "--to", "notes", "--out", "all.notes")
assert open("all.notes").read()
command("run", "bubble", "--steps", "3", "--trajectories", "2", "--observe", "radius,crossings:radius", "--out", "named")
command("run", "oscillator", "--temperature", "1", "--rate", "1", "--splitting", "AOBOA", "--steps", "3", "--trajectories", "2", "--out", "warm")
report = json.loads(command("verify", "bubble", "--quick", "--json"))
(radius,) = (finding for finding in report["findings"] if finding["law"] == "positive radius")
assert report["verdict"] == radius["verdict"] == "pass" and -2 < radius["measured"] < 0, radius
assert "One path of 20 steps." in command("figure", "breathing", "--quick", "--out", "pictures")
assert open("pictures/breathing.png", "rb").read(4) == b"\\x89PNG"
assert np.loadtxt("pictures/breathing.csv", delimiter=",", skiprows=1).shape == (21, 2)
assert PAIR_ENERGIES["morse"](2.0)(np.eye(3), np.stack([np.eye(3)] * 3)) > 0
wrong = command("run", "bubble", "--observe", "crosings:radius", "--scheme", "Leanin", "--set", "presure=1", code=2)
for word in ("crossings", "Leaning", "pressure"):
    assert f"Did you mean '{word}'?" in wrong, wrong
print("done")
""",
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]


def test_a_broken_package_is_named_and_stops_no_other_run(tmp_path):
    """One that fails when it is imported, one with a name of ours, and two with the same name."""
    install(tmp_path, "broken", {"schemes": "Ruined", "observers": "ruins"}, "raise RuntimeError('out of order')")
    install(tmp_path, "greedy", {"schemes": "Verlet", "paths": "Twice"}, "class Verlet: pass\nclass Twice: pass")
    install(tmp_path, "second", {"paths": "Twice"}, "class Twice: pass")
    done = in_process(
        tmp_path,
        """
import warnings
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    assert [row["name"] for row in json.loads(command("list", "schemes", "--json"))].count("Verlet") == 1
    command("list", "paths")
texts = [str(warning.message) for warning in warned]
assert any("'Ruined' of broken 1.2 cannot be imported" in text and "RuntimeError: out of order" in text for text in texts), texts
assert any("bismut has a scheme 'Verlet' itself, so that of greedy 1.2 is ignored" in text for text in texts), texts
assert any("'Twice' is published by greedy 1.2 and by second 1.2" in text for text in texts), texts
assert "cannot be imported" in command("run", "oscillator", "--scheme", "Ruined", code=2)
assert "broken 1.2" in command("run", "oscillator", "--observe", "ruins:energy", code=2)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    command("run", "oscillator", "--scheme", "Verlet", "--steps", "3", "--trajectories", "2", "--observe", "energy,time_average:q", "--out", "fine")
print("done")
""",
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]


@pytest.mark.parametrize("group", list(REGISTRIES))
def test_names_read_off_the_source_are_those_of_what_is_imported(group):
    """Every registration has one of the forms that are found without an import, and each name leads to a thing of that name."""
    registry = REGISTRIES[group]
    assert len(registry.own) > 3
    for name, thing in ((name, registry[name]) for name in registry.own):
        assert name in (getattr(thing, "name", None), getattr(thing, "__name__", None), getattr(thing, "word", None))
    assert set(registry._loaded) <= set(registry.own)


def test_help_imports_neither_jax_nor_numpy():
    script = """
import sys
from typer.testing import CliRunner
from bismut.cli.main import app
print(CliRunner().invoke(app, ["run", "--help"]).exit_code, [name for name in ("jax", "numpy", "xarray") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n"
