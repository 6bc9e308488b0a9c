"""The Legendre transform and its inverse: v ↦ ∂L/∂v ↦ v, and H = ⟨p, v⟩ − L."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate
from bismut.spaces import pair
from tests import systems


def relativistic() -> bm.System:
    """L = −√(1 − v²): not quadratic in v; velocities below 1 have every momentum."""
    return bm.System(bm.Euclidean(2), lambda q, v: -jnp.sqrt(1 - v @ v))


@pytest.mark.parametrize(("system", "size"), [(systems.plane(), 1.0), (systems.vehicle(), 1.0), (systems.bodies(), 1.0), (relativistic(), 3.0)])
def test_velocity_of_momentum_of_velocity(system, size):
    state = systems.random_state(system, 4, size)
    v = evaluate(system.velocity, state.q, state.p)
    back = system.momentum(state.q, v)
    assert np.allclose(system.space.flatten(back), system.space.flatten(state.p), rtol=1e-13, atol=1e-13)
    assert np.isclose(system.energy(state), pair(state.p, v) - system.lagrangian(state.q, v), rtol=1e-14)


def test_momentum_never_asks_for_the_potential():
    """p = ∂T/∂v where L = T − U: without compilation, and in every trace, U would be evaluated for nothing."""
    calls = []
    counted = bm.mechanical(bm.Euclidean(2), mass=[1.0, 3.0], potential=lambda q: calls.append(1) or jnp.sum(q**4))
    calls.clear()
    counted.velocity(jnp.ones(2), jnp.ones(2))
    assert not calls


def test_relativistic_energy():
    """H = √(1 + p²), and the kinetic energy is not recognised as quadratic."""
    system = relativistic()
    p = jnp.array([2.0, -1.5])
    assert np.isclose(system.energy(bm.State(jnp.zeros(2), p)), np.sqrt(1 + 2.0**2 + 1.5**2), rtol=1e-13)
    assert not system.quadratic


@pytest.mark.parametrize("name", systems.ALL)
def test_quadratic_kinetic_energy_is_recognised(name):
    assert systems.ALL[name]().quadratic


def test_mass_is_the_hessian():
    system = systems.vehicle()
    mass = np.asarray(system.mass(system.space.origin()))
    assert np.allclose(mass, mass.T)
    assert mass[0, 4] == pytest.approx(0.3)


def test_functions_get_the_time_and_the_parameters_they_name():
    """A driven oscillator q̈ = −k q + cos t has, from rest at 0 with k = 4, the solution (cos t − cos 2t)/3."""
    system = bm.System(
        bm.Euclidean(1),
        lambda q, v, t, parameters: 0.5 * v @ v - 0.5 * parameters["k"] * q @ q + q[0] * jnp.cos(t),
        parameters={"k": 1.0},
    ).with_parameters({"k": 4.0})
    scheme = bm.Verlet(system)
    end = lambda n: bm.trajectory(scheme, scheme.start(jnp.zeros(1), velocity=jnp.zeros(1)), step=1 / n, steps=n).final.q[0]
    exact = (np.cos(1.0) - np.cos(2.0)) / 3
    errors = [abs(float(end(n)) - exact) for n in (20, 40)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    assert errors[1] < 1e-3
