"""Random and moved points lie on the space, and `project` finds the nearest point: the polar factor, R S ↦ R for S symmetric positive."""

import jax
import numpy as np
import pytest

from bismut.errors import DomainError

from .catalogue import EPS, assert_close, largest, law, matrix_law, on, points, velocities


def is_matrix(leaf):
    return leaf.ndim >= 2 and leaf.shape[-1] == leaf.shape[-2]


def stretched(q, seed, amount):
    """Every rotation matrix R of a point becomes R S with S symmetric, |S − 1| ≤ 3·amount."""
    source = np.random.default_rng(seed)

    def stretch(leaf):
        leaf = np.asarray(leaf)
        if not is_matrix(leaf):
            return leaf
        a = amount * source.uniform(-1, 1, leaf.shape)
        return leaf @ (np.eye(leaf.shape[-1]) + (a + np.swapaxes(a, -1, -2)) / 2)

    return jax.tree.map(stretch, q)


@law
def test_random_points_lie_on_the_space(space, seed, size):
    del size
    (q,) = points(space, seed)
    assert space.check(q) == ()


@law
def test_a_walk_stays_on_the_space(space, seed, size):
    """A hundred steps leave the group by no more than accumulated round-off."""
    (q,), (v,) = points(space, seed), velocities(space, seed, size)
    for _ in range(100):
        q = on(space).move(q, v)
    assert space.check(q) == ()
    for R in filter(is_matrix, jax.tree.map(np.asarray, jax.tree.leaves(q))):
        assert np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(R.shape[-1]))) < 100 * 10 * EPS


@law
def test_project_keeps_points_of_the_space(space, seed, size):
    del size
    (q,) = points(space, seed)
    assert_close(on(space).project(q), q)


@law
def test_project_finds_the_polar_factor(space, seed, size):
    del size
    (q,) = points(space, seed)
    assert_close(on(space).project(stretched(q, seed, 0.1)), q, condition=10)


@law
def test_project_is_idempotent(space, seed, size):
    del size
    (q,) = points(space, seed)
    once = on(space).project(stretched(q, seed, 0.1))
    assert space.check(once) == ()
    assert_close(on(space).project(once), once)


@matrix_law
def test_a_stretched_point_is_refused(space, seed, size):
    del size
    (q,) = points(space, seed)
    with pytest.raises(DomainError, match="lies off .*project"):
        space.check(stretched(q, seed, 0.1))


@matrix_law
def test_a_mirrored_point_is_refused(space, seed, size):
    """RᵀR = 1 is not enough: det R = −1 is no rotation."""
    del size
    (q,) = points(space, seed)
    mirror = jax.tree.map(lambda leaf: np.asarray(leaf)[..., ::-1] if is_matrix(leaf) else np.asarray(leaf), q)
    assert largest(mirror) == largest(q)
    with pytest.raises(DomainError, match="lies off"):
        space.check(mirror)
