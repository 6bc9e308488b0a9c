"""A mean is within bias + 2 standard errors of the truth as often as stated, and says what limits it."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import bismut as bm
from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.errors import BismutError, DomainError
from bismut.response.expectation import _follow, _Run
from bismut.response.levels import Level
from tests.response.problems import PROBLEMS, langevin_oscillator, oscillator, shaken_spring


@pytest.mark.long
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


class Boast(bm.VariationalEuler):
    """Of order 1, with a claim of another one."""

    def __init__(self, system, claimed):
        super().__init__(system)
        object.__setattr__(self, "claims", bm.VariationalEuler.claims._replace(weak_order=float(claimed)))


def test_a_scheme_that_is_worse_than_it_claims_is_not_extrapolated():
    """A claim of order 3 for a scheme of order 1: the measured order contradicts it, and the whole difference is the bias."""
    scheme, start, of, time, exact = shaken_spring()
    mean = bm.expectation(Boast(scheme.system, 3), start, of=of, time=time, tolerance=0.05, seed=2)
    assert not mean.extrapolated
    assert "measured order is not the claimed one" in repr(mean)
    assert abs(mean.value - exact) <= mean.bias + 3 * mean.stderr


@pytest.mark.long
def test_a_claim_that_the_measured_order_barely_allows_is_covered_by_the_bias():
    """A claim of 2 for order 1, which the error of the order often hides: misses in 40 seeds as a binomial with 4.55 %, a false alarm in 2e-4."""
    scheme, start, of, time, exact = shaken_spring()
    boast = Boast(scheme.system, 2)
    means = [bm.expectation(boast, start, of=of, time=time, tolerance=0.1, seed=seed) for seed in range(40)]
    assert sum(mean.extrapolated for mean in means) > 20  # so the order does not give it away
    assert all(mean.met for mean in means)
    assert sum(abs(mean.value - exact) > mean.bias + 2 * mean.stderr for mean in means) <= binom.ppf(1 - 2e-4, 40, 0.0455)


def differing(claimed, before, last):
    """A run whose last differences and their errors are given."""
    run = object.__new__(_Run)
    run.claimed = float(claimed)
    two = [(np.atleast_1d(mean), np.square(np.atleast_1d(error))) for mean, error in (before, last)]
    run.levels = [Level(1, False, 0, Moments(np.full(len(mean), 2.0), mean, 2 * squared, mean, mean)) for mean, squared in two]
    return run


def test_what_differences_of_two_levels_say_of_the_bias():
    """E(s) = Δ/(2^s − 1) at each end of what the measured order may be; all of the difference where it cannot be measured."""
    exactly = differing(2, (0.4, 1e-9), (0.1, 1e-9))
    assert exactly.order()[0] == pytest.approx(2)
    assert exactly.bias()[0] < 1e-8
    roughly = differing(2, (0.4, 0.02), (0.1, 0.005))
    order, error = roughly.order()
    assert roughly.agrees.all()
    assert roughly.bias()[0] == pytest.approx(0.1 * (1 / (2 ** (order - 2 * error) - 1) - 1 / 3))
    lost = differing(2, (0.004, 0.01), (0.01, 0.01))
    assert np.isnan(lost.order()[0])
    assert lost.agrees.all()
    assert lost.bias()[0] == pytest.approx(0.03)


@pytest.mark.parametrize(("before", "last"), [((-0.3, 0.01), (0.1, 0.004)), ((0.001, 0.01), (0.1, 0.004)), ((0.2, 0.03), (-0.5, 0.004))])
def test_differences_that_are_seen_and_have_no_order_are_not_lost_in_noise(before, last):
    """Of c h + d h² what is left is within the bias that is stated, and nothing is extrapolated."""
    run = differing(1, before, last)
    assert np.isnan(run.order()[0])
    assert run.irregular.all()
    assert not run.agrees.any()
    assert run.weights()[-1] == 1.0
    a, b = before[0], last[0]
    left = 5 / 3 * b - a / 3  # of a = 2c + 4d, b = c + d
    assert abs(left) <= run.bias()[0] < 10 * abs(left)


def test_components_are_extrapolated_one_by_one():
    run = differing(1, ([0.2, 0.001, -0.2], [1e-3] * 3), ([0.1, 0.002, 0.1], [1e-3] * 3))
    np.testing.assert_array_equal(run.agrees, [True, True, False])
    np.testing.assert_array_equal(run.weights()[-1], [2.0, 2.0, 1.0])
    np.testing.assert_array_equal(run.irregular, [False, False, True])


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


def test_finite_numbers_whose_squares_overflow_do_not_follow_each_other():
    """hω > 2 makes 1e200 of a number: its variance is infinite, and infinite is not within twice infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        wild = moments.gather(1e200 * np.arange(1.0, 9.0)[:, None])
    level = Level(8, False, 8, difference=wild, fine=wild, coarse=wild)
    assert not _follow(level, coupled=False)


def test_a_function_that_is_no_number_is_named():
    scheme, start = oscillator()
    with pytest.raises(BismutError, match="`of` is NaN or infinite in the last state of every trajectory"):
        bm.expectation(scheme, start, of=lambda s: jnp.sqrt(-1.0 - s.q[0] ** 2), time=1.0)
