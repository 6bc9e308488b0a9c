"""Whole trajectories of a chosen few, at a stride.

They are the same trajectories, to the bit, that the statistics are made of. Memory grows with their number and length, so choose few.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from bismut.arguments import Rule, checked, is_integer
from bismut.ensembles.observers.report import ObserverReport, Variables
from bismut.ensembles.observers.watcher import Clock, Watcher
from bismut.registry import OBSERVERS


class Chosen(NamedTuple):
    """States (looks, chosen, ...) of those chosen trajectories that were met, in the order asked for; and which those are."""

    state: Any
    here: np.ndarray


class Paths(Watcher):
    """States of chosen trajectories at every look, at the start and at the end."""

    numbers: tuple[int, ...] = eqx.field(static=True)

    records = True

    def wants(self, trajectories):
        return bool(np.isin(np.asarray(self.numbers, np.uint64), trajectories).any())

    def look(self, memory, scheme, state, t):
        return memory, state

    def collect(self, tally, looks):
        tally = [] if tally is None else tally
        here = np.asarray(self.numbers, np.uint64)
        where = np.flatnonzero(np.isin(looks.trajectories, here))
        order = [where[np.searchsorted(looks.trajectories[where], n)] for n in here if n in looks.trajectories[where]]
        tally.append(jax.tree.map(lambda leaf: leaf[:, order].copy(), looks.rows))
        return tally

    def close(self, tally, memory, ended):
        if tally is None:
            return None
        here = np.isin(np.asarray(self.numbers, np.uint64), ended.trajectories)
        return Chosen(jax.tree.map(lambda *parts: np.concatenate(parts), *tally), here)

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        both = np.concatenate([np.flatnonzero(a.here), np.flatnonzero(b.here)])
        order = np.argsort(both, kind="stable")
        return Chosen(jax.tree.map(lambda x, y: np.concatenate([x, y], 1)[:, order], a.state, b.state), a.here | b.here)

    def report(self, name, summary, clock: Clock):
        times = clock.times
        if summary is None:
            return ObserverReport(name, {}, {"time": times}, f"none of the trajectories {list(self.numbers)} was run")
        numbers = np.asarray(self.numbers)[summary.here]
        variables: Variables = {}
        for letter, tree in (("q", summary.state.q), ("p", summary.state.p)):
            leaves = jax.tree.leaves(tree)
            for i, leaf in enumerate(leaves):
                kind = letter if len(leaves) == 1 else f"{letter}{i}"
                axes = tuple(f"{kind}_{axis}" for axis in range(leaf.ndim - 2))
                variables[kind] = (("trajectory", "time", *axes), np.moveaxis(np.asarray(leaf), 0, 1))
        return ObserverReport(name, variables, {"trajectory": numbers, "time": times}, f"trajectories {numbers.tolist()} at {len(times)} times")

    def summary_bytes(self, row, looks, trajectories):
        return len(self.numbers) * looks * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(row))


def _different(of: Any) -> bool:
    if not isinstance(of, Sequence | np.ndarray) or isinstance(of, str | bytes) or not len(of):
        return False
    return all(is_integer(n) and 0 <= n < 2**63 for n in of) and len({int(n) for n in of}) == len(of)


@OBSERVERS.register
@checked(of=Rule("a list of different trajectory numbers ≥ 0, such as [0, 1] or range(3)", _different))
def paths(of: Sequence[int], *, every: int | None = None) -> Paths:
    """Whole trajectories: their numbers, counted from 0."""
    numbers = tuple(int(n) for n in of)
    return Paths(numbers, every=every)
