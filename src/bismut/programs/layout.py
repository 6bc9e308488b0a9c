"""How a loop over items reads its operands and writes its results.

    operands   shared by all | of bodies (K, ...), read at i and at j   | of items (n, ...), read at p
    results    summed over all | of bodies (K, ...), summed at i and at j | of items (n, ...), written at p

In the program of one item the arguments come as (shared, at i, at j, of the item), the results as (total, for i, for j, of the item).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class Bonds:
    """A fixed set of pairs: numbers i and j of bodies, arrays (n,). Equal sets are equal, so that they can stand in a program."""

    def __init__(self, i, j):
        self.i, self.j = np.asarray(i, np.int32), np.asarray(j, np.int32)
        self._key = (self.i.tobytes(), self.j.tobytes())

    def __eq__(self, other):
        return isinstance(other, Bonds) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return f"Bonds({len(self.i)})"


class Reach(NamedTuple):
    """Pairs that are farther apart than this contribute nothing, to values and derivatives alike: who knows near ones may leave the others out.

    positions  which of the operands of bodies is where they are, (K, d)
    cutoff     the distance
    box        sides of the periodic box in which distances are those of nearest images, inf where it is open; () without one
    """

    positions: int
    cutoff: float
    box: tuple[float, ...] = ()


class LoopLayout(NamedTuple):
    """How many operands and results of a loop are of which kind.

    length   K, the number of bodies; for `each` the number of items
    shared   operands that all items see
    bodies   operands with one entry per body; for `each` none
    totals   results that are summed over all items
    sums     results that are summed for each body; for `each` none
    bonds    which pairs: None for all pairs i < j, in the order of `pair_indices`
    reach    which of them contribute nothing, if that is known
    """

    length: int
    shared: int
    bodies: int
    totals: int
    sums: int
    bonds: Bonds | None
    reach: Reach | None = None

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.length * (self.length - 1) // 2 if self.bonds is None else len(self.bonds.i)

    def operands(self, flat: Sequence) -> tuple[list, list, list]:
        """Operands by kind."""
        return split_at(flat, self.shared, self.bodies)

    def arguments(self, flat: Sequence) -> tuple[list, list, list, list]:
        """Arguments of the inner program by kind."""
        return split_at(flat, self.shared, self.bodies, self.bodies)

    def spread(self, flat: Sequence) -> list:
        """What holds for the operands, for the arguments of the inner program."""
        shared, bodies, own = self.operands(flat)
        return [*shared, *bodies, *bodies, *own]

    def joined(self, flat: Sequence) -> list:
        """What holds for the results of the inner program, for those of the loop: of the two sides of a pair the larger."""
        totals, for_i, for_j, own = self.returns(flat)
        return [*totals, *map(max, for_i, for_j), *own]

    def results(self, flat: Sequence) -> tuple[list, list, list]:
        return split_at(flat, self.totals, self.sums)

    def returns(self, flat: Sequence) -> tuple[list, list, list, list]:
        """Results of the inner program by kind."""
        return split_at(flat, self.totals, self.sums, self.sums)

    def wanted(self, results: Sequence[bool]) -> list[bool]:
        """Which results of the inner program are used, if these of the loop are."""
        totals, sums, own = self.results(results)
        return [*totals, *sums, *sums, *own]

    def pruned(self, results: Sequence[bool], arguments: Sequence[bool]) -> tuple[list[bool], LoopLayout]:
        """The operands that are left, and their layout, where only these results are used, and for them these arguments of the inner program."""
        shared, at_i, at_j, items = self.arguments(arguments)
        bodies = [first or second for first, second in zip(at_i, at_j, strict=True)]
        totals, sums, _ = self.results(results)
        reach = self.reach
        if reach is not None:
            reach = reach._replace(positions=sum(bodies[: reach.positions])) if bodies[reach.positions] else None
        layout = self._replace(shared=sum(shared), bodies=sum(bodies), totals=sum(totals), sums=sum(sums), reach=reach)
        return [*shared, *bodies, *items], layout


def split_at(flat: Sequence, *counts: int) -> Any:
    """Consecutive parts of a list, the last one being the rest."""
    bounds = np.cumsum([0, *counts])
    return (*(list(flat[a:b]) for a, b in pairwise(bounds)), list(flat[bounds[-1] :]))
