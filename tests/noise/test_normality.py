"""Increments are standard normal: moments, tails and distribution function of 2e6 numbers.

Every statement is a z-score |z| < 5 or a p-value above 5.7e−7, at a fixed seed: false alarm 5.7e−7 each, were the seed drawn anew.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bismut.noise import Stream

from .paths import sample

ALARM = 5.7e-7  # P(|z| > 5)

# order n: (E zⁿ, Var zⁿ = E z²ⁿ − (E zⁿ)²)
MOMENTS = {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96), 6: (15, 10170)}

samples = pytest.mark.parametrize("which", [{}, {"dtype": jnp.float32}, {"stream": Stream.start}], ids=["float64", "float32", "start"])


@samples
@pytest.mark.parametrize("order", MOMENTS)
def test_moments(which, order):
    z = sample(**which).astype(float)
    mean, variance = MOMENTS[order]
    assert abs(np.mean(z**order) - mean) / np.sqrt(variance / z.size) < 5


@samples
@pytest.mark.parametrize("limit", [3, 4, 5])
@pytest.mark.parametrize("side", [-1, 1])
def test_tails(which, limit, side):
    z = sample(**which)
    beyond = int(np.sum(side * z > limit))
    assert stats.binomtest(beyond, z.size, stats.norm.sf(limit)).pvalue > ALARM


@samples
def test_distribution_function(which):
    """Kolmogorov and Smirnov."""
    assert stats.kstest(np.ravel(sample(**which)), "norm").pvalue > ALARM


@pytest.mark.parametrize("position", range(4))
def test_each_place_in_a_block(position):
    """Cosines and sines of both pairs of words are normal each on their own."""
    z = sample()[position::4]
    assert stats.kstest(np.ravel(z), "norm").pvalue > ALARM
    assert abs(np.mean(z)) * np.sqrt(z.size) < 5


def test_each_step_trajectory_and_channel():
    """Means over all but one axis: none of 1504 stands out; |z| < 6.2 has the false-alarm rate 1e−6 in all."""
    z = sample()
    for axis in range(3):
        rest = tuple(a for a in range(3) if a != axis)
        count = z.size // z.shape[axis]
        assert np.max(np.abs(np.mean(z, axis=rest))) * np.sqrt(count) < 6.2
        assert np.max(np.abs(np.mean(z**2 - 1, axis=rest))) * np.sqrt(count / 2) < 6.2
