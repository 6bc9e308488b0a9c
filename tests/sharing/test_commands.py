"""bismut export and bismut import, and runs that begin where another ended."""

import json
import tomllib
from pathlib import Path

import numpy as np

from bismut.store import read_run
from tests.cli.conftest import bismut  # noqa: F401

SMALL = ("--set", "bodies=2", "--steps", 6, "--every", 3, "--trajectories", 2, "--seed", 3)


def test_run_export_import_run(bismut):  # noqa: F811
    """A run that begins at the last frame of another begins at its last state, in the run file and with --start file=."""
    made = bismut("run", "magnetic-dipoles", *SMALL, "--observe", "energy,paths", "--out", "a")
    assert made.exit_code == 0, made.stderr
    files = json.loads(bismut("export", "a", "--to", "extxyz", "--json").stdout)
    assert files == ["a-0.extxyz", "a-1.extxyz"]
    again = bismut("export", "a", "--to", "extxyz")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    told = bismut("import", "a-1.extxyz")
    assert told.exit_code == 0, told.stderr
    assert "2 A" in told.stdout
    written = bismut("import", "a-1.extxyz", "--system", "magnetic-dipoles", "--set", "bodies=2", "--out", "b.toml")
    assert written.exit_code == 0, written.stderr
    assert set(tomllib.loads(Path("b.toml").read_text())["start"]) == {"q", "velocity"}  # numbers, no name of a file
    options = ("--steps", 3, "--every", 3, "--trajectories", 1, "--observe", "paths")
    assert bismut("run", "b.toml", *options, "--out", "b").exit_code == 0
    typed = bismut("run", "magnetic-dipoles", "--set", "bodies=2", "--start", "file=a-1.extxyz", "--start", "frame=-1", *options, "--out", "c")
    assert typed.exit_code == 0, typed.stderr
    first, second, third = (read_run(name).statistics["paths"] for name in "abc")
    for leaf in ("q0", "q1", "p0", "p1"):
        last = first[leaf].values[1, -1]
        assert np.allclose(second[leaf].values[0, 0], last, atol=1e-14)
        assert np.array_equal(third[leaf].values, second[leaf].values)
    assert "file" not in tomllib.loads(Path("c/run.toml").read_text())["start"]


def test_tables_from_the_command_line(bismut):  # noqa: F811
    assert bismut("run", "pendulum", "--steps", 4, "--trajectories", 2, "--out", "a").exit_code == 0
    assert bismut("export", "a", "--to", "csv", "--only", "energy", "--out", "energy.csv").exit_code == 0
    assert Path("energy.csv").read_text().startswith("time,mean,std,stderr")
    assert bismut("export", "a", "--to", "csv").stdout.splitlines()[0] == "a-csv/energy.csv"
    refused = bismut("export", "a", "--to", "gsd")
    assert refused.exit_code == 2
    assert "Choose netcdf, csv or parquet" in refused.stderr


def test_molecules_from_the_command_line_are_atoms(bismut):  # noqa: F811
    """Those of TIP4P without its charge M, which is no atom; asked for in a word that is known."""
    water = ("--set", "molecules=8", "--set", "sites=4", "--steps", 1, "--trajectories", 1, "--observe", "paths", "--out", "a")
    assert bismut("run", "water", *water).exit_code == 0
    made = bismut("export", "a", "--to", "extxyz", "--trajectory", 0, "--sites", "molecules")
    assert made.exit_code == 0, made.stderr
    lines = Path(made.stdout.strip()).read_text().splitlines()
    assert [line.split()[0] for line in lines[2:26]] == ["O", "H", "H"] * 8
    refused = bismut("export", "a", "--to", "extxyz", "--sites", "atoms")
    assert refused.exit_code == 2
    assert "--sites expects molecules" in refused.stderr
    assert "sites= is for gsd" in bismut("export", "a", "--to", "netcdf", "--sites", "molecules").stderr


def test_mistakes_of_starts(bismut):  # noqa: F811
    """All of them at once, where they stand."""
    found = bismut("run", "magnetic-dipoles", "--start", "file=nothing.gsd", "--start", "q=1")
    assert found.exit_code == 2
    assert "start.q: file is given already" in found.stderr
    assert "start.file: There is no file nothing.gsd" in bismut("run", "magnetic-dipoles", "--start", "file=nothing.gsd").stderr
    assert "start.frame: a frame belongs to a file" in bismut("run", "magnetic-dipoles", "--start", "frame=2").stderr
    assert "--system and --out belong together" in bismut("import", "nothing.gsd", "--system", "magnetic-dipoles").stderr
