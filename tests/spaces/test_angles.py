"""Angles are numbers modulo a whole turn: q + 2πn is the same point as q, and its representative lies in [−π, π]."""

import numpy as np
import pytest

from bismut.spaces import Circle, Torus

from .catalogue import EPS, assert_close, batch_of, directions, on, points

angles = pytest.mark.parametrize("space", [Circle(), Torus(2)], ids=str)


def verbs(space, q, other, v):
    return on(space).project(q), on(space).move(q, v), on(space).subtract(q, other)


@angles
@pytest.mark.parametrize("turns", [-1000, -1, 1, 2, 1000])
def test_whole_turns_change_nothing(space, turns):
    (q, other), (v,) = points(space, seed=1, count=2), directions(space, seed=1)
    assert_close(verbs(space, q, other, v), verbs(space, q + 2 * np.pi * turns, other, v), condition=abs(turns))


@angles
@pytest.mark.parametrize("scale", [0.1, 10.0, 1e4])
def test_the_representative_is_small(space, scale):
    (q, other), (v,) = points(space, seed=2, count=2), directions(space, seed=2)
    for angle in verbs(space, scale * q, other, scale * v):
        assert np.max(np.abs(angle)) <= np.pi + 10 * scale * EPS


@angles
def test_the_difference_is_the_short_way_round(space):
    """From 3 to −3 it is 2π − 6 forwards, not 6 backwards."""
    zero = batch_of(space.zero())
    assert_close(on(space).subtract(zero - 3, zero + 3), zero + (2 * np.pi - 6))
