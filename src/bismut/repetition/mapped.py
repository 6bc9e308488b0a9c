"""Functions of one item, or of one pair, for all of them.

    each(f, x)      f(x_k)  for k = 0 ... K − 1, results along the first axis
    pairs(f, x)     Σ_p f(x_i, x_j).total, ... for all pairs p = (i, j), i < j, or for given ones

The values of `vmap`, as one equation of a jaxpr (`loop`). What the function closes over is shared by all items.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bismut.repetition.loop import Bonds, each_p, loop, pairs_p


class Pair(NamedTuple):
    """What a function of two bodies returns, trees of arrays: what is summed over all pairs, what is summed for the first and for the second body
    (alike in structure), and what is kept for the pair itself."""

    total: Any = ()
    first: Any = ()
    second: Any = ()
    own: Any = ()


class Pairs(NamedTuple):
    """Of all pairs: sums over everything, sums for each body (K, ...), and what was kept for each pair (n, ...)."""

    total: Any
    bodies: Any
    own: Any


def each(function: Callable, *trees: Any) -> Any:
    """function(*slices) for every entry of the first axis of all arrays, results along the first axis."""
    leaves, structure = jax.tree.flatten(trees)
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    out: list = []

    def one(shared, at_i, at_j, own):
        values, kind = jax.tree.flatten(function(*structure.unflatten(own)))
        out[:] = [kind]
        return (), (), (), values

    _, _, own = loop(each_p, one, leaves[0].shape[0], None, ((), (), leaves), [False] * len(leaves))
    return out[0].unflatten(own)


def pairs(function: Callable[..., Pair], bodies: Any, own: Any = (), bonds: Bonds | None = None) -> Pairs:
    """The results of function(a, b, own), a `Pair`, for all pairs a, b of bodies.

    bodies  a tree of arrays (K, ...), of which a and b are entries
    own     a tree of arrays (n, ...), one entry for each pair, in the order of `pair_indices` or of the bonds
    bonds   which pairs; all of them with the lower number first, if not given
    """
    leaves, structure = jax.tree.flatten(bodies)
    extra, kind = jax.tree.flatten(own)
    leaves, extra = [jnp.asarray(leaf) for leaf in leaves], [jnp.asarray(leaf) for leaf in extra]
    out: list = []

    def one(shared, at_i, at_j, item):
        made = function(structure.unflatten(at_i), structure.unflatten(at_j), kind.unflatten(item))
        flat = [jax.tree.flatten(part) for part in made]
        assert flat[1][1] == flat[2][1], "what is summed for the two bodies of a pair differs in structure"
        out[:] = [structure for _, structure in flat]
        return tuple(values for values, _ in flat)

    marks = [False] * (len(leaves) + len(extra))
    totals, sums, kept = loop(pairs_p, one, leaves[0].shape[0], bonds, ((), leaves, extra), marks)
    return Pairs(out[0].unflatten(totals), out[1].unflatten(sums), out[3].unflatten(kept))
