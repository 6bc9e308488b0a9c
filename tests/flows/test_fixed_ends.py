"""The converse of the principle, as a problem with fixed ends: a critical point of the action sum is a path of the flow."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows import action_sum, end_momenta, flow
from tests.flows.catalogue import once
from tests.systems import plane

STEP, STEPS = 0.05, 12


def test_a_critical_point_of_the_action_sum_is_a_path_of_the_flow():
    """Newton's method on 𝔊(q_1 … q_{N−1}) between two given ends, from a straight line, knows of no step. Its path is that of the flow from
    its first momentum, to round-off, on a system with a mass that depends on q, a magnetic term and two noises."""
    action = bm.VariationalEuler(plane())
    dW = jnp.asarray(np.sqrt(STEP) * np.random.default_rng(4).normal(size=(STEPS, 2)))
    first, last = jnp.array([0.3, -0.2]), jnp.array([0.8, 0.3])
    line = first + jnp.linspace(0, 1, STEPS + 1)[:, None] * (last - first)
    whole = lambda inner: jnp.concatenate([first[None], inner.reshape(-1, 2), last[None]])
    total = lambda inner: action_sum(action, whole(inner), STEP, dW)
    slope, curvature = once(jax.grad(total)), once(jax.hessian(total))
    inner = np.ravel(np.asarray(line)[1:-1])
    for _ in range(12):
        correction = np.linalg.solve(np.asarray(curvature(inner)), np.asarray(slope(inner)))
        inner = inner - correction
    assert np.abs(correction).max() < 1e-13
    path = np.asarray(whole(jnp.asarray(inner)))
    assert np.abs(path - line).max() > 0.01

    step = once(flow(action).advance)
    state = bm.State(first, end_momenta(action, jnp.asarray(path[0]), jnp.asarray(path[1]), STEP, dW[0])[0])
    for k in range(STEPS):
        state, solve = step(state, STEP, dW[k], STEP * k)
        assert solve.converged
        np.testing.assert_allclose(state.q, path[k + 1], rtol=0, atol=1e-12)
