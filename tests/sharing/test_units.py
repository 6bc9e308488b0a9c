"""Units: numbers go out and come back, and the constants are nature's."""

import numpy as np
import pint
import pytest
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
