"""physical-validation, an independent judge: kinetic energy, equipartition and the ratio of two ensembles.

Samples are the last states of independent trajectories. p values above 1e−4, deviations below 3.9 standard deviations; seeds are fixed.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import physical_validation as judge
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate
from tests.heat.fluid import INERTIA, KT, MASS, fluid, start_point

UNITS = judge.data.UnitData(
    kb=1.0,
    energy_conversion=1.0,
    length_conversion=1.0,
    volume_conversion=1.0,
    temperature_conversion=1.0,
    pressure_conversion=1.0,
    time_conversion=1.0,
)
COUNT = 4000
QUIET = {"verbosity": 0, "data_is_uncorrelated": True}


def corners(mass, inertia):
    """Four equal point masses with the mass and the principal moments of each body: a tetrahedron in a box of half-edges a, b, c."""
    half = np.sqrt((inertia.sum(1, keepdims=True) / 2 - inertia) / mass[:, None])
    return half[:, None, :] * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])


def bodies_at(kT):
    """Positions and velocities of the point masses, and the potential energy, of K rigid bodies in equilibrium."""
    scheme = bm.Langevin(fluid(), kT, rate=1.0)
    result = bm.simulate(scheme, scheme.start(start_point(), temperature=kT), step=0.05, steps=240, trajectories=COUNT, seed=3)
    (x, R), (p, m) = result.final.q, result.final.p
    r = corners(MASS, INERTIA)
    place = x[:, :, None] + np.einsum("tkij,kaj->tkai", R, r)
    turning = np.cross((m / INERTIA)[:, :, None], r)
    speed = (p / MASS[:, None])[:, :, None] + np.einsum("tkij,tkaj->tkai", R, turning)
    U = np.asarray(evaluate(jax.vmap(lambda x, R: fluid().potential((x, R))), x, R))
    return place.reshape(COUNT, -1, 3), speed.reshape(COUNT, -1, 3), np.repeat(MASS / 4, 4), U


@functools.cache
def pendulums(count) -> bm.System:
    return bm.mechanical(
        bm.Torus(count), mass=np.linspace(1, 2, count), potential=lambda q: -jnp.sum(jnp.cos(q)) - 0.5 * jnp.sum(jnp.cos(jnp.diff(q)))
    )


def pendulums_at(kT, count=6):
    """A gas of coupled pendulums, each a particle with one degree of freedom."""
    system = pendulums(count)
    scheme = bm.Langevin(system, kT, 1.0)
    result = bm.simulate(scheme, scheme.start(jnp.zeros(count), temperature=kT), step=0.05, steps=300, trajectories=COUNT, seed=4)
    q, p = result.final.q, result.final.p
    mass = np.linspace(1, 2, count)
    flat = lambda a: np.stack([a, np.zeros_like(a), np.zeros_like(a)], -1)
    return flat(q), flat(p / mass), mass, np.asarray(evaluate(jax.vmap(system.potential), q))


def data(kT, place, speed, mass, U, per_molecule, constraints_per_molecule):
    molecules = len(mass) // per_molecule
    kinetic = 0.5 * np.einsum("a,tai->t", mass, speed**2)
    return judge.data.SimulationData(
        units=UNITS,
        dt=0.05,
        system=judge.data.SystemData(
            natoms=len(mass),
            nconstraints=molecules * constraints_per_molecule,
            ndof_reduction_tra=0,
            ndof_reduction_rot=0,
            mass=mass,
            molecule_idx=np.arange(molecules) * per_molecule,
            nconstraints_per_molecule=np.full(molecules, constraints_per_molecule),
        ),
        ensemble=judge.data.EnsembleData("NVT", natoms=len(mass), volume=1.0, temperature=kT),
        observables=judge.data.ObservableData(kinetic_energy=kinetic, potential_energy=U, total_energy=kinetic + U),
        trajectory=judge.data.TrajectoryData(place, speed),
    )


CASES = {"rigid bodies": (bodies_at, 4, 6, (KT, 1.25 * KT)), "pendulums": (pendulums_at, 1, 2, (0.8, 1.0))}


@pytest.mark.parametrize("name", [pytest.param("rigid bodies", marks=pytest.mark.slow), "pendulums"])
def test_the_judge_accepts(name):
    make, atoms, constraints, temperatures = CASES[name]
    samples = make(temperatures[0])
    cold = data(temperatures[0], *samples, atoms, constraints)
    hot = data(temperatures[1], *make(temperatures[1]), atoms, constraints)
    assert judge.kinetic_energy.distribution(cold, strict=True, **QUIET) > 1e-4
    if name == "rigid bodies":
        p_values = judge.kinetic_energy.equipartition(cold, strict=True, **QUIET)
        assert len(p_values) >= 3
        assert min(p_values) > 1e-4
    assert max(judge.ensemble.check(cold, hot, **QUIET)) < 3.9
    place, speed, mass, U = samples
    scaled = data(temperatures[0], place, 1.05 * speed, mass, U, atoms, constraints)
    assert judge.kinetic_energy.distribution(scaled, strict=True, **QUIET) < 1e-4
