"""A mean is within bias + 2 standard errors of the truth as often as stated, and says what limits it."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import bismut as bm
from bismut.errors import DomainError
from tests.response.problems import PROBLEMS, langevin_oscillator, oscillator, shaken_spring


@pytest.mark.parametrize("problem", PROBLEMS)
def test_means_are_within_what_is_stated(problem):
    """Three standard errors beside the bias: a false alarm in 0.3 % of seeds; this seed is fixed."""
    scheme, start, of, time, exact = problem()
    mean = bm.expectation(scheme, start, of=of, time=time, tolerance=0.02, seed=3)
    assert mean.met
    assert mean.error <= 0.02
    assert abs(mean.value - exact) <= mean.bias + 3 * mean.stderr


def test_the_bias_of_a_coarse_step_is_seen_and_removed():
    """Of first order: at the smallest step used, the mean itself is off by more than what is stated of the extrapolated one."""
    scheme, start, of, time, exact = shaken_spring()
    mean = bm.expectation(scheme, start, of=of, time=time, tolerance=0.01, seed=1)
    raw = sum(row[2] for row in mean.levels)
    assert mean.extrapolated
    assert abs(raw - exact) > mean.error
    assert abs(mean.value - exact) <= mean.bias + 3 * mean.stderr
    assert abs(mean.order - 1) < 0.5


def test_components_are_each_held_to_the_tolerance():
    scheme, start = oscillator()
    mean = bm.expectation(scheme, start, of=lambda s: jnp.array([s.q[0], s.p[0]]), time=1.0, tolerance=0.03)
    assert mean.value.shape == mean.bias.shape == mean.stderr.shape == (2,)
    assert np.all(mean.bias + 2 * mean.stderr <= 0.03)


def test_equal_seeds_give_equal_answers_and_a_limit_of_work_is_reported():
    scheme, start, of, time, _ = langevin_oscillator()
    few = [bm.expectation(scheme, start, of=of, time=time, tolerance=1e-4, most=2e5, seed=5) for _ in range(2)]
    assert few[0].value == few[1].value
    assert not few[0].met
    assert few[0].limited_by == "trajectories"
    assert "NOT within 0.0001" in repr(few[0])


def test_a_scheme_that_is_worse_than_it_claims_is_not_extrapolated():
    """A claim of order 3 for a scheme of order 1: the measured order contradicts it, and the whole difference is the bias."""

    class Boast(bm.VariationalEuler):
        claims = bm.VariationalEuler.claims._replace(weak_order=3.0)

    scheme, start, of, time, exact = shaken_spring()
    boast = Boast(scheme.system)
    mean = bm.expectation(boast, start, of=of, time=time, tolerance=0.05, seed=2)
    assert not mean.extrapolated
    assert "measured order is not the claimed one" in repr(mean)
    assert abs(mean.value - exact) <= mean.bias + 3 * mean.stderr


def test_many_starts_are_refused():
    scheme, _ = oscillator()
    many = scheme.start(jnp.ones((4, 1)), velocity=jnp.zeros((4, 1)))
    with pytest.raises(DomainError, match="give one start"):
        bm.expectation(scheme, many, of=lambda s: s.q[0], time=1.0)
    with pytest.raises(DomainError, match="tolerance must be a positive number"):
        bm.expectation(scheme, many, of=lambda s: s.q[0], time=1.0, tolerance=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_coverage(problem):
    """200 seeds: misses of bias + 2 stderr are no more than a binomial with 4.55 % has; false-alarm rate 1e-4 for each problem."""
    scheme, start, of, time, exact = problem()
    means = [bm.expectation(scheme, start, of=of, time=time, tolerance=0.03, seed=seed) for seed in range(200)]
    misses = sum(abs(mean.value - exact) > mean.bias + 2 * mean.stderr for mean in means)
    assert all(mean.met for mean in means)
    assert misses <= binom.ppf(1 - 1e-4, 200, 0.0455)
    deviations = np.array([(mean.value - exact) / mean.stderr for mean in means])
    assert deviations.std() > 0.6  # and errors are not inflated
