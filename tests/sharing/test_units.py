"""Units: numbers go out and come back, and the constants are nature's."""

from itertools import pairwise

import numpy as np
import pint
import pytest
from ase.io import read
from scipy import constants

import bismut as bm
from bismut.errors import BismutError, DomainError

ARGON = bm.units.Units("3.405 angstrom", "39.948 dalton", "0.996 kJ/mol")


@pytest.mark.parametrize("units", [bm.units.si, bm.units.molecular, ARGON], ids=["si", "molecular", "argon"])
@pytest.mark.parametrize("unit", ["angstrom", "dalton", "ps", "kJ/mol", "kelvin", "eV", "m/s", "dalton * angstrom**2", "N*m", "1/ns", "bar"])
def test_numbers_come_back(units, unit):
    """quantity ∘ reduced = 1 and reduced ∘ quantity = 1."""
    assert units.quantity(units.reduced(3.25, unit), unit).magnitude == pytest.approx(3.25, rel=1e-13)
    assert units.reduced(units.quantity(0.75, unit)) == pytest.approx(0.75, rel=1e-13)


def test_temperatures_are_energies():
    """k_B · 300 K in joules and in kJ/mol, and as much as the same number of kelvins again."""
    assert bm.units.si.kT("300 K") == pytest.approx(constants.k * 300, rel=1e-9)
    kT = bm.units.molecular.kT("300 K")
    assert kT == pytest.approx(constants.R * 300 / 1000, rel=1e-9)
    assert bm.units.molecular.quantity(kT, "kelvin").magnitude == pytest.approx(300, rel=1e-12)
    assert bm.units.molecular.quantity(kT, "kcal/mol").magnitude == pytest.approx(constants.R * 300 / 4184, rel=1e-9)


def test_the_unit_of_time_follows():
    """ℓ √(m/ε): a second, a picosecond (to the 5e−10 by which N_A Da differs from g/mol), and 2.156 ps for argon."""
    assert bm.units.si.time.to("s").magnitude == pytest.approx(1, rel=1e-15)
    assert bm.units.molecular.time.to("ps").magnitude == pytest.approx(1, rel=1e-8)
    expected = 3.405e-10 * np.sqrt(39.948 * constants.atomic_mass * constants.N_A / 996)
    assert ARGON.time.to("s").magnitude == pytest.approx(expected, rel=1e-9)


def test_a_water_molecule():
    """Moments of H₂O from its point cloud: rotational constants ħ/4πcI are 27.88, 14.52 and 9.28 per cm, to the 3 % that vibration changes; and in
    any units the moments are the same."""
    points = [[0.0, 0.0, 0.0], [0.9572, 0.0, 0.0], [-0.24, 0.9266, 0.0]]
    water = bm.units.molecular.body(points, [15.999, 1.008, 1.008])
    moments = np.sort([bm.units.molecular.quantity(one, "kg * m**2").magnitude for one in water.moments])
    waves = constants.hbar / (4 * np.pi * constants.c * moments) / 100
    assert np.allclose(waves, [27.88, 14.52, 9.28], rtol=0.03)
    other = bm.units.si.body(np.asarray(points) / 10, [15.999, 1.008, 1.008], length="nm")
    assert np.allclose(np.sort(other.moments), moments, rtol=1e-12)


def test_quantities_of_the_user_are_taken():
    registry = pint.UnitRegistry()  # another one than ours
    assert bm.units.molecular.reduced(registry.Quantity([1.0, 2.0], "angstrom")) == pytest.approx([0.1, 0.2])


def test_refusals():
    with pytest.raises(BismutError, match="apples"):
        bm.units.si.reduced("3 apples")
    with pytest.raises(DomainError, match=r"not determine a unit of \[current\]"):
        bm.units.si.reduced("2 ampere")
    with pytest.raises(DomainError, match="Expected a quantity with a unit"):
        bm.units.si.reduced(3.0)
    with pytest.raises(DomainError, match="Expected a temperature such as '300 K'"):
        bm.units.si.kT("3 nm")
    with pytest.raises(DomainError, match="≥ 0 K"):
        bm.units.si.kT("-3 K")
    with pytest.raises(BismutError, match="'apples' cannot be read as a unit"):
        bm.units.si.quantity(1.0, "apples")
    with pytest.raises(DomainError, match=r"positive quantity of dimension \[length\]"):
        _ = bm.units.Units("s", "kg", "J").time


def test_exports_have_the_units_of_their_format(tmp_path):
    """Lengths, boxes, momenta and times of two points in nm, daltons and ps; ASE finds the kinetic energy in eV."""
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3) ** 2, mass=[[16.0], [1.0]], potential=bm.lennard_jones(sigma=0.3, cutoff=0.9), box=2.0))
    x, v = np.array([[0.1, 0.2, 0.3], [0.6, 0.5, 0.3]]), np.array([[0.5, 0.0, 0.1], [0.0, -2.0, 0.0]])
    made = bm.trajectory(scheme, scheme.start(x, velocity=v), step=0.001, steps=2)
    write = lambda name, units: bm.export(made, tmp_path / name, system=scheme, units=units, species=["O", "H"], overwrite=True)[0]
    atoms = read(write("a.extxyz", bm.units.molecular), index=0)
    np.testing.assert_allclose(atoms.positions, 10 * x, rtol=1e-12)
    np.testing.assert_allclose(atoms.cell.lengths(), 20.0, rtol=1e-12)
    kinetic = float(scheme.system.kinetic_energy(bm.State(*(leaf[0] for leaf in (made.q, made.p)))))  # in kJ/mol
    assert atoms.get_kinetic_energy() == pytest.approx(kinetic / (constants.N_A * constants.e / 1000), rel=1e-6)
    lines = write("a.lammpstrj", "molecular").read_text().splitlines()
    last = lines[-2].split()
    times = [float(after) for line, after in pairwise(lines) if line == "ITEM: TIME"]
    np.testing.assert_allclose(times, [0.0, 1.0, 2.0], rtol=1e-8)  # fs, by a dalton that is known to so many digits
    np.testing.assert_allclose(np.array(last[4:7], float), 10 * np.asarray(made.q)[-1, 0], rtol=1e-12)
    np.testing.assert_allclose(np.array(last[7:10], float), 0.01 * np.asarray(made.p)[-1, 0] / 16, rtol=1e-8)  # Å/fs
    alone = read(write("b.extxyz", "nm"), index=0)
    np.testing.assert_allclose(alone.positions, 10 * x, rtol=1e-12)
    np.testing.assert_allclose(alone.get_momenta(), 10 * v * [[16.0], [1.0]], rtol=1e-12)
    np.testing.assert_allclose(read(write("c.extxyz", None), index=0).positions, x, rtol=1e-12)
    with pytest.raises(BismutError, match="units= is for"):
        bm.export(made, tmp_path / "a.csv", units="nm", system=scheme)
    with pytest.raises(DomainError, match="length"):
        write("d.extxyz", "kg")
