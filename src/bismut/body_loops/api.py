"""Functions of one item, or of one pair, for all of them.

    each(f, x)      f(x_k)  for k = 0 ... K − 1, results along the first axis
    total(f, x)     Σ_k f(x_k)
    pairs(f, x)     Σ_p f(x_i, x_j).total, ... for all pairs p = (i, j), i < j, or for given ones

The values of `vmap`, as one equation of a jaxpr (`loop`). What the function closes over is shared by all items, and so are known numbers that are the
same for all of them: a compiler of the loop can fold them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.body_loops.loop import Bonds, Reach, each_p, loop, pairs_p


class Pair(NamedTuple):
    """What a function of two bodies returns, trees of arrays: what is summed over all pairs, what is summed for the first and for the second body
    (of one structure), and the results of the pair itself."""

    total: Any = ()
    first: Any = ()
    second: Any = ()
    own: Any = ()


class Pairs(NamedTuple):
    """Of all pairs: sums over everything, sums for each body (K, ...), and results of each pair (n, ...)."""

    total: Any
    bodies: Any
    own: Any


class _Entries:
    """A tree of arrays over items: a loop carries each distinct array once, and none that is constant over items."""

    def __init__(self, tree: Any):
        leaves, self.structure = jax.tree.flatten(tree)
        self.length = np.shape(leaves[0])[0] if leaves else 0
        self.carried: list = []
        self._places: list[tuple[int, Any]] = []
        numbers: dict[int, int] = {}
        for leaf in leaves:
            if isinstance(leaf, np.ndarray) and len(leaf) and (leaf == leaf[:1]).all():
                self._places.append((-1, leaf[0]))
                continue
            if id(leaf) not in numbers:
                numbers[id(leaf)] = len(self.carried)
                self.carried.append(jnp.asarray(leaf))
            self._places.append((numbers[id(leaf)], None))

    def __call__(self, entries) -> Any:
        """The tree of one item."""
        return self.structure.unflatten([constant if place < 0 else entries[place] for place, constant in self._places])


def each(function: Callable, *trees: Any) -> Any:
    """function(*slices) for every entry of the first axis of all arrays, results along the first axis."""
    return _each(function, trees, summed=False)


def total(function: Callable, *trees: Any) -> Any:
    """The sum of function(*slices) over all entries of the first axis of all arrays."""
    return _each(function, trees, summed=True)


def _each(function: Callable, trees: tuple, summed: bool) -> Any:
    entries, out = _Entries(trees), []

    def one(shared, at_i, at_j, own):
        values, kind = jax.tree.flatten(function(*entries(own)))
        out[:] = [kind]
        return (values, (), (), ()) if summed else ((), (), (), values)

    totals, _, own = loop(each_p, one, entries.length, None, ((), (), entries.carried), [False] * len(entries.carried))
    return out[0].unflatten(totals if summed else own)


def pairs(function: Callable[..., Pair], bodies: Any, own: Any = (), bonds: Bonds | None = None, reach: Reach | None = None) -> Pairs:
    """The results of function(a, b, own), a `Pair`, for all pairs a, b of bodies.

    bodies  a tree of arrays (K, ...), of which a and b are entries
    own     a tree of arrays (n, ...), one entry for each pair, in the order of `pair_indices` or of the bonds
    bonds   which pairs; all of them with the lower number first, if not given
    reach   where the first array of the bodies, their positions, is farther apart than this, all results are known to be zero
    """
    sides, items = _Entries(bodies), _Entries(own)
    out: list = []

    def one(shared, at_i, at_j, item):
        flat = [jax.tree.flatten(part) for part in function(sides(at_i), sides(at_j), items(item))]
        assert flat[1][1] == flat[2][1], "what is summed for the two bodies of a pair differs in structure"
        out[:] = [structure for _, structure in flat]
        return tuple(values for values, _ in flat)

    marks = [False] * (len(sides.carried) + len(items.carried))
    totals, sums, results = loop(pairs_p, one, sides.length, bonds, ((), sides.carried, items.carried), marks, reach)
    return Pairs(out[0].unflatten(totals), out[1].unflatten(sums), out[3].unflatten(results))
