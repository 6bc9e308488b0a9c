"""Signatures are checked in these tests: types, shapes, and that sizes of one name agree within a call, and within it alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float

import bismut as bm
from tests.checking import checked

Vector = Float[np.ndarray, " n"]


@checked
def joined(a: Vector, b: Vector, count: int = 1) -> Vector:
    return np.concatenate([a, b])[:: 3 - count]


@checked
def scaled(a: "Vector", by: "Unknown" = 2.0) -> "Vector":  # noqa: F821
    return by * a


def test_sizes_agree_within_a_call():
    for n in (2, 3):
        assert joined(np.ones(n), np.ones(n)).shape == (n,)
        assert scaled(np.ones(n)).shape == (n,)
    for a, b, count in ((2, 3, 1), (2, 2, 2), (2, 2, 1.0)):  # arguments, what is returned, a type
        with pytest.raises(BeartypeCallHintViolation):
            joined(np.ones(a), np.ones(b), count)
    with pytest.raises(BeartypeCallHintViolation):
        scaled(np.ones((2, 2)))


def test_the_rooms_are_checked():
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q, noise=lambda q: q)
    with pytest.raises(BeartypeCallHintViolation, match="2 dimensions"):
        system.kick(*map(jnp.asarray, (np.ones(2), np.ones(2), np.ones((2, 2)))))
