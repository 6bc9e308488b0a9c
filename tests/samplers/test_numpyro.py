"""NumPyro's potential_fn is a log-density: eight schools as NumPyro states them, by machine code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm


def test_eight_schools_of_numpyro():
    """Draws on the unconstrained numbers, where τ is its logarithm; 0.4 is 5 standard errors of the mean of 2000 effective draws. In the
    long tail of τ some trajectories diverge at this step, with any scale."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions
    from numpyro.infer.util import initialize_model

    y, sigma = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12]), jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def model():
        mu = numpyro.sample("mu", distributions.Normal(0, 5))
        tau = numpyro.sample("tau", distributions.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            z = numpyro.sample("z", distributions.Normal(0, 1))
            numpyro.sample("y", distributions.Normal(mu + tau * z, sigma), obs=y)

    info = initialize_model(jax.random.key(0), model)
    space = {name: bm.Real(value.shape) for name, value in info.param_info.z.items()}
    settings = {"chains": 128, "draws": 60, "burn_in": 60, "leapfrogs": 3, "seed": 1, "progress": False}
    draws = bm.sample(space, lambda p: -info.potential_fn(p), mode="native", **settings)
    assert draws.record.engine == "native"
    assert draws["z"].shape == (128, 60, 8)
    assert np.mean(draws["mu"]) == pytest.approx(4.4, abs=0.4)
