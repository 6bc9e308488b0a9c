"""A value counts if every state it is made of is finite; nothing is lost silently, and a number over survivors says so."""

import functools
import json
from dataclasses import asdict

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.observers.histogram import Counted
from bismut.ensembles.observers.watcher import Clock, Looks
from tests.ensembles.test_failures import EVERY, RUN, N, scheme, start, steps_of

X = lambda state: state.q[0]
OBSERVED = {
    "record": X,
    "whole": bm.paths(range(N), every=1),
    "average": bm.time_average(X, every=EVERY),
    "far": bm.extremes(X, every=EVERY),
    "where": bm.histogram(X, range=(-3.0, 3.0), bins=12, every=EVERY),
    "levels": bm.quantiles(X, every=EVERY),
    "memory": bm.autocorrelation(X, lags=2, every=EVERY),
    "spread": bm.mean_squared_displacement(lags=2, every=EVERY),
    "strayed": bm.maximum_excursion(every=EVERY),
    "own": bm.Observer(init=X, update=lambda m, s: m + s.q[0], every=EVERY),
    "kept": bm.values(X, every=EVERY),
}


@functools.cache
def result() -> bm.Result:
    return bm.simulate(scheme(), start(), trajectories=N, every=EVERY, observe=OBSERVED, **RUN)


def looks() -> np.ndarray:
    """Values at the looks, NaN where a trajectory is gone."""
    return result().whole.q.values[:, ::EVERY, 0]


def test_looks_count_until_a_trajectory_fails():
    """Records, histograms, quantiles and values are made of looks."""
    seen = looks()
    finite = seen[np.isfinite(seen)]
    where = result().where
    assert int(where.counts.sum() + where.below + where.above) == finite.size
    assert int(where.nan) == 0
    assert int(result().levels.count) == finite.size
    assert float(result().levels.min) == finite.min()
    np.testing.assert_array_equal(result().record.count.values[: seen.shape[1]], np.isfinite(seen).sum(0))
    np.testing.assert_array_equal(result().kept.value.values[:, : seen.shape[1]], seen)


def test_what_is_made_of_whole_trajectories_counts_those_that_finished():
    seen = looks()
    finished = np.array([i not in steps_of(result()) for i in range(N)])
    assert 0 < finished.sum() < N
    assert float(result().average.mean) == pytest.approx(seen[finished].mean(1).mean(), rel=1e-14)
    assert int(result().average.count) == seen[finished].size
    assert float(result().far.max) == seen[finished].max()
    assert float(result().strayed.max) == pytest.approx(np.abs(seen - seen[:, :1])[finished].max(), rel=1e-12)
    for name in ("far", "own", "memory"):
        assert int(result()[name].count) == finished.sum()
    assert (result().spread.count.values == finished.sum()).all()


def test_every_number_over_survivors_is_marked_with_their_count():
    failed = len(result().outcome.failures)
    mark = f"⚠ over {N - failed} of {N} trajectories: {failed} failed"
    for name, report in result().observables.items():
        assert mark in repr(report), name
        assert report.dataset().attrs == {"asked": N, "run": N, "counted": N - failed, "failed": failed}
        assert mark in result()._repr_html_()
    assert result().record.mean.attrs["failed"] == failed
    assert "⚠" not in repr(bm.simulate(scheme(), start(), steps=1, step=0.01, observe={"x": X}))


def test_a_sweep_says_of_which_how_many_failed():
    """Each value has its own population, and a failure says at which value it happened."""
    wild = bm.mechanical(
        bm.Euclidean(1), potential=lambda q, parameters: -parameters["b"] * jnp.sum(q**4), noise=lambda q: 0.5 * q, parameters={"b": 1.0}
    )
    scheme = bm.VariationalEuler(wild)
    start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
    swept = bm.simulate(scheme, start, step=0.5, steps=12, trajectories=10, sweep={"b": [0.0, 1.0, 2.0]}, observe={"x": X})
    failed = swept.x.population.failed
    assert failed[0] == 0
    assert failed[1] > 0
    assert failed[2] > 0
    assert swept.x.dataset().attrs["counted"] == [10 - n for n in failed]
    assert f"{sum(failed)} of 30 trajectories failed" in str(swept.outcome)
    assert {failure.at for failure in swept.outcome.failures} == {"b = 1", "b = 2"}
    json.dumps(asdict(swept.provenance), allow_nan=False)


def test_histogram_counts_nan_apart_and_in_64_bits():
    """The old code counted NaN in the lowest bin, and 2³¹ values of one bin came out negative."""
    made = bm.histogram(lambda s: jnp.log(s.q[0]), range=(-1.0, 1.0), bins=4)
    wrong = bm.simulate(scheme(), start(), step=0.001, steps=3, trajectories=5, observe={"log": made}).log  # q = −1: its logarithm is no number
    assert int(wrong.nan) == 5 * 4
    assert int(wrong.counts.sum()) == 0
    assert "20 not numbers" in wrong.text
    few = made.collect(None, Looks(np.zeros((1, 4), np.int32), np.zeros(1), np.arange(4, dtype=np.uint64), None))
    assert few.dtype == np.int64
    many = made.merge(*[Counted(few.reshape(made.groups, -1) * 2**30)] * 2)
    report = made.report("log", many, Clock(0.0, 0.1, 1, 3, 4))
    assert int(report.counts[0]) == 2**33
    assert float(report.density[0]) == 2.0


def test_the_error_of_a_histogram_is_what_another_seed_changes():
    """Over twenty seeds the densities spread as the errors say: mean square of the ratio within a factor 1.6 of one, false-alarm rate below 1e−3."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * jnp.sum(q**2))
    bath = bm.Langevin(system, temperature=1.0, friction=1.0)
    begin = bath.start(jnp.zeros(1), temperature=1.0)
    observe = {"h": bm.histogram(X, range=(-2.0, 2.0), bins=8, every=2), "l": bm.quantiles(X, levels=(0.2, 0.5, 0.8), every=2)}
    runs = [bm.simulate(bath, begin, step=0.2, steps=40, trajectories=320, seed=s, observe=observe) for s in range(20)]
    for values, errors in (
        ([r.h.density.values for r in runs], [r.h.stderr.values for r in runs]),
        ([r.l.quantile.values for r in runs], [r.l.stderr.values for r in runs]),
    ):
        ratio = np.var(values, 0, ddof=1).mean() / np.mean(np.square(errors))
        assert 1 / 1.6 < ratio < 1.6
