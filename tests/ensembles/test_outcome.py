"""Numerical failure is an outcome that names trajectory, step, residual and remedy; the other trajectories finish."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import SimulationError


def test_unsolvable_step_is_reported():
    """The midpoint step in U = −q³/3 solves v = p + (h/2)(q + hv/2)², which at h = 2, q = p = 1 has no real root; at q = p = 0 it has."""
    scheme = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.sum(q**3) / 3))
    start = scheme.start(jnp.array([[0.0], [1.0]]), momentum=jnp.array([[0.0], [1.0]]))
    result = bm.simulate(scheme, start, step=2.0, steps=5, trajectories=2, seed=1)
    assert not result.outcome.ok
    assert [(failure.trajectory, failure.step) for failure in result.outcome.failures] == [(1, 0)]
    assert result.outcome.failures[0].residual > 1e-6
    for words in ("trajectory 1, step 0", "residual", "smaller step", "bounded"):
        assert words in str(result.outcome)
    assert np.array_equal(np.asarray(result.final.q[0]), [0.0])
    assert [int(n) for n in result.energy.count] == [2, 1, 1, 1, 1, 1]
    with pytest.raises(SimulationError, match="1 of 2 trajectories failed"):
        bm.simulate(scheme, start, step=2.0, steps=5, trajectories=2, seed=1, on_failure="raise")


def test_blow_up_is_reported_with_its_step():
    """q̈ = q³ from rest at 3 under an explicit scheme with a large step leaves the range of numbers."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: -0.25 * jnp.sum(q**4)))
    start = scheme.start(jnp.array([3.0]), velocity=jnp.zeros(1))
    result = bm.simulate(scheme, start, step=1.0, steps=40, trajectories=3)
    single = bm.trajectory(scheme, start, step=1.0, steps=40)
    first_bad = int(np.flatnonzero(~np.isfinite(np.asarray(single.p))[:, 0])[0]) - 1  # the step that leads there
    assert {failure.step for failure in result.outcome.failures} == {first_bad}
    assert "ceased to be finite" in str(result.outcome)
    assert int(result.energy.count[-1]) == 0
