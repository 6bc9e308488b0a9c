"""Functions whose derivatives the user has written."""

import jax
import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.errors import BismutError

quartic = jax.custom_vjp(lambda x: 0.25 * x**4)
quartic.defvjp(lambda x: (quartic(x), x), lambda x, g: (g * x**3,))


def test_a_reverse_derivative_alone_is_enough_where_only_forces_are_taken():
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: jnp.sum(quartic(q))))
    state = bm.State(jnp.ones(1), jnp.zeros(1))
    plain = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: jnp.sum(0.25 * q**4)))
    step = lambda scheme: bm.trajectory(scheme, state, step=0.1, steps=3, seed=0).q
    assert jnp.allclose(step(scheme), step(plain), rtol=1e-13)


def test_where_forward_derivatives_are_needed_the_function_is_named_with_its_remedy():
    with pytest.raises(BismutError, match=r"lagrangian: .*custom_vjp.*jax\.custom_jvp"):
        bm.Midpoint(bm.System(space=bm.Euclidean(1), lagrangian=lambda q, v: jnp.sum(0.5 * v * v + quartic(v)) - q @ q)).start(
            jnp.ones(1), velocity=jnp.ones(1)
        )


drag = jax.custom_vjp(lambda v: -0.3 * v * jnp.abs(v))
drag.defvjp(lambda v: (drag(v), v), lambda v, g: (-0.6 * g * jnp.abs(v),))
IMPLICIT = {
    "midpoint": bm.Midpoint,
    "trapezoid": bm.Verlet,
    "phase space": bm.HamiltonianMidpoint,
    "implicit Euler": bm.ImplicitEulerMaruyama,
    "bath": lambda system: bm.Langevin(system, 1.0, 1.0, bm.GLA(bm.Midpoint)),
}


def dragged(force, **options) -> bm.System:
    return bm.mechanical(bm.Euclidean(2), mass=1.3, potential=lambda q: jnp.sum(jnp.cos(q)), force=lambda q, v: force(v), **options)


@pytest.mark.parametrize("make", IMPLICIT.values(), ids=IMPLICIT)
def test_a_force_that_sees_the_velocity_is_solved_by_reverse_mode(make):
    state = bm.State(jnp.array([1.0, 0.5]), jnp.array([0.3, -0.7]))
    step = lambda force: bm.trajectory(make(dragged(force)), state, step=0.2, steps=3, seed=0).q
    assert jnp.allclose(step(drag), step(lambda v: -0.3 * v * jnp.abs(v)), rtol=1e-12)


def test_under_constraints_too():
    state = bm.State(jnp.array([1.0, 0.0]), jnp.array([0.0, -0.7]))
    on_circle = lambda force: bm.Midpoint(dragged(force, constraint=lambda q: jnp.array([q @ q - 1.0])))
    step = lambda force: bm.trajectory(on_circle(force), state, step=0.1, steps=3, seed=0).q
    assert jnp.allclose(step(drag), step(lambda v: -0.3 * v * jnp.abs(v)), rtol=1e-11)


def test_the_derivative_of_an_implicit_step_is_refused_in_a_sentence():
    scheme = bm.Midpoint(dragged(drag))
    end = lambda q: bm.trajectory(scheme, bm.State(q, jnp.array([0.3, -0.7])), step=0.2, steps=1, seed=0).q[-1, 0]
    with pytest.raises(BismutError, match=r"custom_vjp.*jax\.custom_jvp"):
        jax.grad(end)(jnp.array([1.0, 0.5]))
