"""Sites of bodies, such as atoms: where other programs find them is where the points of the bodies are, moving as the bodies do."""

import gsd.hoomd
import jax
import numpy as np
import pytest
from ase.io import read

import bismut as bm
from bismut.errors import BismutError, DomainError, ShapeError
from tests.sharing.systems import BOX, CLOUD, SYSTEMS, trajectory

GIVEN = CLOUD.points @ CLOUD.axes.T  # from the centre, in the axes in which the points were given
NAMES = ["Fe", "O", "H", "C"]


def molecules(principal: bool, count: int = 2):
    inertia = CLOUD.moments if principal else CLOUD.inertia
    return bm.Verlet(
        bm.rigid_bodies(mass=np.full(count, CLOUD.mass), inertia=np.stack([inertia] * count), potential=bm.soft_spheres(cutoff=2.0), box=BOX)
    )


def expected(made, frame: int, points) -> np.ndarray:
    x, R = (np.asarray(leaf)[frame] for leaf in made.q)
    return (x[:, None] + np.einsum("kij,nj->kni", R, points)).reshape(-1, 3)


@pytest.mark.parametrize("principal", [True, False])
def test_sites_are_the_points_of_the_bodies(principal, tmp_path):
    """In the axes of the run, whether its inertia was given by moments or as a matrix; kinetic energy of the sites is that of the bodies."""
    scheme = molecules(principal)
    made, points = trajectory(scheme), CLOUD.points if principal else GIVEN
    (file,) = bm.export(made, tmp_path / "a.extxyz", system=scheme, sites=CLOUD, species=NAMES)
    atoms = read(file, index=1)
    assert np.allclose(atoms.positions, expected(made, 1, points), rtol=0, atol=1e-13)
    assert atoms.get_chemical_symbols() == NAMES * 2
    assert atoms.arrays["molecule"].tolist() == [0] * 4 + [1] * 4
    assert np.allclose(atoms.get_masses(), np.tile(CLOUD.masses, 2), rtol=0, atol=0)
    state = bm.State(*(jax.tree.map(lambda leaf: leaf[1], tree) for tree in (made.q, made.p)))
    assert atoms.get_kinetic_energy() == pytest.approx(float(scheme.system.kinetic_energy(state)), rel=1e-12)
    (plain,) = bm.export(made, tmp_path / "b.extxyz", system=scheme, sites=points)
    assert np.allclose(read(plain, index=1).positions, atoms.positions, rtol=0, atol=1e-13)
    assert read(plain, index=1).arrays["kind"].tolist() == ["A1", "A2", "A3", "A4"] * 2


def test_every_format_of_moving_bodies_has_sites(tmp_path):
    scheme = molecules(True)
    made = trajectory(scheme)
    (dump,) = bm.export(made, tmp_path / "a.lammpstrj", system=scheme, sites=CLOUD, species=NAMES)
    assert "ITEM: ATOMS id type mol element mass xu yu zu vx vy vz" in dump.read_text().splitlines()
    (file,) = bm.export(made, tmp_path / "a.gsd", system=scheme, sites=CLOUD)
    with gsd.hoomd.open(str(file)) as opened:
        frame = opened[2]
    x = frame.particles.position + frame.particles.image * frame.configuration.box[:3]
    assert np.allclose(x, expected(made, 2, CLOUD.points), atol=1e-5)
    rows = [line.split() for line in dump.read_text().splitlines()[-8:]]
    assert np.allclose(np.array(rows)[:, 5:8].astype(float), expected(made, 2, CLOUD.points), rtol=0, atol=1e-13)
    assert [row[2] for row in rows] == ["1"] * 4 + ["2"] * 4


def test_bodies_may_have_different_sites(tmp_path):
    """Stacked bodies are padded with points that are none of theirs; a list of bodies or of points is the same."""
    pair = bm.body([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.3, 0.0]])
    both = bm.stack_bodies([CLOUD, pair])
    scheme = bm.Verlet(bm.rigid_bodies(mass=both.mass, inertia=both.moments))
    made = trajectory(scheme)
    found = []
    for i, sites in enumerate((both, [CLOUD, pair], [CLOUD.points, pair.points])):
        (file,) = bm.export(made, tmp_path / f"{i}.extxyz", system=scheme, sites=sites)
        found.append(read(file, index=0).positions)
    assert found[0].shape == (7, 3)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_disks_turn_in_their_plane(tmp_path):
    scheme = bm.Verlet(SYSTEMS["disks"]())
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / "a.extxyz", system=scheme, sites=[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    x, R = (np.asarray(leaf)[0] for leaf in made.q)
    wanted = (x[:, None] + np.einsum("kij,nj->kni", R, [[1.0, 0.0], [0.0, 2.0]])).reshape(-1, 2)
    assert np.allclose(read(file, index=0).positions, np.c_[wanted, np.zeros(4)], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"sites": bm.body([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])}, DomainError, "not known how they lie in it"),
        ({"sites": [CLOUD] * 3}, ShapeError, "got 3 for 2 bodies"),
        ({"sites": np.zeros((3, 4, 3))}, ShapeError, "got 3 for 2 bodies"),
        ({"sites": np.zeros((4, 2))}, ShapeError, r"finite points \(n, 3\)"),
        ({"sites": np.full((4, 3), np.nan)}, ShapeError, r"finite points \(n, 3\)"),
        ({"sites": True}, ShapeError, "got bool"),
        ({"sites": "water"}, ShapeError, "got str"),
        ({"sites": CLOUD, "species": ["O", "H"]}, BismutError, "got 2 for 8 sites"),
        ({"sites": CLOUD, "to": "csv"}, BismutError, "sites= is for gsd"),
    ],
)
def test_sites_that_do_not_fit_are_refused(changed, error, words, tmp_path):
    scheme = molecules(True)
    with pytest.raises(error, match=words):
        bm.export(trajectory(scheme), tmp_path / "a", system=scheme, **{"to": "extxyz", **changed})


def test_points_have_no_sites(tmp_path):
    scheme = bm.Verlet(SYSTEMS["points"]())
    with pytest.raises(BismutError, match="each is its own site"):
        bm.export(trajectory(scheme), tmp_path / "a.extxyz", system=scheme, sites=GIVEN)
