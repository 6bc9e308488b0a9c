"""The user's own energy of two bodies.

U(x, R) = Σ_{i<j} u(a_i, a_j)
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from bismut.errors import ShapeError
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.pairs import PairTerm, Placed
from bismut.mechanics.bodies.terms import Potential
from bismut.mechanics.function import user_function


def pair_potential(energy: Callable, data: Any = None, *, cutoff: Any = None, box: Any = None) -> Potential:
    """U = Σ_{i<j} u(a, b) with a, b `Placed` bodies: a.x (3,), a.R (3, 3), and a.data if data, a tree of arrays (K, ...), is given.

    u returns one number, an energy, and may name t and parameters. It need not vanish or be finite for a body and itself. For points, as in
    mechanical(Euclidean(3) ** K, potential=pair_potential(...)), a.R is None.

    cutoff  a length beyond which u is zero; it fades from 0.8 of it on, or between the two lengths of a pair
    box     a periodic box: b.x is the image of b nearest to a
    """
    u = user_function("The pair energy", energy, ("a", "b"))
    assert u is not None

    def value(pair, t, parameters):
        a, b = (Placed(x, *seen) for x, seen in ((pair.x, pair.a), (pair.y, pair.b)))
        found = jnp.asarray(u(a, b, t=t, parameters=parameters))
        if found.shape != ():
            raise ShapeError(f"The pair energy must return one number, got an array of shape {found.shape}. Sum over its components.")
        return found

    words = f"pair energy {getattr(energy, '__name__', 'u')}".replace("<lambda>", "u")
    made = Potential.of(PairTerm(value, seen_with(data), words, cutoff=cutoff_of(cutoff)), words)
    return made if box is None else made.inside(box)


def seen_with(data: Any) -> Callable:
    """What a pair term sees of the bodies: their orientations, and data of theirs."""
    return lambda x, R: (R, jax.tree.map(lambda leaf: _held(leaf, x), data, is_leaf=lambda part: isinstance(part, list)))


def _held(leaf, x):
    """Data of all bodies as an array; whole numbers, such as species, stay whole."""
    array = jnp.asarray(leaf)
    if array.shape[:1] != x.shape[:1]:
        raise ShapeError(f"data must hold arrays whose first axis is the {x.shape[0]} bodies, got shape {array.shape}.")
    return array.astype(x.dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array
