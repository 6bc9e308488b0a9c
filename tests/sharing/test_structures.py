"""Structures through ASE: what ASE wrote is what is read, with species and box, also in other units."""

import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError

ase = pytest.importorskip("ase")


def crystal():
    from ase.build import bulk

    atoms = bulk("NaCl", "rocksalt", a=5.64, cubic=True) * (1, 1, 2)
    atoms.positions += 1.0 + 0.01 * np.random.default_rng(0).normal(size=atoms.positions.shape)
    return atoms


@pytest.mark.parametrize("name", ["salt.extxyz", "salt.vasp", "salt.cif"])
def test_a_crystal_is_read_with_species_and_box(tmp_path, name):
    atoms = crystal()
    atoms.write(tmp_path / name)
    there = bm.read_structure(tmp_path / name)
    apart = np.linalg.norm(there.places[:, None] - atoms.positions, axis=-1)
    same = apart.argmin(1)
    assert sorted(same) == list(range(16))
    assert apart.min(1).max() < 1e-4
    assert [atoms.symbols[k] for k in same] == list(there.elements)
    assert sorted(there.elements) == ["Cl"] * 8 + ["Na"] * 8
    assert there.species.tolist() == [["Cl", "Na"].index(one) for one in there.elements]
    np.testing.assert_allclose(there.box.lengths, (5.64, 5.64, 11.28), rtol=1e-6)
    assert "Cl8 Na8" in repr(there)


def test_units_and_open_axes(tmp_path):
    pytest.importorskip("pint")
    slab = crystal()
    slab.pbc = (True, True, False)
    slab.write(tmp_path / "slab.extxyz")
    there = bm.read_structure(tmp_path / "slab.extxyz", units=bm.units.molecular)
    np.testing.assert_allclose(there.places, slab.positions / 10, atol=1e-8)
    np.testing.assert_allclose(there.masses, slab.get_masses(), rtol=1e-9)
    assert there.box.lengths == pytest.approx((0.564, 0.564, np.inf))


def test_what_cannot_be_used_is_refused(tmp_path):
    from ase.build import bulk

    with pytest.raises(BismutError, match="no file"):
        bm.read_structure(tmp_path / "missing.cif")
    (tmp_path / "broken.cif").write_text("nothing")
    with pytest.raises(BismutError, match="cannot be read by ASE"):
        bm.read_structure(tmp_path / "broken.cif")
    bulk("Cu").write(tmp_path / "tilted.extxyz")
    with pytest.raises(BismutError, match="tilted box"):
        bm.read_structure(tmp_path / "tilted.extxyz")
