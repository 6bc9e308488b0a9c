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
