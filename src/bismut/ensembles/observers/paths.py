"""Whole trajectories of a chosen few, at a stride.

They are the same trajectories, to the bit, that the statistics are made of. Memory grows with their number and length, so choose few.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.observers.records import record_steps
from bismut.ensembles.observers.report import Report, Variables
from bismut.ensembles.observers.watcher import Clock, Watcher
from bismut.errors import DomainError


class Chosen(NamedTuple):
    """The states of the chosen trajectories, not a number for those of other blocks; and which belong to this one."""

    state: Any
    here: Any


class Paths(Watcher):
    """States of chosen trajectories at every look, at the start and at the end."""

    numbers: tuple[int, ...] = eqx.field(static=True)

    @property
    def records(self):
        return True

    def row(self, setting, sight, index):
        # A trajectory number is a pair of 32-bit words.
        low, high = (jnp.asarray([n >> shift & 0xFFFFFFFF for n in self.numbers], jnp.uint32) for shift in (0, 32))
        match = (index[0][None] == low[:, None]) & (index[1][None] == high[:, None])
        here, place = jnp.any(match, 1), jnp.argmax(match, 1)

        def pick(leaf):
            chosen = leaf[place]
            return jnp.where(here.reshape(-1, *[1] * (chosen.ndim - 1)), chosen, jnp.nan)

        return Chosen(jax.tree.map(pick, sight.state), here)

    def merge(self, a, b):
        def take(x, y):
            return np.where(b.here.reshape(*b.here.shape, *[1] * (x.ndim - 2)), y, x)

        return Chosen(jax.tree.map(take, a.state, b.state), a.here | b.here)

    def report(self, name, summary, clock: Clock):
        times = clock.begin + clock.h * np.asarray(record_steps(clock.steps, clock.every))[: len(summary.here)]
        variables: Variables = {}
        for letter, tree in (("q", summary.state.q), ("p", summary.state.p)):
            leaves = jax.tree.leaves(tree)
            for i, leaf in enumerate(leaves):
                kind = letter if len(leaves) == 1 else f"{letter}{i}"
                axes = tuple(f"{kind}_{axis}" for axis in range(leaf.ndim - 2))
                variables[kind] = (("trajectory", "time", *axes), np.moveaxis(np.asarray(leaf), 0, 1))
        coordinates = {"trajectory": np.asarray(self.numbers), "time": times}
        return Report(name, variables, coordinates, f"trajectories {list(self.numbers)} at {len(times)} times")


def paths(of: Sequence[int], *, every: int | None = None) -> Paths:
    """Whole trajectories: their numbers, counted from 0."""
    numbers = tuple(int(n) for n in of)
    if not numbers or min(numbers) < 0 or len(set(numbers)) != len(numbers):
        raise DomainError(f"paths wants different trajectory numbers ≥ 0, but {list(of)} came.")
    return Paths(numbers, every=every)
