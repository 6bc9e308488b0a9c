"""OpenMM's LangevinMiddle integrator is the same splitting up to a shift in time: positions have the same law at the same step.

⟨U⟩ is compared at steps large enough for a bias to be there, in OpenMM's units (kJ/mol, nm, ps, amu), on its Reference platform. Within 4 combined
standard errors; a false alarm has probability 6e−5 each. Seeds are fixed.
"""

import jax.numpy as jnp
import numpy as np
import openmm
import pytest
from openmm import unit

import bismut as bm

R = 0.00831446261815324  # kJ/mol/K
KT = 2.0


def openmm_energies(forces, count, places, step, friction, records, stride, seed):
    """Potential energies of unit masses after every stride, following two hundred strides to settle."""
    system = openmm.System()
    for _ in range(count):
        system.addParticle(1.0)
    for force in forces:
        system.addForce(force)
    integrator = openmm.LangevinMiddleIntegrator(KT / R, friction, step)
    integrator.setRandomNumberSeed(seed)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(places)
    context.setVelocitiesToTemperature(KT / R, seed)
    integrator.step(200 * stride)
    energies = []
    for _ in range(records):
        integrator.step(stride)
        energies.append(context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole))
    return np.array(energies)


def mean_and_error(values, batches=20):
    """Mean and standard error by batch means."""
    means = values[: len(values) // batches * batches].reshape(batches, -1).mean(1)
    return values.mean(), means.std(ddof=1) / np.sqrt(batches)


def compare(potential, space, places, theirs, *, step, steps, trajectories):
    """Our mean potential energy against theirs."""
    scheme = bm.Langevin(bm.mechanical(space, potential=potential), KT, 1.0)
    start = scheme.start(jnp.asarray(places, float), temperature=KT)
    result = bm.simulate(
        scheme, start, step=step, steps=steps, every=steps, trajectories=trajectories, seed=6, observe={"U": lambda s: potential(s.q)}
    )
    assert result.outcome.ok
    ours, our_error = float(result["U"].mean[-1]), float(result["U"].stderr[-1])
    mean, error = theirs
    assert abs(ours - mean) < 4 * np.hypot(our_error, error), (ours, our_error, mean, error)


def test_double_well():
    """U = 4 (x² − 1)² with harmonic y and z, at a step of 0.12, two thirds of a radian of the fastest motion at the bottom."""
    step, copies = 0.12, 500
    force = openmm.CustomExternalForce("4*(x^2-1)^2 + 0.5*(y^2+z^2)")
    for i in range(copies):
        force.addParticle(i, [])
    values = openmm_energies([force], copies, np.tile([1.0, 0.0, 0.0], (copies, 1)), step, 1.0, 200, 10, 1) / copies
    potential = lambda q: 4 * (q[0] ** 2 - 1) ** 2 + 0.5 * (q[1] ** 2 + q[2] ** 2)
    compare(potential, bm.Euclidean(3), [1.0, 0.0, 0.0], mean_and_error(values), step=step, steps=400, trajectories=60_000)


@pytest.mark.slow
def test_lennard_jones_cluster():
    """Seven atoms with pair energies 4(r⁻¹² − r⁻⁶) in a weak trap, step 0.03."""
    count = 7
    places = np.array([[0, 0, 0], [1.1, 0, 0], [-1.1, 0, 0], [0, 1.1, 0], [0, -1.1, 0], [0, 0, 1.1], [0, 0, -1.1]])
    force, trap = openmm.CustomNonbondedForce("4*(r^-12 - r^-6)"), openmm.CustomExternalForce("0.5*(x^2+y^2+z^2)")
    force.setNonbondedMethod(openmm.CustomNonbondedForce.NoCutoff)
    for i in range(count):
        force.addParticle([])
        trap.addParticle(i, [])
    theirs = mean_and_error(openmm_energies([force, trap], count, places, 0.03, 1.0, 20_000, 10, 5))
    i, j = np.triu_indices(count, 1)

    def potential(x):
        r2 = jnp.sum((x[i] - x[j]) ** 2, -1)
        return jnp.sum(4 * (r2**-6 - r2**-3)) + 0.5 * jnp.sum(x**2)

    compare(potential, bm.Euclidean(3) ** count, places, theirs, step=0.03, steps=600, trajectories=2048)
