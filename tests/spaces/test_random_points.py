"""Random points lie on the space, and on a compact group they are uniform: traces have the moments of Haar measure.

    SO(2): E trⁿ = C(n, n/2) for even n, else 0        SO(3): E trⁿ = 1, 0, 1, 1, 3, 6, 15, 36, 91 (Riordan numbers)

Each |z| < 5 at a fixed seed: false alarm 6e−7.
"""

from functools import cache

import jax
import numpy as np
import pytest

from bismut.spaces import SO2, SO3, Circle, Euclidean

from .catalogue import BATCH, batched, everywhere, on

COUNT = 40_000
PLANE = (1, 0, 2, 0, 6, 0, 20, 0, 70)
SPACE = (1, 0, 1, 1, 3, 6, 15, 36, 91)


@cache
def sample(space):
    return batched(space.random)(jax.random.split(jax.random.key(5), COUNT))


@everywhere
def test_random_points_lie_on_the_space(space):
    assert space.check(on(space).random(jax.random.split(jax.random.key(1), BATCH))) == (BATCH,)


@pytest.mark.parametrize(("space", "moments"), [(SO2(), PLANE), (SO3(), SPACE)], ids=["SO2", "SO3"])
def test_traces_have_the_moments_of_haar_measure(space, moments):
    R = np.asarray(sample(space))
    assert space.check(R) == (COUNT,)
    for matrices in (R, R @ R[0]):  # Haar measure does not change under a fixed rotation
        trace = np.trace(matrices, axis1=-2, axis2=-1)
        for n in range(1, 5):
            z = (np.mean(trace**n) - moments[n]) / np.sqrt((moments[2 * n] - moments[n] ** 2) / COUNT)
            assert abs(z) < 5


def test_angles_are_uniform():
    """E cos nθ = E sin nθ = 0, with variance ½."""
    angle = np.asarray(sample(Circle()))
    for n in range(1, 5):
        for wave in (np.cos(n * angle), np.sin(n * angle)):
            assert abs(np.mean(wave) / np.sqrt(0.5 / COUNT)) < 5


def test_vectors_are_standard_normal():
    x = np.asarray(sample(Euclidean(3)))
    assert np.max(np.abs(np.mean(x, axis=0))) * np.sqrt(COUNT) < 5
    assert np.max(np.abs(np.cov(x.T) - np.eye(3))) * np.sqrt(COUNT / 2) < 5
