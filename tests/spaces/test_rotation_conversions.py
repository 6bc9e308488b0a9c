"""Quaternions, rotation vectors and Euler angles mean what scipy's `Rotation` means by them, for every angle up to half a turn."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bismut.errors import DomainError
from bismut.programs.evaluation import evaluate
from bismut.spaces import SO3

from .catalogue import BATCH, EPS, assert_close, on, paired

ORDERS = [axes for axes in product(range(3), repeat=3) if axes[0] != axes[1] != axes[2]]
ANGLES = [0.0, 1e-300, 1e-12, 1e-6, 0.01, 1.0, np.pi / 2, 3.0, np.pi - 1e-3, np.pi - 1e-8]


from_quaternion, quaternion = on(SO3()).from_quaternion, on(SO3()).quaternion
from_vector, vector = on(SO3()).from_rotation_vector, on(SO3()).rotation_vector


def turns(count=BATCH):
    return Rotation.random(count, rng=np.random.default_rng(1))


def axes_of_rotation():
    """Random directions; the first three are the coordinate axes, where branches of the conversion meet."""
    return np.concatenate([np.eye(3), turns().as_matrix()[3:, 0]])


def euler(axes, angles=None, R=None):
    """Angles to matrices, or matrices to angles."""
    if R is None:
        return evaluate(jax.vmap(lambda a: SO3().from_euler_angles(a, axes)), angles)
    return evaluate(jax.vmap(lambda m: SO3().euler_angles(m, axes)), R)


def letters(axes):
    return "".join("XYZ"[i] for i in axes)  # capitals: scipy's intrinsic rotations


def test_quaternions():
    q = turns().as_quat(scalar_first=True)
    assert_close(from_quaternion(q), turns().as_matrix())
    assert_close(from_quaternion(-3.0 * q), turns().as_matrix())
    got = quaternion(turns().as_matrix())
    assert np.all(got[:, 0] >= 0)
    assert_close(got, np.copysign(1, q[:, :1]) * q)


@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_vectors(angle):
    x = angle * axes_of_rotation()
    R = Rotation.from_rotvec(x).as_matrix()
    assert_close(from_vector(x), R)
    assert_close(vector(R), x)
    assert_close(vector(from_vector(x)), x)
    assert np.max(np.linalg.norm(vector(R), axis=1)) <= np.pi + 4 * EPS


def test_half_a_turn_has_two_rotation_vectors():
    x = np.pi * axes_of_rotation()
    got = np.asarray(vector(Rotation.from_rotvec(x).as_matrix()))
    assert_close(np.copysign(1, paired(got, x))[:, None] * got, x)


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-4])
def test_small_rotation_vectors_keep_their_relative_accuracy(angle):
    x = angle * axes_of_rotation()
    assert np.max(np.abs(vector(from_vector(x)) - x)) <= 8 * EPS * angle


@pytest.mark.parametrize("axes", ORDERS, ids=letters)
def test_euler_angles(axes):
    angles = turns().as_euler(letters(axes))
    assert_close(euler(axes, angles=angles), turns().as_matrix())
    outer = np.sin(angles[:, 1]) if axes[0] == axes[2] else np.cos(angles[:, 1])
    assert_close(euler(axes, R=turns().as_matrix()), angles, condition=1 / np.abs(outer))


@pytest.mark.parametrize("axes", ORDERS, ids=letters)
def test_aligned_axes_still_give_the_rotation_back(axes):
    """Where the middle angle aligns the outer axes the angles are not unique, but they are still angles of the same rotation."""
    first = np.linspace(-3, 3, BATCH)
    middle = np.where(np.arange(BATCH) % 2, 1, -1) * np.pi / 2 + (np.pi / 2 if axes[0] == axes[2] else 0)
    R = Rotation.from_euler(letters(axes), np.stack([first, middle, 0.4 + 0 * first], axis=1)).as_matrix()
    assert_close(euler(axes, angles=euler(axes, R=R)), R)


@pytest.mark.parametrize("axes", [(0, 0, 1), (0, 1, 1), (0, 1, 3)], ids=str)
def test_impossible_axes_are_refused(axes):
    with pytest.raises(DomainError, match="neighbours different"):
        SO3().from_euler_angles(jnp.zeros(3), axes)
