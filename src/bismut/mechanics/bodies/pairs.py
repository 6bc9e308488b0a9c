"""Pairs of bodies.

    U(x, R) = Σ_{i<j} u(a_i, a_j)

from one function u of two bodies. The pairs are arrays and u is mapped over them, so there is no loop over bodies and no diagonal on which a
distance would vanish and its gradient be 0/0.

The pairs are those of a round-robin tournament: in round s = 1, 2, ... body i meets body i + s (mod K), and after ⌊K/2⌋ rounds everyone has met
everyone once. A round is the array of bodies read from another place, so pairing is repeat, reshape and cut, with neither gather nor
scatter; its derivative is a sum. (Measured against gathered indices: as fast for 5 bodies, a third faster for 64, and nothing that lanes
have to leave to vmap.)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import ShapeError
from bismut.mechanics.bodies.terms import Potential
from bismut.mechanics.law import Law, law


class Placed(NamedTuple):
    """One body as a two-body function sees it: position x (3,), orientation R (3, 3), and its own entry of the data given with the function."""

    x: Any
    R: Any
    data: Any = None


def pair_indices(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The bodies i < j of each pair of `count` bodies, as two arrays, in the order in which pairs are held."""
    i, j = _meetings(count)
    return np.minimum(i, j), np.maximum(i, j)


def each_pair(tree):
    """Arrays over bodies (K, ...) as two arrays over pairs (K(K−1)/2, ...): the body with the lower number, and the other."""
    both = [_meet(leaf) for leaf in jax.tree.leaves(tree)]
    structure = jax.tree.structure(tree)
    return structure.unflatten([a for a, _ in both]), structure.unflatten([b for _, b in both])


def pair_potential(energy: Callable, data: Any = None) -> Potential:
    """U = Σ_{i<j} u(a, b) with a, b `Placed` bodies: a.x (3,), a.R (3, 3), and a.data if data, a tree of arrays (K, ...), is given.

    u returns one number, an energy, and may name t and parameters. It need not vanish or be finite for a body and itself.
    """
    u = law("The pair energy", energy, ("a", "b"))

    def U(x, R, t, parameters):
        values = mapped(u, *placed_pairs(x, R, data), t, parameters)
        if values.ndim != 1:
            raise ShapeError(f"The pair energy must return one number, but an array of shape {values.shape[1:]} came. Sum over its components.")
        return jnp.sum(values)

    return Potential(U, f"pair energy {getattr(energy, '__name__', 'u')}".replace("<lambda>", "u"))


def placed_pairs(x, R, data) -> tuple[Placed, Placed]:
    """The two bodies of every pair."""
    return each_pair(Placed(x, R, jax.tree.map(lambda leaf: _held(leaf, x), data, is_leaf=lambda part: isinstance(part, list))))


def _held(leaf, x):
    """Data of all bodies as an array; whole numbers, such as species, stay whole."""
    array = jnp.asarray(leaf)
    if array.shape[:1] != x.shape[:1]:
        raise ShapeError(f"data must hold arrays whose first axis is the {x.shape[0]} bodies, but shape {array.shape} came.")
    return array.astype(x.dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


def mapped(function: Law | None, a: Placed, b: Placed, t, parameters):
    """The values of a two-body function for all pairs, along the first axis."""
    assert function is not None
    return jax.vmap(lambda one, other: jnp.asarray(function(one, other, t=t, parameters=parameters)))(a, b)


def separation(x) -> tuple[Any, Any]:
    """r = x_j − x_i and |r|² for all pairs."""
    a, b = each_pair(x)
    r = b - a
    return r, jnp.sum(r * r, -1)


def _meetings(count: int) -> tuple[np.ndarray, np.ndarray]:
    rounds, half = (count - 1) // 2, np.arange(count // 2 if count % 2 == 0 else 0)
    i = np.concatenate([np.tile(np.arange(count), rounds), half])
    s = np.concatenate([np.repeat(np.arange(1, rounds + 1), count), np.full_like(half, count // 2)])
    return i, (i + s) % count


def _meet(x):
    count, rest, rounds = x.shape[0], x.shape[1:], (x.shape[0] - 1) // 2
    row = lambda y: y.reshape(rounds * count, *rest)
    first = row(jnp.broadcast_to(x, (rounds, *x.shape)))
    # Read in rows of K + 1, the bodies in a circle shift by one from row to row.
    circle = jnp.broadcast_to(x, (rounds + 2, *x.shape)).reshape((rounds + 2) * count, *rest)
    second = row(circle[1 : 1 + rounds * (count + 1)].reshape(rounds, count + 1, *rest)[:, :count])
    if count % 2 == 0:  # the last round has half the pairs
        first, second = jnp.concatenate([first, x[: count // 2]]), jnp.concatenate([second, x[count // 2 :]])
    i, j = _meetings(count)
    turned = (i > j).reshape(-1, *(1 for _ in rest))
    return jnp.where(turned, second, first), jnp.where(turned, first, second)
