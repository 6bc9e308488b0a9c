"""Rigid water has the energy, forces and torques of OpenMM on the same configuration, and its atoms are known to exports."""

import jax
import numpy as np
import openmm
import pytest
from openmm import unit
from scipy.spatial.transform import Rotation

import bismut as bm
from bismut.figures import rigid_water
from bismut.gallery import entry
from bismut.gallery.water import COULOMB, on_a_lattice, water_model
from bismut.mechanics import inventory
from bismut.programs.evaluation import evaluate

SIDE, CUTOFF, COUNT = 4.0, 1.9, 8


def cluster(seed: int = 3):
    """Eight molecules within 0.75 nm, so that no pair is where energies fade: there OpenMM has no switch by molecules."""
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x = 0.32 * grid + np.random.default_rng(seed).uniform(-0.01, 0.01, (COUNT, 3)) + 1.0
    return x, Rotation.random(COUNT, random_state=np.random.default_rng(seed)).as_matrix()


def of_openmm(sites: int, x, R, ewald: bool):
    """Energy, and the forces on all sites, on the Reference platform."""
    model = water_model(sites)
    system, force = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(SIDE * np.eye(3)))
    force.setNonbondedMethod(force.Ewald if ewald else force.CutoffPeriodic)
    force.setCutoffDistance(CUTOFF)
    force.setReactionFieldDielectric(78.3)
    force.setEwaldErrorTolerance(1e-7)
    force.setUseDispersionCorrection(False)
    for k in range(COUNT):
        for a in range(sites):
            system.addParticle(1.0)
            force.addParticle(model.charges[a], model.sigma if a == 0 else 1.0, model.epsilon if a == 0 else 0.0)
        for a in range(sites):
            for b in range(a):
                force.addException(sites * k + a, sites * k + b, 0.0, 1.0, 0.0)
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    places = np.asarray(bm.points_of(x, R, model.shape.points))
    context.setPositions(places.reshape(-1, 3))
    state = context.getState(getEnergy=True, getForces=True)
    forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer).reshape(COUNT, sites, 3)
    arms = places - x[:, None]
    return state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole), forces.sum(1), np.cross(arms, forces).sum(1)


@pytest.mark.parametrize(("sites", "ewald"), [(3, False), (4, False), (3, True), (4, True)])
def test_a_configuration_has_the_energy_forces_and_torques_of_openmm(sites, ewald):
    """OpenMM's constant C differs from ours in the sixth digit, so energies of charges are scaled; its Ewald sum is right to about 1e-6."""
    x, R = cluster()
    system = entry("water").system(
        {"molecules": COUNT, "sites": sites, "density": COUNT / SIDE**3, "cutoff": CUTOFF, "accuracy": 1e-8 if ewald else 0.0}
    )
    space = system.space
    q = tuple(map(jax.numpy.asarray, (x, R)))
    energy, rise = evaluate(jax.value_and_grad(lambda e: system.potential(space.nudge(q, e), 0.0)), space.zero())
    theirs, force, torque = of_openmm(sites, x, R, ewald)
    assert abs(COULOMB - 138.935456) < 2e-4
    turned = np.einsum("kij,kj->ki", R, -np.asarray(rise[1]))
    assert abs(float(energy) - theirs) < 2e-5 * np.abs(theirs)
    np.testing.assert_allclose(-np.asarray(rise[0]), force, atol=2e-5 * np.abs(force).max())
    np.testing.assert_allclose(turned, torque, atol=2e-5 * np.abs(torque).max())


@pytest.mark.parametrize(("sites", "bond", "angle"), [(3, 0.1, 109.4712206), (4, 0.09572, 104.52)])
def test_the_picture_has_the_geometry_of_the_model(sites, bond, angle):
    system = entry("water").system({"molecules": 8, "sites": sites})
    x, R = on_a_lattice(8, inventory(system).box.lengths[0])
    drawing = entry("water").picture(system, (x[None], R[None]))
    oxygen, first, second = (np.asarray(part.at) for part in drawing.parts)
    arms = first - oxygen, second - oxygen
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), bond, rtol=1e-12)
    assert np.isclose(np.rad2deg(np.arccos(arms[0] @ arms[1] / bond**2)), angle, rtol=1e-9)
    assert all(np.allclose(line.first_at, oxygen) for line in drawing.lines)


