"""Time is an argument: without one a function of t is refused, with a fixed clock it is evaluated there, whatever time is given."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError

Q, V, H = jnp.array([0.3, -0.4]), jnp.array([0.2, 0.5]), 0.1
moving = bm.mechanical(
    bm.Euclidean(2),
    potential=lambda q, t: jnp.cos(q[0] - t) + q @ q,
    force=lambda q, v, t: -t * v,
    noise=lambda q, t: jnp.array([t * q[1]]),
)
still = bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q)
QUESTIONS = {
    "potential": lambda system, *t: system.potential(Q, *t),
    "energy": lambda system, *t: system.energy(bm.State(Q, V), *t),
    "force": lambda system, *t: system.force(Q, V, *t),
    "noise": lambda system, *t: system.noise(Q, *t),
    "hamiltonian": lambda system, *t: system.hamiltonian(Q, V, *t),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_function_of_t_without_a_time_is_refused(ask):
    with pytest.raises(BismutError, match=r"depends on t.*system\.at\(t\)"):
        ask(moving)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_fixed_clock_stands_for_the_time(ask):
    fixed = moving.at(0.7)
    assert np.array_equal(ask(fixed), ask(moving, 0.7))
    assert np.array_equal(ask(fixed, 1.9), ask(moving, 0.7))
    assert moving.time_dependent
    assert not fixed.time_dependent


@pytest.mark.parametrize("ask", [QUESTIONS["potential"], QUESTIONS["energy"]], ids=["potential", "energy"])
def test_what_does_not_depend_on_time_needs_none(ask):
    assert np.array_equal(ask(still), ask(still, 5.0))


def test_pairs_and_wrapped_functions_depend_on_time_where_their_parts_do():
    points = bm.Euclidean(3) ** 2
    makes = lambda u: bm.mechanical(points, potential=bm.soft_spheres() + bm.pair_potential(u))
    assert makes(lambda a, b, t: t * (a.x - b.x) @ (a.x - b.x)).time_dependent
    assert not makes(lambda a, b: (a.x - b.x) @ (a.x - b.x)).time_dependent
    q = jnp.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.1]])
    with pytest.raises(BismutError, match="depends on t"):
        makes(lambda a, b, t: t * (a.x - b.x) @ (a.x - b.x)).potential(q)


def test_a_thermostat_that_changes_in_time_makes_its_system_time_dependent():
    noisy = bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q, noise=lambda q: q)
    assert not bm.thermalize(noisy, 0.5).time_dependent
    assert bm.thermalize(noisy, lambda t: 0.5 + t).time_dependent


def test_paths_of_an_action_that_depends_on_time_need_it():
    scheme, dW = bm.Midpoint(moving), jnp.zeros(1)
    with pytest.raises(BismutError, match="no time was given"):
        bm.end_momenta(scheme, Q, Q + H * V, H, dW)
    fixed = bm.end_momenta(bm.Midpoint(moving.at(0.7)), Q, Q + H * V, H, dW)
    assert not np.allclose(fixed[0], bm.end_momenta(scheme, Q, Q + H * V, H, dW, 2.0)[0])


def test_the_structure_of_a_step_that_depends_on_time_needs_it():
    state, dW = bm.State(Q, V), jnp.array([0.3])
    resting = bm.mechanical(bm.Euclidean(2), potential=lambda q, t: jnp.cos(q[0] - t) + q @ q, noise=lambda q, t: jnp.array([t * q[1] ** 2]))
    with pytest.raises(BismutError, match=r"Midpoint.* depends on t, but no time was given"):
        bm.symplectic_defect(bm.Midpoint(resting), state, H, dW)
    assert bm.symplectic_defect(bm.Midpoint(resting), state, H, dW, 0.7) < 1e-14
    assert bm.symplectic_defect(bm.Midpoint(resting.at(0.7)), state, H, dW) < 1e-14


@pytest.mark.parametrize("quantity", [bm.energy, bm.potential_energy, bm.energy_terms], ids=repr)
def test_an_observable_that_depends_on_time_needs_it(quantity):
    """Also of a scheme; what is evaluated at a given time is what the system is then."""
    state = bm.State(Q, V)
    for of in (moving, bm.Midpoint(moving)):
        with pytest.raises(BismutError, match="depends on t, but no time was given"):
            quantity(of, state)
        assert np.array_equal(quantity(of, state, 0.7), quantity(moving.at(0.7), state))
    assert quantity(moving, state, 0.7) != quantity(moving, state, 0.0)
