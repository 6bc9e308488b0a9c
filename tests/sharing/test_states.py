"""A state leaves and comes back: exactly through text, to single precision through GSD."""

import jax
import numpy as np
import pytest
from ase import Atoms
from ase.io import write

import bismut as bm
from bismut.errors import BismutError, ShapeError
from bismut.sharing import read_frame
from tests.sharing.systems import BOX, SYSTEMS, trajectory


def apart(a, b) -> float:
    """The largest difference, relative to the largest entry of each array."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.abs(np.asarray(x) - np.asarray(y)).max() / max(1.0, np.abs(np.asarray(x)).max())) for x, y in pairs)


@pytest.mark.parametrize("name", SYSTEMS)
def test_export_and_import_are_the_identity(name, tmp_path):
    """import_state ∘ export = 1 to the precision of the format, for every kind of bodies, and for each frame."""
    scheme = bm.Verlet(SYSTEMS[name]())
    made = trajectory(scheme)
    for ending, tolerance in (("extxyz", 1e-14), ("gsd", 1e-6)):
        (file,) = bm.export(made, tmp_path / f"a.{ending}", system=scheme)
        for frame, which in ((-1, 2), (0, 0)):
            back = bm.import_state(scheme, file, frame=frame)
            assert apart(jax.tree.map(lambda leaf, which=which: leaf[which], made.states), back) < tolerance
        assert apart(jax.tree.map(lambda leaf: leaf[-1], made.states), back) > 0.1  # frames differ


@pytest.mark.parametrize("ending", ["extxyz", "gsd"])
def test_a_frame_tells_time_box_and_kinds(ending, tmp_path):
    scheme = bm.Verlet(SYSTEMS["bodies"]())
    (file,) = bm.export(trajectory(scheme), tmp_path / f"a.{ending}", system=scheme)
    found = read_frame(file, 1)
    assert found.times.tolist() == [0.25]
    assert found.steps.tolist() == [5]
    assert found.species == ("A", "B", "A")
    assert np.allclose(found.mass, [1, 2, 1])
    sides = found.box.lengths
    assert np.allclose(sides[:2], BOX.lengths[:2])
    assert np.isinf(sides[2]) == (ending == "extxyz")  # GSD knows no open sides


def test_momenta_may_be_drawn_instead(tmp_path):
    """With temperature= the frame says where the bodies are, and Maxwell's law how they move."""
    scheme = bm.Verlet(SYSTEMS["bodies"]())
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / "a.extxyz", system=scheme)
    start = bm.import_state(scheme, file, temperature=0.5)
    assert apart(jax.tree.map(lambda leaf: leaf[-1], made.q), start.q) < 1e-14
    assert float(start.temperature) == 0.5


def test_a_frame_of_another_program(tmp_path):
    """Positions, masses and momenta that ASE wrote are those of the start."""
    atoms = Atoms("OH", positions=[[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], cell=[5, 6, 7], pbc=True)
    atoms.set_momenta([[1.0, 0.0, 2.0], [0.5, 0.25, -1.0]])
    atoms.set_array("masses", atoms.get_masses())
    write(tmp_path / "a.extxyz", [atoms])
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3) ** 2, mass=atoms.get_masses()[:, None]))
    start = bm.import_state(scheme, tmp_path / "a.extxyz")
    assert np.allclose(start.q, atoms.positions, atol=1e-8)
    assert np.allclose(start.p, atoms.get_momenta(), atol=1e-8)
    assert read_frame(tmp_path / "a.extxyz").species == ("O", "H")


def test_a_constrained_state_comes_back_onto_its_surface(tmp_path):
    """GSD rounds to single precision, and the start satisfies g = 0 to double precision all the same."""
    pendulum = bm.mechanical(bm.Euclidean(3), constraint=lambda q: (q @ q - 1.0)[None])
    scheme = bm.VariationalEuler(pendulum)
    start = scheme.start(np.array([0.6, 0.0, -0.8]), velocity=np.array([0.4, 1.0, 0.3]))
    made = trajectory(bm.Verlet(bm.mechanical(bm.Euclidean(3))), states=jax.tree.map(lambda leaf: leaf[None], start), times=np.zeros(1))
    (file,) = bm.export(made, tmp_path / "a.gsd", system=scheme)
    back = bm.import_state(scheme, file)
    assert abs(float(back.q @ back.q) - 1) < 1e-14
    assert apart(start, back) < 1e-6


def test_what_does_not_fit_is_refused(tmp_path):
    bodies, points = (bm.Verlet(SYSTEMS[name]()) for name in ("bodies", "points"))
    (file,) = bm.export(trajectory(points), tmp_path / "a.extxyz", system=points)
    with pytest.raises(ShapeError, match=r"holds 2 bodies, but .* has 3"):
        bm.import_state(bodies, file)
    with pytest.raises(BismutError, match="has 3 frames, so there is no frame 3"):
        bm.import_state(points, file, frame=3)
    with pytest.raises(BismutError, match="There is no file"):
        bm.import_state(points, tmp_path / "b.gsd")
    (dump,) = bm.export(trajectory(points), tmp_path / "a.lammpstrj", system=points)
    with pytest.raises(BismutError, match="States are read from extxyz, gsd"):
        bm.import_state(points, dump)
    (tmp_path / "c.extxyz").write_text("2\nProperties=species:S:1:pos:R:3\nX 0 0 0\nX 1 1 1\n")
    with pytest.raises(BismutError, match=r"no velocities. Give temperature"):
        bm.import_state(points, tmp_path / "c.extxyz")
    (tmp_path / "d.extxyz").write_text("2\nProperties=species:S:1:pos:R:3\nX 0 0 0\n")
    with pytest.raises(BismutError, match="line 1: expected a number of particles and as many lines"):
        bm.import_state(points, tmp_path / "d.extxyz")
    (tmp_path / "e.gsd").write_bytes(b"this is no GSD file at all" * 20)
    with pytest.raises(BismutError, match="cannot be read as GSD"):
        bm.import_state(points, tmp_path / "e.gsd")
    with pytest.raises(ShapeError, match="points of Circle"):
        bm.import_state(bm.Verlet(bm.mechanical(bm.Circle())), file)
