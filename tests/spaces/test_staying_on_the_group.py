"""Moved points lie on the space, and `project` finds the nearest point: the polar factor, R S ↦ R for S symmetric positive."""

import jax
import numpy as np
import pytest

from bismut.errors import DomainError

from .catalogue import BATCH, EPS, assert_close, law, matrix_law, on, points, velocities


def is_matrix(leaf):
    return leaf.ndim > 2 and leaf.shape[-1] == leaf.shape[-2]


def on_matrices(change, q):
    """A batch of points with its rotation matrices changed."""
    return jax.tree.map(lambda leaf: change(np.asarray(leaf)) if is_matrix(leaf) else leaf, q)


def stretched(q, seed):
    """Every rotation matrix R becomes R S with S symmetric and |S − 1| ≤ 0.3."""
    source = np.random.default_rng(seed)

    def stretch(R):
        a = 0.1 * source.uniform(-1, 1, R.shape)
        return R @ (np.eye(R.shape[-1]) + (a + np.swapaxes(a, -1, -2)) / 2)

    return on_matrices(stretch, q)


@law
def test_a_walk_stays_on_the_space(space, seed):
    """A hundred steps leave the group by no more than accumulated round-off."""
    (q,), (v,) = points(space, seed), velocities(space, seed)
    for _ in range(100):
        q = on(space).move(q, v)
    assert space.check(q) == (BATCH,)
    for R in map(np.asarray, filter(is_matrix, jax.tree.leaves(q))):
        assert np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(R.shape[-1]))) < 100 * 10 * EPS


@law
def test_project_keeps_points_of_the_space(space, seed):
    (q,) = points(space, seed)
    assert_close(on(space).project(q), q)


@law
def test_project_finds_the_polar_factor(space, seed):
    (q,) = points(space, seed)
    assert_close(on(space).project(stretched(q, seed)), q)


@law
def test_project_is_idempotent(space, seed):
    (q,) = points(space, seed)
    once = on(space).project(stretched(q, seed))
    assert space.check(once) == (BATCH,)
    assert_close(on(space).project(once), once)


@matrix_law
def test_a_stretched_point_is_refused(space, seed):
    (q,) = points(space, seed)
    with pytest.raises(DomainError, match=r"lies off .*project"):
        space.check(stretched(q, seed))


@matrix_law
def test_a_mirrored_point_is_refused(space, seed):
    """RᵀR = 1 is not enough: det R = −1 is no rotation."""
    (q,) = points(space, seed)
    with pytest.raises(DomainError, match="lies off"):
        space.check(on_matrices(lambda R: R[..., ::-1], q))
