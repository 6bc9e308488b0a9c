"""Angles are numbers modulo a whole turn: q + 2πn is the same point as q, and its representative lies in [−π, π]."""

import numpy as np
import pytest

from bismut.spaces import Circle, Torus

from .catalogue import EPS, assert_close, on, points, velocities

angles = pytest.mark.parametrize("space", [Circle(), Torus(2)], ids=str)
turns = pytest.mark.parametrize("turns", [-1000, -1, 1, 2, 1000])


def verbs(space, q, other, v):
    verb = on(space)
    return verb.project(q), verb.move(q, v), verb.subtract(q, other)


@angles
@turns
def test_whole_turns_change_nothing(space, turns):
    q, other = points(space, seed=turns + 2000, count=2)
    (v,) = velocities(space, seed=1)
    plain = verbs(space, q, other, v)
    turned = verbs(space, np.asarray(q) + 2 * np.pi * turns, other, v)
    assert_close(plain, turned, condition=abs(turns))


@angles
def test_the_representative_is_small(space):
    for scale in (0.1, 10.0, 1e4):
        q = scale * np.random.default_rng(3).normal(size=np.shape(space.zero()))
        for angle in verbs(space, q, space.zero(), 5.0 * np.ones_like(q)):
            assert np.all(np.abs(angle) <= np.pi + scale * 10 * EPS)


@angles
def test_the_difference_is_the_short_way_round(space):
    """From 3 to −3 it is 2π − 6 forwards, not 6 backwards."""
    o = np.zeros_like(space.zero())
    assert_close(verbs(space, o - 3, o + 3, o)[2], o + (2 * np.pi - 6))
