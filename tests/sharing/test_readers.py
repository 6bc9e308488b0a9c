"""Other programs read what was meant: the readers of GSD and ASE give back kinetic energy, orientation, box, time and masses."""

import gsd.hoomd
import numpy as np
import pytest
from ase.io import read
from scipy.spatial.transform import Rotation

import bismut as bm
from tests.sharing.systems import BOX, CLOUD, SYSTEMS, trajectory


@pytest.fixture(scope="module")
def scheme():
    return bm.Verlet(SYSTEMS["bodies"]())


def cloud(made, frame: int) -> np.ndarray:
    """Where the points of each body are, (K, n, 3): they are in the frame in which the inertia was given."""
    x, R = (np.asarray(leaf)[frame] for leaf in made.q)
    return x[:, None] + np.einsum("kij,nj->kni", R, CLOUD.points @ CLOUD.axes.T)


def energies(scheme, made, frame: int) -> float:
    state = bm.State(*((leaf[0][frame], leaf[1][frame]) for leaf in (made.q, made.p)))
    return float(scheme.system.kinetic_energy(state))


def test_hoomd_schema(scheme, tmp_path):
    """Quaternions (w, x, y, z); wrapped positions with images; ½ q* P is the angular momentum along principal axes, as HOOMD-blue has it."""
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / "a.gsd", system=scheme)
    with gsd.hoomd.open(str(file)) as opened:
        assert len(opened) == 3
        frame = opened[1]
    particles, box = frame.particles, frame.configuration.box
    assert frame.configuration.step == 5
    assert frame.log["time"].tolist() == [0.25]
    assert particles.types == ["A", "B"]
    assert particles.typeid.tolist() == [0, 1, 0]
    assert np.allclose(box[:2], BOX.lengths[:2])
    assert (np.abs(particles.position) <= box[:3] / 2 + 1e-6).all()
    assert np.abs(particles.image).max() > 0
    x = particles.position + particles.image * box[:3]
    turned = Rotation.from_quat(particles.orientation, scalar_first=True).as_matrix()
    assert np.allclose(x[:, None] + np.einsum("kij,nj->kni", turned, CLOUD.points), cloud(made, 1), atol=1e-5)
    s, v = particles.orientation[:, :1], particles.orientation[:, 1:]
    p0, pv = particles.angmom[:, :1], particles.angmom[:, 1:]
    momentum = 0.5 * (s * pv - p0 * v - np.cross(v, pv))
    kinetic = 0.5 * (particles.mass @ (particles.velocity**2).sum(1)) + 0.5 * (momentum**2 / particles.moment_inertia).sum()
    assert kinetic == pytest.approx(energies(scheme, made, 1), rel=1e-5)


def test_ase_reads_extended_xyz(scheme, tmp_path):
    """Positions, masses and momenta are ASE's own, so its kinetic energy is ours; orientations are (x, y, z, w)."""
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / "a.extxyz", system=scheme)
    frames = read(file, index=":")
    atoms = frames[1]
    assert len(frames) == 3
    assert np.array_equal(atoms.positions, made.q[0][1])
    assert atoms.pbc.tolist() == [True, True, False]
    assert atoms.cell.lengths()[:2].tolist() == [4.0, 5.0]
    assert atoms.info["Time"] == 0.25
    assert atoms.info["Step"] == 5
    assert atoms.arrays["kind"].tolist() == ["A", "B", "A"]
    turned = Rotation.from_quat(atoms.arrays["orientation"]).as_matrix()
    assert np.allclose(atoms.positions[:, None] + np.einsum("kij,nj->kni", turned, CLOUD.points), cloud(made, 1), atol=1e-13)
    spin = np.einsum("kji,kj->ki", turned, atoms.arrays["angular_momentum"])
    kinetic = atoms.get_kinetic_energy() + 0.5 * (spin**2 / atoms.arrays["inertia"]).sum()
    assert kinetic == pytest.approx(energies(scheme, made, 1), rel=1e-12)


def test_elements_are_species(scheme, tmp_path):
    """Names that are elements are ASE's symbols, in both text formats."""
    made = trajectory(scheme)
    for ending, form in (("extxyz", "extxyz"), ("lammpstrj", "lammps-dump-text")):
        (file,) = bm.export(made, tmp_path / f"a.{ending}", system=scheme, species=["Fe", "O", "Fe"])
        assert read(file, index=1, format=form).get_chemical_symbols() == ["Fe", "O", "Fe"]


def test_lammps_dump(scheme, tmp_path):
    """ASE reads positions, box and velocities; quaternions (w, i, j, k) and angular momenta in space stand under LAMMPS' own names."""
    made = trajectory(scheme)
    (file,) = bm.export(made, tmp_path / "a.lammpstrj", system=scheme)
    atoms = read(file, index=1, format="lammps-dump-text")
    assert np.allclose(atoms.positions, made.q[0][1], atol=1e-12)
    assert atoms.pbc.tolist() == [True, True, False]
    lines = file.read_text().splitlines()
    size = len(lines) // 3
    one = lines[size : 2 * size]
    assert one[:6] == ["ITEM: TIME", "0.25", "ITEM: TIMESTEP", "5", "ITEM: NUMBER OF ATOMS", "3"]
    names, rows = one[10].split()[2:], np.array([line.split() for line in one[11:]], float)
    column = lambda *wanted: rows[:, [names.index(name) for name in wanted]]
    turned = Rotation.from_quat(column("quatw", "quati", "quatj", "quatk"), scalar_first=True).as_matrix()
    x = column("xu", "yu", "zu")
    assert np.allclose(x[:, None] + np.einsum("kij,nj->kni", turned, CLOUD.points), cloud(made, 1), atol=1e-13)
    spin = np.einsum("kji,kj->ki", turned, column("angmomx", "angmomy", "angmomz"))
    moments = column("c_inertia[1]", "c_inertia[2]", "c_inertia[3]")
    kinetic = 0.5 * (column("mass") * column("vx", "vy", "vz") ** 2).sum() + 0.5 * (spin**2 / moments).sum()
    assert kinetic == pytest.approx(energies(scheme, made, 1), rel=1e-12)


def test_disks_lie_in_a_plane(tmp_path):
    """GSD says two dimensions, with moments and turns about z alone."""
    scheme = bm.Verlet(SYSTEMS["disks"]())
    (file,) = bm.export(trajectory(scheme), tmp_path / "a.gsd", system=scheme)
    with gsd.hoomd.open(str(file)) as opened:
        frame = opened[0]
    assert frame.configuration.dimensions == 2
    assert frame.configuration.box[2] == 0
    assert np.allclose(frame.particles.moment_inertia, [[0, 0, 0.3], [0, 0, 0.4]])
    assert np.allclose(frame.particles.orientation[:, 1:3], 0, atol=1e-7)
