"""Observables may depend on time, be kept trajectory by trajectory, and be waited for."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.observers.first_passage import PassageCounts, first_passage
from bismut.ensembles.observers.watcher import Clock
from bismut.errors import ShapeError
from tests.ensembles.test_failures import RUN as FAILING
from tests.ensembles.test_failures import N as MANY
from tests.ensembles.test_failures import scheme as failing
from tests.ensembles.test_failures import start as failing_start
from tests.ensembles.test_failures import steps_of
from tests.ensembles.test_run import scheme, start

X = lambda state: state.q[0]


@functools.cache
def result() -> bm.Result:
    observe = {
        "clock": lambda state, t: t + 0 * state.q[0],
        "both": bm.values(lambda state, t: jnp.array([state.q[0], t]), every=4),
        "path": bm.paths(range(6), every=1),
        "late": bm.first_passage(lambda state, t: state.q[0] - 0.5 - 0.05 * t),
    }
    return bm.simulate(scheme(), start(), step=0.05, steps=30, trajectories=6, seed=2, every=10, t0=0.5, observe=observe)


def test_an_observable_may_name_the_time():
    np.testing.assert_allclose(result().clock.mean.values, 0.5 + 0.05 * np.array([0, 10, 20, 30]), rtol=1e-12)


def test_values_are_kept_as_they_are():
    """At every look, and at the end whatever the stride."""
    values = result().both.value
    assert values.dims[:2] == ("trajectory", "time")
    marks = [*range(0, 30, 4), 30]
    np.testing.assert_array_equal(values.values[..., 0], result().path.q.values[:, marks, 0])
    np.testing.assert_allclose(values.values[0, :, 1], 0.5 + 0.05 * np.array(marks), rtol=1e-12)


def test_first_passage_is_that_of_the_paths():
    q, t = result().path.q.values[..., 0], result().path.q.coords["time"].values
    above = q > 0.5 + 0.05 * t
    late = result().late
    for k in range(len(t)):
        through = above[:, : k + 1].any(1)
        assert float(late.survival[k]) == pytest.approx(1 - through.mean(), abs=1e-12)
        assert int(late.passed[: k + 1].sum()) == through.sum()
    assert int(late.censored) == (~above.any(1)).sum()
    np.testing.assert_allclose(late.survival.coords["time"].values, t)


def test_those_who_fail_before_are_censored():
    """Kaplan and Meier by hand: they are at risk until they fail, and no longer."""
    g = lambda state: -1.6 - state.q[0]
    run = bm.simulate(
        failing(), failing_start(), trajectories=MANY, observe={"out": bm.first_passage(g), "path": bm.paths(range(MANY), every=1)}, **FAILING
    )
    q, gone = run.path.q.values[..., 0], steps_of(run)
    ends = []
    for i in range(MANY):
        seen = q[i, : gone.get(i, 40) + 1]
        ends.append((int(np.argmax(seen < -1.6)), True) if (seen < -1.6).any() else (len(seen) - 1, False))
    assert any(not passed and step < 40 for step, passed in ends)
    survival = 1.0
    for k in range(41):
        at_risk = sum(step >= k for step, _ in ends)
        survival *= 1 - sum(step == k and passed for step, passed in ends) / max(at_risk, 1)
        assert float(run.out.survival[k]) == pytest.approx(survival, abs=1e-12)
        assert int(run.out.at_risk[k]) == at_risk
    assert int(run.out.censored) == sum(not passed for _, passed in ends)


def test_greenwood():
    """Without censoring the survival is a share of n, and its error √(S(1 − S)/n)."""
    report = first_passage(X).report("t", PassageCounts(np.array([0, 3, 2, 0]), np.array([0, 0, 0, 5])), Clock(0.0, 1.0, 1, 3, 10))
    survival = np.array([1.0, 0.7, 0.5, 0.5])
    np.testing.assert_allclose(report.survival, survival)
    np.testing.assert_allclose(report.stderr, np.sqrt(survival * (1 - survival) / 10))
    assert float(report.restricted_mean) == pytest.approx(2.2)
    assert "5 of 10 passed, 5 censored" in report.text


def test_a_passage_is_that_of_one_number():
    with pytest.raises(ShapeError, match="one number"):
        bm.simulate(scheme(), start(), step=0.1, steps=2, observe={"x": bm.first_passage(lambda s: s.q)})
