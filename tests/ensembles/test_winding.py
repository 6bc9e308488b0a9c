"""On a circle turns are counted, on rotations the integrated rotation vector: a free rotor's mean-squared displacement is (ω τ)²."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

STEP, STEPS, LAGS = 0.1, 400, 50


@pytest.mark.parametrize(
    ("space", "start", "omega"), [(bm.Circle(), jnp.zeros(()), jnp.asarray(3.0)), (bm.SO3(), jnp.eye(3), jnp.array([0.0, 0.0, 3.0]))], ids=str
)
def test_a_free_rotor_is_ballistic(space, start, omega):
    """Forty time units at three radians each are 19 turns: no angle on the circle could tell. SO(3) turns about a principal axis."""
    scheme = bm.VariationalEuler(bm.mechanical(space, mass=2.0), **({"retraction": "exp"} if space == bm.SO3() else {}))
    state = scheme.start(start, velocity=omega)
    result = bm.simulate(
        scheme,
        state,
        step=STEP,
        steps=STEPS,
        every=1,
        observe={"msd": bm.mean_squared_displacement(lags=LAGS, every=5), "far": bm.maximum_excursion()},
    )
    lag = result.msd.mean.coords["lag"].values
    np.testing.assert_allclose(result.msd.mean.values, (3.0 * lag) ** 2, rtol=1e-9, atol=1e-12)
    assert lag[-1] * 3.0 > 4 * np.pi
    np.testing.assert_allclose(result.far.mean.values, 3.0 * STEP * STEPS, rtol=1e-9)


@dataclass(frozen=True)
class Positive(bm.Space):
    """q > 0 with q ⊕ v = q eᵛ: a space with `move` and `subtract` alone."""

    def origin(self, dtype=float):
        return jnp.ones(1, dtype)

    def zero(self, dtype=float):
        return jnp.zeros(1, dtype)

    def move(self, q, velocity, time=1.0):
        return q * jnp.exp(time * velocity)

    def subtract(self, q1, q0):
        return jnp.log(q1 / q0)


@pytest.mark.parametrize("space", [Positive(), Positive() ** 2, Positive() * bm.SO3()], ids=str)
def test_displacements_on_a_space_of_ones_own(space):
    """Free motion with velocities ω, everywhere at once: |ω|² τ², whatever the factors; on rotations by angles, although steps are Cayley's."""
    scheme = bm.System(space, lambda q, v: 0.5 * sum(jnp.sum(part * part) for part in jax.tree.leaves(v)))
    scheme = bm.VariationalEuler(scheme)
    omega = jax.tree.map(lambda leaf: jnp.zeros_like(leaf).at[..., -1].set(0.5), space.zero())
    start = scheme.start(space.origin(), velocity=omega)
    result = bm.simulate(scheme, start, step=0.01, steps=40, every=1, observe={"msd": bm.mean_squared_displacement(lags=20, every=2)})
    lag = result.msd.mean.coords["lag"].values
    square = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(omega))
    np.testing.assert_allclose(result.msd.mean.values, square * lag**2, rtol=1e-4, atol=1e-12)
