"""What watches a run, in constant memory.

    compiled, for one trajectory      begin(state) → memory,     look(memory, state) → (memory, row)   every so many steps
    on the host, for one block        collect(tally, rows) → tally   some looks at a time,      close(tally, memory) → summary
    on the host, for the run          merge(summary, summary) → summary,      report(summary) → what is found

What is remembered per trajectory is looked after by the compiled program; rows are handed to the host, where statistics over trajectories are made
in NumPy, many looks at a time. A block ends in a summary of plain arrays; summaries are merged in block order, and the last one is reported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from bismut.arguments import TABLE
from bismut.ensembles.observers.report import Report
from bismut.mechanics import Scheme, State
from bismut.noise import Path
from bismut.showing import settings


class Setting(NamedTuple):
    """What a run computes with: how it steps, what drives it, who watches."""

    scheme: Scheme
    path: Path
    watchers: tuple[tuple[str, Watcher], ...]


class Seen(NamedTuple):
    """Some successive looks: rows (looks, n, ...), the step of each look since the watch began, the numbers of the trajectories, and which of them
    were finite at each look (looks, n); None if all were."""

    rows: Any
    steps: np.ndarray
    trajectories: np.ndarray
    counted: np.ndarray | None


class Ended(NamedTuple):
    """The end of a block: who finished (n,), for how many watched steps each was finite (−1: it failed before the watch began), how many steps were
    watched, how often and at which stride the watcher looked; the course of the run, the step at which the watch began, and the size of a block."""

    trajectories: np.ndarray
    finished: np.ndarray
    survived: np.ndarray
    steps: int
    looks: int
    every: int
    setting: Setting
    h: float
    t0: float
    first: int
    size: int


class Clock(NamedTuple):
    """When a watcher looked, and at how many trajectories, for its report; `before` are the steps before its first look, burn-in and earlier runs."""

    begin: float
    h: float
    every: int
    steps: int
    trajectories: int
    before: int = 0

    @property
    def looks(self) -> int:
        return self.steps // self.every + 1


class Watcher(eqx.Module):
    """The verbs a run calls; `every` is the number of steps between looks, None for that of the run."""

    every: int | None = eqx.field(static=True, default=None, kw_only=True)

    def __check_init__(self):
        if self.every is not None:
            TABLE["every"].check(self.every, "every")

    def __repr__(self) -> str:
        return settings(self)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)  # equinox would make a tree of every method that is called, 50 µs each

    @property
    def records(self) -> bool:
        """Whether it looks at the last step whatever its stride."""
        return False

    @property
    def sees_start(self) -> bool:
        """Whether the first look is at the start; otherwise `begin` has seen enough of it."""
        return True

    def bound(self, scheme: Scheme, name: str, example: State) -> Watcher:
        """The watcher made ready for a scheme, tried on shapes: mistakes show before the run."""
        del scheme, name, example
        return self

    # Compiled, for one trajectory.

    def begin(self, scheme: Scheme, state: State, t) -> Any:
        """The first memory, a tree of arrays; () for none."""
        del scheme, state, t
        return ()

    def look(self, memory: Any, scheme: Scheme, state: State, t) -> tuple[Any, Any]:
        """The memory after a look, and a row, a tree of arrays; () for none."""
        del scheme, state, t
        return memory, ()

    # On the host, for one block.

    def wants(self, trajectories: np.ndarray) -> bool:
        """Whether a block with these trajectories is looked at."""
        del trajectories
        return True

    def collect(self, tally: Any, seen: Seen) -> Any:
        """The tally after some more looks, None before the first."""
        del seen
        return tally

    def close(self, tally: Any, memory: Any, ended: Ended) -> Any:
        """The summary of a block, a tree of NumPy arrays; `memory` has the trajectories as its first axis."""
        del memory, ended
        return tally

    def freeze(self, tally: Any) -> Any:
        """A tally as a tree of arrays, numbers, lists and NamedTuples, for a checkpoint; `thaw` makes it a tally again."""
        return tally

    def thaw(self, frozen: Any) -> Any:
        return frozen

    def fits(self, expected: Any, found: Any) -> bool:
        """Whether a stored summary has the arrays of an expected one. Whole numbers may be real: NaN stands for trajectories that failed."""
        (want, form), (have, shape) = jax.tree.flatten(expected), jax.tree.flatten(found)
        like = lambda a, b: a.shape == b.shape and (a.dtype.kind == b.dtype.kind or (a.dtype.kind in "iu" and b.dtype.kind == "f"))
        return form == shape and all(like(np.asarray(a), np.asarray(b)) for a, b in zip(want, have, strict=True))

    # On the host, for the run.

    def merge(self, a: Any, b: Any) -> Any:
        """The summary of two blocks, in their order."""
        raise self._missing("merge")

    def report(self, name: str, summary: Any, clock: Clock) -> Report:
        """The summary of a whole run, under its name."""
        raise self._missing("report")

    @property
    def has_error(self) -> bool:
        """Whether there is a standard error to go by, for a run that goes on until it is small enough."""
        return type(self).error is not Watcher.error

    def error(self, summary: Any) -> float:
        """The largest standard error of what is reported at the end."""
        raise self._missing("error")

    def held(self, row: Any, looks: int, trajectories: int) -> int:
        """Bytes of the summary of so many looks at so many trajectories; `row` has the shapes of one row."""
        del row, looks, trajectories
        return 0

    def _missing(self, verb: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} is a watcher without `{verb}`, which a run needs: see bismut.ensembles.Watcher.")
