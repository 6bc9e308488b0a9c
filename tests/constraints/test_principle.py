"""The constrained principle in its discrete form, along a computed path:  d𝔊 = −G(q_k)ᵀΛ_k,  with multipliers Λ_k at the inner points."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows import action_differential, action_sum, flow
from tests.constraints.systems import sphere, start_of
from tests.flows.catalogue import once

STEP, STEPS = 0.05, 10


@cache
def walked():
    """An action, the points of a path on the surface, its increments, d𝔊 and G at its inner points."""
    action = bm.VariationalEuler(sphere())
    system = action.system
    dW = jnp.asarray(np.sqrt(STEP) * np.random.default_rng(4).normal(size=(STEPS, system.channels)))
    state, step = start_of(action), once(flow(action).advance)
    points = [np.asarray(state.q)]
    for k in range(STEPS):
        state, solve = step(state, STEP, dW[k], STEP * k)
        assert solve.converged
        points.append(np.asarray(state.q))
    path = jnp.asarray(np.stack(points))
    slopes = np.asarray(action_differential(action, path, STEP, dW))
    G = np.asarray(once(jax.vmap(jax.jacfwd(system.constraint)))(path[1:-1]))
    return action, path, dW, slopes, G


def test_the_differential_is_normal_to_the_surface():
    """d𝔊 does not vanish along a solution: it is a combination of the gradients of g, whose coefficients are the multipliers."""
    _, _, _, slopes, G = walked()
    Q = np.linalg.qr(np.swapaxes(G, 1, 2))[0]
    along = slopes - np.einsum("kij,klj,kl->ki", Q, Q, slopes)
    assert np.abs(along).max() < 1e-12
    assert np.abs(slopes).max(1).min() > 1e-3


def test_the_second_statement_of_the_constrained_theorem():
    """With λ_{k−1} − λ_k = Λ_k the path and λ are a critical point of Σ S_d + Σ ⟨λ_k, g(q_{k+1}) − g(q_k)⟩ between fixed ends, varied in ℝⁿ."""
    action, path, dW, slopes, G = walked()
    reactions = np.stack([np.linalg.lstsq(rows.T, -slope, rcond=None)[0] for rows, slope in zip(G, slopes, strict=True)])
    multipliers = jnp.asarray(np.concatenate([np.zeros((1, G.shape[1])), -np.cumsum(reactions, 0)]))

    def augmented(inner, multipliers):
        whole = jnp.concatenate([path[:1], inner, path[-1:]])
        g = jax.vmap(action.system.constraint)(whole)
        return action_sum(action, whole, STEP, dW) + jnp.sum(multipliers * (g[1:] - g[:-1]))

    by_points, by_multipliers = once(jax.grad(augmented, (0, 1)))(path[1:-1], multipliers)
    assert np.abs(by_points).max() < 1e-12
    assert np.abs(by_multipliers).max() < 1e-13
    assert np.abs(np.asarray(multipliers)[1:]).min() > 1e-3
