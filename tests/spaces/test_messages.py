"""Wrong input is an error at once, and its text says what was expected, what was given and what to do."""

import jax
import numpy as np
import pytest

from bismut.errors import BismutError, DomainError, ShapeError
from bismut.spaces import SE2, SE3, SO2, SO3, Euclidean, Torus, su

from .catalogue import everywhere


def test_a_quaternion_is_told_how_to_become_a_matrix():
    with pytest.raises(ShapeError, match=r"start\.q has shape \(4,\), but SO3.* works with rotation matrices \(3, 3\).*from_quaternion"):
        SO3().check(np.array([1.0, 0, 0, 0]), "start.q")


def test_a_rotation_vector_is_told_how_to_become_a_matrix():
    with pytest.raises(ShapeError, match="from_rotation_vector"):
        SO3().check(np.zeros(3))


def test_an_angle_is_sent_to_the_circle():
    with pytest.raises(ShapeError, match=r"Circle\(\)"):
        SO2().check(np.float64(0.3))


def test_a_homogeneous_matrix_is_told_how_to_become_a_pair():
    with pytest.raises(ShapeError, match="from_matrix"):
        SE3().check(np.eye(4))


@pytest.mark.parametrize(("space", "shape"), [(Euclidean(3), (4,)), (Euclidean(3), ()), (Torus(2), (3,)), (SO3(), (2, 2)), (SO2(), (3, 3))], ids=str)
def test_wrong_shapes(space, shape):
    with pytest.raises(ShapeError) as caught:
        space.check(np.zeros(shape), "here")
    assert str(shape) in str(caught.value)
    assert "here" in str(caught.value)


def test_a_point_off_the_group_says_by_how_much_and_how_to_return():
    with pytest.raises(DomainError, match=r"q lies off SO3.* by 0\.21 .*project\(q\) moves it back"):
        SO3().check(1.1 * np.eye(3) @ np.diag([1, 1, 1 / 1.1]))


@everywhere
def test_nan_is_refused_wherever_it_hides(space):
    """Every entry of every array of a point is looked at."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.array, space.origin()))
    caught = 0
    for i, leaf in enumerate(leaves):
        for k in range(leaf.size):
            bad = leaf.copy()
            bad.flat[k] = np.nan
            with pytest.raises(DomainError, match="not finite"):
                space.check(structure.unflatten([*leaves[:i], bad, *leaves[i + 1 :]]))
            caught += 1
    assert caught == sum(leaf.size for leaf in leaves)


@pytest.mark.parametrize("space", [Euclidean(3) * SO3(), (Euclidean(3) * SO3()) ** 2, SE3(), SE2()], ids=str)
@pytest.mark.parametrize("length", [1, 3])
def test_tuples_of_a_wrong_length(space, length):
    with pytest.raises(ShapeError, match=r"must be a (tuple of 2|pair)"):
        space.check((np.zeros(3),) * length)


def test_a_part_of_a_tuple_is_named():
    with pytest.raises(ShapeError, match=r"q\[1\] has shape \(4,\)"):
        (Euclidean(3) * SO3()).check((np.zeros(3), np.zeros(4)))


@pytest.mark.parametrize("count", [1, 4])
def test_a_power_wants_its_number_of_bodies(count):
    with pytest.raises(ShapeError, match="needs 3 of them"):
        (SO3() ** 3).check(np.broadcast_to(np.eye(3), (count, 3, 3)))


@everywhere
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)], ids=str)
def test_leading_axes_are_a_batch(space, batch):
    q = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*batch, *leaf.shape)), space.origin())
    v = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*batch, *leaf.shape)), space.zero())
    assert space.check(q) == batch
    assert space.check_velocity(v) == batch


@pytest.mark.parametrize("n", [0, -1])
@pytest.mark.parametrize("space", [Euclidean, Torus])
def test_a_space_has_at_least_one_dimension(space, n):
    with pytest.raises(DomainError, match=rf"{space.__name__}\(n\) needs a whole number n ≥ 1, got n = {n}"):
        space(n)


@pytest.mark.parametrize("count", [0, -2])
def test_a_power_has_at_least_one_factor(count):
    with pytest.raises(DomainError, match="whole exponent ≥ 1"):
        SO3() ** count


@pytest.mark.parametrize("space", [SO2, SO3, SE2, SE3])
def test_a_mistyped_retraction_is_offered_the_right_one(space):
    with pytest.raises(DomainError, match=r"no retraction 'caley'\. Did you mean 'cayley'"):
        space("caley")
    with pytest.raises(BismutError, match="Did you mean 'cayley'"):
        space().using("caley")


@everywhere
def test_a_velocity_of_a_wrong_shape_is_refused(space):
    with pytest.raises(ShapeError, match="velocity"):
        space.check_velocity((np.zeros(7), np.zeros(5), np.zeros(3)))
    bad = jax.tree.map(lambda leaf: np.full(leaf.shape, np.inf), space.zero())
    with pytest.raises(DomainError, match="not finite"):
        space.check_velocity(bad)


@pytest.mark.parametrize("space", [SO2(), SO3("exp"), su(3)], ids=str)
def test_the_remedy_can_be_typed(space):
    """A point off the space is told how to get back, in a line that works as it stands."""
    off = jax.tree.map(lambda leaf: 1.1 * np.asarray(leaf), space.origin())
    with pytest.raises(DomainError, match="moves it back") as caught:
        space.check(off, "start.q")
    remedy = str(caught.value).split(". ")[-1].removesuffix(" moves it back.")
    back = eval(remedy, {"SO2": SO2, "SO3": SO3, "su": su}, {"q": off})
    space.check(back)
    assert all(np.allclose(a, b) for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(space.origin()), strict=True))


@pytest.mark.parametrize("q", [np.eye(3), (np.eye(3),), (np.eye(2), np.eye(2)), (np.full((3, 3), np.nan), np.zeros((3, 3)))])
def test_a_unitary_matrix_is_a_pair(q):
    with pytest.raises(BismutError, match=r"must be a pair of 3 × 3 matrices on su\(3\)|not finite"):
        su(3).check(q)
