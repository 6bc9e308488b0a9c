"""`bismut verify --all`: pair by pair, a page after each, and what was interrupted is taken up."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.cli.runs import verify_gallery
from bismut.gallery.entry import Entry


def well(stiffness: float = 1.0):
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * stiffness * q @ q + 0.25 * jnp.sum(q**4))


def begin(scheme):
    return scheme.start(jnp.array([0.3]), velocity=jnp.array([1.0]))


def broken(scheme):
    raise ZeroDivisionError("nothing starts here")


@pytest.fixture
def gallery(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    known = {"well": Entry("well", "A well.", well, start=begin, scheme=bm.Verlet, step=0.05)}
    monkeypatch.setattr(verify_gallery, "entries", lambda: known)
    return known


def test_the_page_and_what_it_took(bismut, gallery, tmp_path):
    said = bismut("verify", "--all", "--quick", "--own")
    assert said.exit_code == 0, (said.stderr, said.exception)
    page = (tmp_path / "docs" / "measured.md").read_text(encoding="utf-8")
    assert "bismut verify --all --own --quick" in page
    assert "| well, Verlet | 0.05 | ✓" in page
    assert "## Undecided\n\nNothing." in page
    assert "[1/1" in said.stderr


def test_what_was_interrupted_is_taken_up(bismut, gallery, tmp_path, monkeypatch):
    """What is kept is not measured again, unless settings differ or the file was cut short."""
    assert bismut("verify", "--all", "--quick", "--own").exit_code == 0
    counted = []
    monkeypatch.setattr(verify_gallery, "measure", lambda pair, settings: counted.append(pair.name) or bm.findings.Report("new", 0.05, ()))
    assert bismut("verify", "--all", "--quick", "--own", "--resume").exit_code == 0
    assert counted == []
    file = tmp_path / "output" / "measured" / "well--Verlet.json"
    file.write_text(file.read_text(encoding="utf-8")[:100], encoding="utf-8")
    assert bismut("verify", "--all", "--quick", "--own", "--resume").exit_code == 0
    assert counted == ["well, Verlet"]
    assert bismut("verify", "--all", "--own", "--resume").exit_code == 0
    assert counted == ["well, Verlet"] * 2


def test_what_breaks_is_a_failure_and_stops_nothing(bismut, gallery, monkeypatch):
    """A pair that raises is named in the page; the others are measured."""
    gallery["another"] = Entry("another", "Broken.", well, start=broken, scheme=bm.Verlet, step=0.05)
    gallery["well"] = gallery.pop("well")
    said = bismut("verify", "--all", "--quick", "--own", "--json")
    assert said.exit_code == 1
    assert '"well, Verlet"' in said.stdout
    assert "ZeroDivisionError: nothing starts here" in said.stdout


def test_a_system_is_measured_with_the_schemes_of_its_kind():
    """Phase-space systems with phase-space schemes, baths with other splittings; and all systems are gone through."""
    found, refused = verify_gallery.pairs(only=("oscillator", "kubo-rotation", "double-well"))
    titles = {system: {pair.scheme for pair in found if pair.system == system} for system in ("oscillator", "kubo-rotation", "double-well")}
    assert {"VariationalEuler", "Midpoint", "Verlet"} <= titles["oscillator"]
    assert {"HamiltonianEuler", "HamiltonianMidpoint"} <= titles["kubo-rotation"]
    assert {"Langevin(BAOAB)", "Langevin(ABOBA)", "Langevin(OBABO)", "Verlet"} <= titles["double-well"]
    assert [pair.own for pair in found] == sorted((pair.own for pair in found), reverse=True)
    assert all(refused.values())
