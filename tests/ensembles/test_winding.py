"""On a circle turns are counted, on rotations the integrated rotation vector: a free rotor's mean-squared displacement is (ω τ)²."""

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
    result = bm.simulate(scheme, state, step=STEP, steps=STEPS, every=1, observe={"msd": bm.mean_squared_displacement(lags=LAGS, every=5)})
    lag = result.msd.mean.coords["lag"].values
    np.testing.assert_allclose(result.msd.mean.values, (3.0 * lag) ** 2, rtol=1e-9, atol=1e-12)
    assert lag[-1] * 3.0 > 4 * np.pi
