"""Increments of different steps, trajectories, channels, seeds and streams are uncorrelated, and so are their squares.

Each |z| < 5 over about 2e6 pairs at a fixed seed: false alarm 5.7e−7 each. Squares see what products miss: the cosine and sine of one pair of
words share a radius, and are independent only because the radius has the right distribution.
"""

from itertools import combinations

import numpy as np
import pytest

from bismut.noise import Stream

from .paths import SEED, correlation, correlation_of_squares, sample

LAGS = range(1, 9)

measures = pytest.mark.parametrize("measure", [correlation, correlation_of_squares])


@measures
@pytest.mark.parametrize("lag", LAGS)
def test_steps(measure, lag):
    z = sample()
    assert abs(measure(z[lag:], z[:-lag])) < 5


@measures
@pytest.mark.parametrize(("i", "j"), list(combinations(range(4), 2)))
def test_steps_within_a_block(measure, i, j):
    z = sample()
    assert abs(measure(z[i::4], z[j::4])) < 5


@pytest.mark.parametrize(("i", "j"), [(0, 1), (2, 3)])
def test_pairs_of_box_and_muller_are_isotropic(i, j):
    """For independent normals x + iy = r e^{iφ} the angle is uniform whatever the radius: E cos nφ = 0, for small and large r alike."""
    z = sample()
    x, y = np.ravel(z[i::4]), np.ravel(z[j::4])
    angle, far = np.arctan2(y, x), np.hypot(x, y) > 2.5
    for chosen in (angle[far], angle[~far]):
        for n in range(1, 9):
            for wave in (np.cos, np.sin):
                assert abs(np.mean(wave(n * chosen))) * np.sqrt(2 * chosen.size) < 5


@measures
@pytest.mark.parametrize("lag", LAGS)
def test_trajectories(measure, lag):
    z = sample()
    assert abs(measure(z[:, lag:], z[:, :-lag])) < 5


@measures
@pytest.mark.parametrize(("i", "j"), list(combinations(range(4), 2)))
def test_channels(measure, i, j):
    z = sample()
    assert abs(measure(z[..., i], z[..., j])) < 5


@measures
@pytest.mark.parametrize("other", [SEED + 1, SEED ^ 2, SEED + (1 << 32)])
def test_seeds(measure, other):
    assert abs(measure(sample(), sample(other))) < 5


@measures
def test_streams(measure):
    assert abs(measure(sample(), sample(stream=Stream.start))) < 5


@measures
def test_diagonals(measure):
    """Step k of trajectory n and step k + 1 of trajectory n + 1: counters whose sum or difference is shared."""
    z = sample()
    assert abs(measure(z[1:, 1:], z[:-1, :-1])) < 5
    assert abs(measure(z[1:, :-1], z[:-1, 1:])) < 5
