"""A bounded path satisfies |ΔW| ≤ √h A_h, A_h = √(4 max(|ln h|, 1)), and equals the free path wherever that does."""

import numpy as np
import pytest

from bismut.noise import Wiener

from .paths import SEED, TRAJECTORIES, increments

MANY, STEPS = np.arange(TRAJECTORIES), np.arange(8)


CASES = [(0.3, 1, MANY), (0.05, 1, MANY), (1e-3, 1, MANY), (0.3, 3, MANY[:8]), (0.5, 1, MANY), (1.0, 1, MANY)]


@pytest.mark.parametrize(("h", "substeps", "trajectories"), CASES)
def test_bounded_increments(h, substeps, trajectories):
    free = increments(Wiener(SEED, substeps=substeps), trajectories, STEPS, h)
    bounded = increments(Wiener(SEED, substeps=substeps, bounded=True), trajectories, STEPS, h)
    limit = np.sqrt(h * 4 * max(abs(np.log(h)), 1))
    inside = np.abs(free) <= limit * (1 - 1e-15)
    assert np.allclose(bounded[inside], free[inside], rtol=8 * np.finfo(float).eps)  # another program may round the last places differently
    assert np.max(np.abs(bounded)) <= limit * (1 + 1e-15)
    assert inside.all() == (h < 0.01)  # from h = 1/e on, 4.6 % lie beyond two standard deviations
    assert np.allclose(bounded[~inside], np.copysign(limit, free[~inside]), rtol=1e-15, atol=0)


def test_the_bound_is_reached_as_often_as_it_should_be():
    """P(|ζ| > A_h) at h = 0.3 is erfc(√(2|ln h|)) = 0.0282; |z| < 5, false alarm 6e−7."""
    bounded = increments(Wiener(SEED, bounded=True), MANY, STEPS, 0.3)
    reached = np.sum(np.abs(bounded) == np.max(bounded))
    p = 0.02820
    assert abs(reached - p * bounded.size) / np.sqrt(p * bounded.size) < 5
