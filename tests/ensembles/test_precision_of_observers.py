"""Observers are right where it is hard: large means, heavy tails, long sums in single precision, short trajectories."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.moments import KahanSum
from bismut.ensembles.observers.quantiles import Sketch, quantile
from bismut.ensembles.observers.time_average import BlockingMemory, plateau

X = lambda state: state.q[0]


def bath() -> bm.Langevin:
    return bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * jnp.sum(q**2)), temperature=1.0, friction=1.0)


def run(observe, **settings):
    scheme = bath()
    start = scheme.start(jnp.zeros(1), temperature=1.0)
    return bm.simulate(scheme, start, **({"step": 0.2, "steps": 100, "trajectories": 64, "seed": 1, "observe": observe} | settings))


def test_the_error_of_a_correlation_does_not_know_the_mean():
    """x and x + 30 have the same covariances, correlations and errors; the uncentred products of the old code gave seven times the error."""
    observe = {"low": bm.autocorrelation(X, lags=5), "high": bm.autocorrelation(lambda s: s.q[0] + 30.0, lags=5)}
    low, high = (run(observe)[name] for name in observe)
    for kind in ("covariance", "correlation", "stderr", "correlation_stderr"):
        np.testing.assert_allclose(getattr(high, kind).values, getattr(low, kind).values, rtol=1e-6, atol=1e-8)
    assert float(low.correlation_stderr[0]) < 1e-8  # the correlation at lag 0 is one, with no error
    assert 0.01 < float(low.stderr[0]) < 0.3


def test_the_error_of_a_correlation_is_what_another_seed_changes():
    """Over twenty seeds, mean square of the ratio within a factor 1.8 of one; false-alarm rate below 1e−3."""
    observe = {"m": bm.autocorrelation(lambda s: s.q[0] + 30.0, lags=6, every=2)}
    runs = [run(observe, seed=s).m for s in range(20)]
    for value, error in (("covariance", "stderr"), ("correlation", "correlation_stderr")):
        spread = np.var([getattr(r, value).values[1:] for r in runs], 0, ddof=1)
        told = np.mean([np.square(getattr(r, error).values[1:]) for r in runs], 0)
        assert 1 / 1.8 < (spread / told).mean() < 1.8


def test_quantiles_of_a_heavy_tail():
    """exp(4x) of a million normals: each quantile is right by rank to 0.3 %. The old bins of equal width gave 32 825 for the lower quartile."""
    x = np.exp(4 * np.random.default_rng(3).normal(size=1_000_000))
    parts = []
    for chunk in np.array_split(x, 7):
        sketch = Sketch()
        for few in np.array_split(chunk, 11):
            sketch.add(few)
        parts.append(sketch)
    whole = parts[0]
    for part in parts[1:]:
        whole.take(part)
    levels = (0.01, 0.25, 0.5, 0.75, 0.99)
    ranks = [(x <= value).mean() for value in quantile([whole], levels)]
    np.testing.assert_allclose(ranks, levels, atol=3e-3)
    assert quantile([whole], (0.0, 1.0)).tolist() == [x.min(), x.max()]
    assert whole.weighted()[1].sum() == len(x)


def test_quantiles_in_a_run():
    tail = run({"tail": bm.quantiles(lambda s: jnp.exp(4 * s.q[0]), levels=(0.25,), every=2)}, trajectories=400).tail
    assert float(tail.quantile[0]) == pytest.approx(np.exp(-4 * 0.6745), rel=0.25)
    assert 0 < float(tail.stderr[0]) < 0.02


def test_long_sums_in_single_precision():
    """Ones added to 2²⁵, which single precision alone does not notice."""
    total = KahanSum(jnp.float32(2**25), jnp.float32(0.0))
    for _ in range(8):
        total = total.add(jnp.float32(1.0))
    assert float(total.value()) == 2**25 + 8
    assert float(jnp.float32(2**25) + jnp.float32(1.0)) == 2**25


def test_block_means_in_single_precision():
    """Means of blocks of 1000 + x have the variances they have in double precision, to 1e−5; from sums of squares they would have none of their
    digits. 5000 = 1001110001000₂ samples: at some levels a block is left over."""
    x = np.float32(1000 + 0.1 * np.random.default_rng(7).normal(size=5000).cumsum() / 10)
    blocks = jax.jit(lambda x: jax.lax.scan(lambda blocks, one: (blocks.add(one), ()), BlockingMemory.begun(x[0]), x)[0])(x)
    mean, variances = jax.tree.map(lambda leaf: np.asarray(leaf)[None], blocks).variances(len(x))
    assert mean[0] == pytest.approx(x.astype(float).mean(), rel=1e-7)
    for level, variance in enumerate(variances):
        whole = len(x) >> level << level
        assert variance[0] == pytest.approx(x[:whole].astype(float).reshape(-1, 2**level).mean(1).var(), rel=1e-5, abs=1e-30)


def test_a_few_correlation_times_say_so():
    one = run({"x": bm.time_average(X)}, trajectories=1, steps=40).x
    assert not bool(one.trusted)
    assert "not to be trusted" in one.text
    many = run({"x": bm.time_average(X)}, steps=1000, burn_in=50).x
    assert bool(many.trusted)
    assert "trusted" not in many.text
    assert plateau(np.ones((3, 1)), np.array([[8], [4], [2]]), 8)[1].dtype == bool


def test_own_observer_sees_the_start_once():
    count = bm.Observer(init=lambda s: 0, update=lambda m, s: m + 1, finish=lambda m: m * 1.0, every=10)
    assert float(run({"n": count}).n.mean) == 10
