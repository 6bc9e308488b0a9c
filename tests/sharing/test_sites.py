"""Sites of bodies, such as atoms: where other programs find them is where the points of the bodies are, moving as the bodies do."""

import gsd.hoomd
import jax
import numpy as np
import pytest
from ase.io import read

import bismut as bm
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.views.default_drawing import default_drawing
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


def test_points_have_the_names_and_bonds_of_their_potential(tmp_path):
    """A chain of four points; a run's folder knows them without the system; pairs that are excluded are no bonds."""
    chain = [(0, 1), (1, 2), (2, 3)]
    sites = bm.sites(charges=[0.1, -0.1, -0.1, 0.1], names=("H", "C", "C", "H"), exclude=bm.bonded_pairs(chain, 1, 2))
    system = bm.mechanical(bm.Euclidean(3) ** 4, potential=bm.bonds(chain, 300.0, 1.5) + bm.angles([(0, 1, 2)], 60.0, 1.9) + sites)
    scheme = bm.Verlet(system)
    made = bm.trajectory(scheme, scheme.start(1.5 * np.eye(4, 3), velocity=np.zeros((4, 3))), step=0.01, steps=1)
    for given in ({}, {"sites": "molecules"}):
        (file,) = bm.export(made, tmp_path / "a.gsd", system=scheme, overwrite=True, **given)
        with gsd.hoomd.open(str(file)) as opened:
            assert opened[0].bonds.group.tolist() == [list(pair) for pair in chain]
            assert [opened[0].particles.types[k] for k in opened[0].particles.typeid] == ["H", "C", "C", "H"]
    again = bm.mechanics.Inventory.of_data(bm.mechanics.inventory(system).data())
    assert again.names == ("H", "C", "C", "H")
    assert again.bonds.tolist() == [list(pair) for pair in chain]
    kinds = bm.sites(charges=[1.0, -1.0], species=[0, 1, 1, 0], names=("Na", "Cl"))
    assert bm.mechanics.inventory(bm.mechanical(bm.Euclidean(3) ** 4, potential=kinds)).names == ("Na", "Cl", "Cl", "Na")
    with pytest.raises(ShapeError, match="names of points"):
        bm.sites(charges=[1.0, -1.0], names=("O", "H", "H"))


def test_drawings_join_the_sites_of_molecules():
    """A water molecule has two lines, from its oxygen, and an ion none."""
    water, ion = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0.0, 0, 0]]
    potential = bm.sites([water, ion], species=[0, 1, 0], charges=[[-2.0, 1, 1], [1.0]])
    system = bm.rigid_bodies(mass=np.ones(3), inertia=np.ones((3, 3)), potential=potential)
    lines = default_drawing(system, (np.zeros((1, 3, 3)), np.tile(np.eye(3), (1, 3, 1, 1)))).lines
    assert [np.asarray(line.second_at).tolist() for line in lines] == water[1:]
    assert all(np.asarray(line.first).tolist() == [0, 2] for line in lines)


def test_drawings_know_atoms_by_their_names():
    """The M of TIP4P is no atom: neither drawn nor joined. Elements have their colours, other names those that are left, and points theirs, too."""
    model = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.1, 0.1, 0]]
    energy = bm.sites(model, charges=[0.0, 0.5, 0.5, -1.0], epsilon=[1.0, 0, 0, 0], names=("O", "H", "H", "M"))
    system = bm.rigid_bodies(mass=np.ones(2), inertia=np.ones((2, 3)), potential=energy)
    drawing = default_drawing(system, (np.zeros((1, 2, 3)), np.tile(np.eye(3), (1, 2, 1, 1))))
    assert [np.asarray(part.at).tolist() for part in drawing.parts] == model[:3]
    assert [part.colour for part in drawing.parts] == ["vermilion", "ink", "ink"]
    assert drawing.parts[0].size > drawing.parts[1].size
    assert [np.asarray(line.second_at).tolist() for line in drawing.lines] == model[1:3]
    beads = bm.sites(charges=[1.0, -1.0, 0.5, 0.2], names=("head", "tail", "head", "O"))
    parts = default_drawing(bm.mechanical(bm.Euclidean(3) ** 4, potential=beads), np.arange(12.0).reshape(1, 4, 3)).parts
    assert [(np.asarray(part.body).tolist(), part.colour) for part in parts] == [([3], "vermilion"), ([0, 2], "blue"), ([1], "sage")]
    nameless = bm.rigid_bodies(mass=[1.0], inertia=np.ones((1, 3)), potential=bm.sites(model, charges=[0.0, 0.5, 0.5, -1.0]))
    parts = default_drawing(nameless, (np.zeros((1, 1, 3)), np.eye(3)[None, None])).parts
    assert [part.colour for part in parts] == [None] * 4
