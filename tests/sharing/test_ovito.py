"""OVITO reads what was meant. It has an environment of its own: make test-ovito."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bismut as bm
from tests.sharing.systems import CLOUD, SYSTEMS, trajectory

pytest.importorskip("ovito", reason="OVITO has an environment of its own: make test-ovito")


@pytest.mark.parametrize("ending", ["gsd", "extxyz", "lammpstrj"])
def test_bodies_are_where_they_were_and_turned_as_they_were(ending, tmp_path):
    """Positions up to sides of the box, orientations (x, y, z, w) as OVITO has them, velocities, cell, flags and time."""
    from ovito.io import import_file

    scheme = bm.Verlet(SYSTEMS["bodies"]())
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / f"a.{ending}", system=scheme)
    pipeline = import_file(str(file))
    assert pipeline.source.num_frames == 3
    data = pipeline.compute(1)
    particles, cell = data.particles, np.asarray(data.cell[:])
    x, R = (np.asarray(leaf)[1] for leaf in made.q)
    turns = (np.asarray(particles["Position"]) - x) / np.diag(cell)
    assert np.allclose(turns, np.round(turns), atol=1e-6)
    turned = Rotation.from_quat(np.asarray(particles["Orientation"])).as_matrix()
    assert np.allclose(turned, R @ CLOUD.axes, atol=1e-6)
    assert np.allclose(particles["Velocity"], made.p[0][1] / np.array([1.0, 2.0, 1.0])[:, None], atol=1e-6)
    assert np.allclose(np.diag(cell)[:2], [4, 5])
    assert np.allclose(cell[:2, 3], [-2, -2.5])
    assert tuple(data.cell.pbc)[:2] == (True, True)
    assert tuple(data.cell.pbc)[2] == (ending == "gsd")  # which knows no open sides
    assert next(value for name, value in data.attributes.items() if name.lower() == "time") == 0.25
