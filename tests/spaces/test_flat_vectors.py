"""Velocities are vectors: `flatten` and `unflatten` are linear, inverse to each other, keep the pairing, and have length `dim`."""

import jax
import numpy as np
import pytest

from bismut.programs.evaluation import evaluate
from bismut.spaces import pair

from .catalogue import BATCH, SPACES, assert_close, directions, law, on, paired, velocities

DIMENSIONS = [3, 1, 2, 1, 1, 3, 3, 3, 3, 6, 6, 6, 9, 12]


@pytest.mark.parametrize(("space", "dim"), list(zip(SPACES, DIMENSIONS, strict=True)), ids=str)
def test_dimensions(space, dim):
    assert space.dim == dim


@law
def test_unflatten_undoes_flatten(space, seed):
    (v,) = velocities(space, seed)
    x = on(space).flatten(v)
    assert x.shape == (BATCH, space.dim)
    back = on(space).unflatten(x)
    assert_close(back, v)
    assert np.array_equal(on(space).flatten(back), x)


@law
def test_flatten_keeps_the_pairing(space, seed):
    v, w = directions(space, seed, count=2)
    assert_close(evaluate(jax.vmap(pair), v, w), paired(on(space).flatten(v), on(space).flatten(w)))
