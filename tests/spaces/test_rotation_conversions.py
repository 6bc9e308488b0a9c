"""Quaternions, rotation vectors and Euler angles mean what scipy's `Rotation` means by them, for every angle up to half a turn."""

from functools import cache
from itertools import product

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bismut.errors import DomainError
from bismut.spaces import SO3

from .catalogue import EPS, assert_close, on

ORDERS = [axes for axes in product(range(3), repeat=3) if axes[0] != axes[1] != axes[2]]
ANGLES = [0.0, 1e-300, 1e-12, 1e-6, 0.01, 1.0, np.pi / 2, 3.0, np.pi - 1e-3, np.pi - 1e-8]
SEEDS = range(6)


def axis(seed):
    """A random direction; the first three are the coordinate axes, where branches of the conversion meet."""
    return np.eye(3)[seed] if seed < 3 else Rotation.random(rng=np.random.default_rng(seed)).as_matrix()[0]


@cache
def euler(axes):
    """Angles to matrix and matrix to angles, compiled."""
    return jax.jit(lambda angles: SO3().from_euler_angles(angles, axes)), jax.jit(lambda R: SO3().euler_angles(R, axes))


@pytest.mark.parametrize("seed", range(10))
def test_quaternions(seed):
    turn = Rotation.random(rng=np.random.default_rng(seed))
    q = turn.as_quat(scalar_first=True)
    assert_close(on(SO3()).from_quaternion(q), turn.as_matrix())
    assert_close(on(SO3()).from_quaternion(-3.0 * q), turn.as_matrix())
    got = on(SO3()).quaternion(turn.as_matrix())
    assert got[0] >= 0
    assert_close(got, np.copysign(1, q[0]) * q)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_vectors(angle, seed):
    x = angle * axis(seed)
    R = Rotation.from_rotvec(x).as_matrix()
    assert_close(on(SO3()).from_rotation_vector(x), R)
    got = on(SO3()).rotation_vector(R)
    assert np.linalg.norm(got) <= np.pi + 4 * EPS
    assert_close(got, x)
    assert_close(on(SO3()).rotation_vector(on(SO3()).from_rotation_vector(x)), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_half_a_turn_has_two_rotation_vectors(seed):
    x = np.pi * axis(seed)
    got = on(SO3()).rotation_vector(Rotation.from_rotvec(x).as_matrix())
    assert_close(np.copysign(1, got @ x) * got, x)


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-4])
def test_small_rotation_vectors_keep_their_relative_accuracy(angle):
    x = angle * axis(4)
    R = on(SO3()).from_rotation_vector(x)
    assert np.max(np.abs(on(SO3()).rotation_vector(R) - x)) <= 8 * EPS * angle


@pytest.mark.parametrize("axes", ORDERS, ids=str)
def test_euler_angles(axes):
    to_matrix, to_angles = euler(axes)
    letters = "".join("XYZ"[i] for i in axes)
    for seed in range(20):
        turn = Rotation.random(rng=np.random.default_rng(seed))
        angles = turn.as_euler(letters)
        assert_close(to_matrix(angles), turn.as_matrix())
        assert_close(to_angles(turn.as_matrix()), angles, condition=1 / abs(np.sin(angles[1]) if axes[0] == axes[2] else np.cos(angles[1])))


@pytest.mark.parametrize("axes", ORDERS, ids=str)
@pytest.mark.parametrize("sign", [-1, 1])
def test_aligned_axes_still_give_the_rotation_back(axes, sign):
    """Where the middle angle aligns the outer axes the angles are not unique, but they are still angles of the same rotation."""
    middle = np.pi / 2 * (1 + sign) if axes[0] == axes[2] else sign * np.pi / 2
    to_matrix, to_angles = euler(axes)
    R = Rotation.from_euler("".join("XYZ"[i] for i in axes), [0.4, middle, 0.0]).as_matrix()
    assert np.max(np.abs(to_matrix(to_angles(R)) - R)) < 1e-7


@pytest.mark.parametrize("axes", [(0, 0, 1), (0, 1, 1), (0, 1, 3)], ids=str)
def test_impossible_axes_are_refused(axes):
    with pytest.raises(DomainError, match="neighbours different"):
        SO3().from_euler_angles(np.zeros(3), axes)