def test_the_share_of_the_waves_falls_with_the_neighbours_of_each_body():
    """At half of the side wave vectors stay as many, and pairs near grow as N: a share that is right says where the cutoff is best, at a half."""
    from bismut.findings.explain import _long_range

    shares = []
    for n in (5, 8):
        potential = bm.sites(charges=np.resize([1.0, -1.0], n**3), electrostatics=bm.Ewald(1e-5))
        (_, line) = _long_range(bm.Verlet(bm.mechanical(bm.Euclidean(3) ** n**3, potential=potential, box=float(n))))
        assert "967 wave vectors" in line
        shares.append(float(line.split(": ")[1].split("%")[0]) / 100)
    few, many = (share / (1 - share) for share in shares)
    assert np.isclose(few / many, 512 / 125, rtol=0.06)  # shares are printed to a per cent


@pytest.mark.long
def test_explain_says_what_charges_do_beyond_the_cutoff():
    system = entry("water").system({"molecules": 8, "accuracy": 1e-2})
    first, second = (line for line in str(bm.explain(bm.Verlet(system))).split("long range")[1].splitlines()[:2])
    assert first.strip() == "Ewald sum of accuracy 0.01 in a box of 0.6215 × 0.6215 × 0.6215 within a conductor"
    (waves,) = (name for name in bm.energy_terms.names(system) if name.startswith("waves"))
    assert waves.endswith(f"{second.split('near part to ')[1].split(', ')[1].split(':')[0]})")
    share = float(second.split(": ")[1].split("%")[0])
    assert 90 < share <= 100  # ten thousand waves over 24 charges, beside 28 pairs
    reaction = entry("water").system({"molecules": 8})
    assert "reaction field of a medium with ε = 78.3 beyond 0.3107, in a box of 0.6215 × 0.6215 × 0.6215" in str(bm.explain(bm.Verlet(reaction)))
    ewald = bm.sites([[0.1, 0, 0], [-0.1, 0, 0]], charges=[0.5, -0.5], electrostatics=bm.Ewald(1e-2))
    bodies = {"mass": [1.0, 1.0], "inertia": np.ones((2, 3)), "box": 2.0, "check_forces": False}
    given = str(bm.explain(bm.Verlet(bm.rigid_bodies(potential=ewald, forces=lambda x, R: (0 * x, 0 * x), **bodies))))
    assert "wave vectors: in the energy alone, as forces are given" in given
    assert "long range" not in str(bm.explain(bm.Verlet(bm.mechanical(bm.Euclidean(3) ** 2, potential=bm.coulomb([1.0, 1.0])))))


def test_the_atoms_of_molecules_are_known_to_exports(tmp_path):
    """The atoms with names and bonds, where they are; the massless charge of TIP4P is none."""
    gsd = pytest.importorskip("gsd.hoomd")
    system = entry("water").system({"molecules": 8, "sites": 4})
    known = inventory(system)
    assert known.molecules[0].names == ("O", "H", "H", "M")
    again = type(known).of_data(known.data())
    np.testing.assert_array_equal(again.molecules[0].points, known.molecules[0].points)
    free = bm.rigid_bodies(mass=known.mass, inertia=known.moments)  # moves without a word, so that it costs nothing
    scheme = bm.Brownian(free, temperature=1.0, mobility=1e-9)
    x, R = on_a_lattice(8, known.box.lengths[0])
    run = bm.trajectory(scheme, scheme.start((x, R)), step=1e-6, steps=1, seed=1)
    (file,) = bm.export(run, tmp_path / "water.gsd", system=system, sites="molecules")
    with gsd.open(name=str(file), mode="r") as opened:
        frame = opened[0]
    assert frame.particles.N == 24
    assert [frame.particles.types[i] for i in frame.particles.typeid[:3]] == ["O", "H", "H"]
    assert frame.bonds.N == 16
    side = known.box.lengths[0]
    bond = frame.particles.position[frame.bonds.group[:, 1]] - frame.particles.position[frame.bonds.group[:, 0]]
    bond -= side * np.round(bond / side)
    np.testing.assert_allclose(np.linalg.norm(bond, axis=1), 0.09572, rtol=1e-5)


def test_the_study_of_steps_runs_in_a_small_size():
    """One round of two steps by one scheme: four temperatures, U per molecule and P, as numbers; temperatures are those of Maxwell's momenta."""
    done = rigid_water.study(8, schemes=("BAOAB",), steps=(1.0,), rounds=1, span=0.002, settle=0.002, trajectories=4, note=lambda text: None)
    (run,) = done.runs
    (values,) = run.rounds
    assert values.shape == (6,)
    assert np.isfinite(values).all()
    assert np.all(np.abs(values[:4] / 298.15 - 1) < 5 * np.sqrt(2 / 32))  # 32 or more squares each; false alarms below 1e-5
