"""Simulation-based calibration: of parameters drawn from a prior and data drawn given them, the rank among draws of the posterior is uniform.

    s log-normal,   b_j ~ N(0, s²),   R uniform on SO(3),   y_k = R v_k + b + noise:       a hierarchical model with a rotation

The truth is a draw of its own posterior, so a stationary chain runs through it: a random number of draws before it, the others after, both by
the kernel from the truth, because trajectories with fresh momenta are reversible. Ranks are then uniform exactly, however slow the chain is
(Talts et al., 2018; Säilynoja et al., 2022).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import bismut as bm

MARKS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
SPACE = {"R": bm.SO3(), "b": bm.Real((3,)), "s": bm.Positive()}
RANKS = ("s", "b_0", "R_22", "R_01")


def posterior(y, slip):
    """log p(R, b, s | y), of a prior of s that is `slip` too far up."""

    def log_density(p):
        residual = y - MARKS @ p["R"].T - p["b"]
        prior = -0.5 * jnp.sum(p["b"] ** 2) / p["s"] ** 2 - 4 * jnp.log(p["s"]) - 0.5 * (jnp.log(p["s"]) + 1 - slip) ** 2 / 0.09
        return prior - 0.5 * jnp.sum(residual**2) / 0.25

    return log_density


def ranks(sets, draws, thin, *slips):
    """For each slip: (set, 4) ranks 0 … draws, and how often trajectories were accepted."""

    def one(key, slip):
        keys = jax.random.split(key, 7)
        s = jnp.exp(-1 + 0.3 * jax.random.normal(keys[0]))
        truth = {"R": bm.SO3().random(keys[1]), "b": s * jax.random.normal(keys[2], (3,)), "s": s}
        y = MARKS @ truth["R"].T + truth["b"] + 0.5 * jax.random.normal(keys[3], (4, 3))
        kernel = bm.malt(SPACE, posterior(y, slip), step=0.18, leapfrogs=6)
        seen = lambda p: jnp.stack([p["s"], p["b"][0], p["R"][2, 2], p["R"][0, 1]])

        def leap(state, key):
            state, info = kernel.step(key, state)
            return state, (seen(state.position), info.is_accepted)

        before = jax.random.randint(keys[4], (), 0, draws + 1)  # draws that precede the truth; the chain turns back to it after those
        turn = jnp.arange(draws * thin) == before * thin
        begun = kernel.init(truth)
        from_truth = lambda state, data: leap(jax.tree.map(lambda a, b: jnp.where(data[1], a, b), begun, state), data[0])
        _, (values, accepted) = jax.lax.scan(from_truth, begun, (jax.random.split(keys[5], draws * thin), turn))
        return jnp.sum(values[thin - 1 :: thin] < seen(truth), 0), accepted.mean()

    many = jax.jit(lambda keys, slip: jax.lax.map(lambda key: one(key, slip), keys, batch_size=min(sets, 500)))
    done = [many(jax.random.split(jax.random.key(1), sets), slip) for slip in slips]
    return [(np.asarray(found), float(accepted.mean())) for found, accepted in done]


def distance(found, draws):
    """χ² of the histograms, with `draws` degrees of freedom each."""
    expected = len(found) / (draws + 1)
    return np.array([((np.bincount(rank, minlength=draws + 1) - expected) ** 2).sum() / expected for rank in found.T])


@pytest.mark.long
def test_ranks_are_uniform():
    """300 sets, 6 ranks; each of four χ² below its quantile of 1 − 10⁻⁴: a false alarm in 2500. A prior of s that is 0.3 off is found."""
    (found, accepted), (wrong, _) = ranks(300, 5, 8, 0.0, 0.3)
    assert 0.6 < accepted < 0.98
    assert dict(zip(RANKS, distance(found, 5) < chi2.isf(1e-4, 5), strict=True)) == dict.fromkeys(RANKS, True)
    assert distance(wrong, 5)[0] > chi2.isf(1e-4, 5)


@pytest.mark.slow
def test_ranks_of_many_sets_are_uniform():
    """2000 sets, 16 ranks, by the same quantile: a false alarm in 2500."""
    ((found, _),) = ranks(2000, 15, 20, 0.0)
    assert (distance(found, 15) < chi2.isf(1e-4, 15)).all()
