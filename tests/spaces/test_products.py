"""A product is a group if and only if all its factors are."""

import copy
import pickle

import jax.numpy as jnp
import pytest

from bismut.spaces import SO3, Euclidean, Group, Power, Product, Space


class Line(Space):
    """ℝ as a space that says nothing of being a group."""

    def origin(self, dtype=float):
        return jnp.zeros(1, dtype)

    def zero(self, dtype=float):
        return jnp.zeros(1, dtype)

    def move(self, q, velocity, time=1.0):
        return q + time * velocity

    def subtract(self, q1, q0):
        return q1 - q0

    def __eq__(self, other):
        return type(other) is Line

    def __hash__(self):
        return 1

    def __repr__(self):
        return "Line()"


GROUPS = [
    Euclidean(2) * SO3(),
    SO3() ** 2,
    (Euclidean(3) * SO3("exp")) ** 2,
    SO3() ** 2 * Euclidean(1),
    Product((SO3(), Euclidean(1))),
    Power(SO3(), 4),
]
OTHERS = [Line() * SO3(), Line() ** 2, (Line() * SO3()) ** 3, Line() ** 2 * SO3(), Product((SO3(), Line())), Power(Line(), 4)]


@pytest.mark.parametrize("space", GROUPS, ids=str)
def test_products_of_groups_are_groups(space):
    assert isinstance(space, Group)
    assert space.using("exp") == space.using("cayley").using("exp")
    assert isinstance(space.using("exp"), Group)


@pytest.mark.parametrize("space", OTHERS, ids=str)
def test_products_of_other_spaces_are_not(space):
    assert not isinstance(space, Group)
    assert not hasattr(space, "tau")


def test_a_product_moves_by_its_factors():
    space = Line() * Euclidean(2) ** 2
    q = space.move(space.origin(), space.unflatten(jnp.linspace(0.1, 0.4, space.dim)))
    assert jnp.allclose(space.flatten(space.subtract(q, space.origin())), jnp.linspace(0.1, 0.4, space.dim), atol=1e-14)


@pytest.mark.parametrize("space", [*GROUPS, *OTHERS], ids=str)
def test_a_copy_is_the_same_space(space):
    for other in (copy.copy(space), copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert other == space
        assert type(other) is type(space)
        assert hash(other) == hash(space)
