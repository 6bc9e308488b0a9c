"""Velocities are vectors: `flatten` and `unflatten` are linear, inverse to each other, keep the pairing, and have length `dim`."""

import numpy as np
import pytest

from bismut.spaces import pair

from .catalogue import SPACES, assert_close, law, on, velocities

DIMENSIONS = [3, 1, 2, 1, 1, 3, 3, 3, 3, 6, 6, 6, 9, 12]


@pytest.mark.parametrize(("space", "dim"), list(zip(SPACES, DIMENSIONS, strict=True)), ids=str)
def test_dimensions(space, dim):
    assert space.dim == dim


@law
def test_unflatten_undoes_flatten(space, seed, size):
    (v,) = velocities(space, seed, size)
    x = on(space).flatten(v)
    assert x.shape == (space.dim,)
    back = on(space).unflatten(x)
    assert_close(back, v)
    assert np.array_equal(on(space).flatten(back), x)


@law
def test_flatten_keeps_the_pairing(space, seed, size):
    v, w = velocities(space, seed, size, count=2)
    assert_close(pair(v, w), on(space).flatten(v) @ on(space).flatten(w))
