"""Watchers: the interface of observers, in constant memory.

    compiled, for one trajectory      begin(state) → memory,     look(memory, state) → (memory, row)   every so many steps
    on the host, for one block        collect(tally, rows) → tally   some looks at a time,      close(tally, memory) → summary
    on the host, for the run          merge(summary, summary) → summary,      report(summary) → named arrays

The memory of a trajectory is updated by the compiled program; rows are handed to the host, where statistics over trajectories are computed in NumPy,
many looks at a time. A block ends in a summary of plain arrays; summaries are merged in block order, and the last one is reported. What samples every
step (averages over time, lags, counts) keeps sums in the memory and hands over no rows: `close` reads them at the end. A value counts if every state
it is computed from is finite.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import numpy as np

from bismut.arguments import TABLE
from bismut.ensembles.observable import measure, value_of
from bismut.ensembles.observers.report import ObserverReport
from bismut.formatting import dataclass_repr
from bismut.mechanics import Scheme, State
from bismut.noise import Path


class Setting(NamedTuple):
    """What a run computes with: its scheme, its noise, its watchers by name."""

    scheme: Scheme
    path: Path
    watchers: tuple[tuple[str, Watcher], ...]


class Looks(NamedTuple):
    """Some successive looks: rows (looks, n, ...), the step of each look since the watch began, the numbers of the trajectories, and which of them
    were finite at each look, (looks, n); None if all were."""

    rows: Any
    steps: np.ndarray
    trajectories: np.ndarray
    counted: np.ndarray | None


class Ended(NamedTuple):
    """The end of a block.

    trajectories  their numbers (n,)
    finished      which of them finished (n,)
    survived      for how many watched steps each was finite; −1: it failed before the watch began
    steps         that were watched; looks: how often the watcher looked; every: its stride
    setting       of the run; h, t0: its clock; first: the step at which the watch began; size: of a block
    """

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
    """When a watcher looked, and at how many trajectories, for its report; `before` are the steps before its first look, burn-in and earlier
    runs; `one_start` is whether all of them began at one point."""

    begin: float
    h: float
    every: int
    steps: int
    trajectories: int
    before: int = 0
    one_start: bool = False

    @property
    def looks(self) -> int:
        return self.steps // self.every + 1

    @property
    def times(self) -> np.ndarray:
        """Of the looks of one that records: at the start, every so many steps, and at the end."""
        return self.begin + self.h * np.asarray(record_steps(self.steps, self.every))


def record_steps(steps: int, every: int) -> range | list[int]:
    """The steps after which a record is made: 0, every, 2 every, ..., and the last."""
    marks = range(0, steps + 1, every)
    return marks if marks[-1] == steps else [*marks, steps]


class Watcher(eqx.Module):
    """The methods that a run calls; `every` is the number of steps between looks, None for that of the run."""

    every: int | None = eqx.field(static=True, default=None, kw_only=True)
    records: ClassVar[bool] = False  # whether it looks at the last step whatever its stride
    sees_start: ClassVar[bool] = True  # whether the first look is at the start; otherwise `begin` has seen enough of it

    def __check_init__(self):
        if self.every is not None:
            TABLE["every"].check(self.every, "every")

    def __repr__(self) -> str:
        return dataclass_repr(self)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)  # equinox would make a tree of every method that is called, 50 µs each

    def bound(self, scheme: Scheme, name: str, example: State) -> Watcher:
        """The watcher for a scheme, checked on shapes so that mistakes show before the run."""
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

    def collect(self, tally: Any, looks: Looks) -> Any:
        """The tally after some more looks, None before the first."""
        del looks
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

    def fits(self, expected: Any, stored: Any) -> bool:
        """Whether a stored summary has the arrays of an expected one. Whole numbers may be real: NaN stands for trajectories that failed."""
        (want, form), (have, shape) = jax.tree.flatten(expected), jax.tree.flatten(stored)
        like = lambda a, b: a.shape == b.shape and (a.dtype.kind == b.dtype.kind or (a.dtype.kind in "iu" and b.dtype.kind == "f"))
        return form == shape and all(like(np.asarray(a), np.asarray(b)) for a, b in zip(want, have, strict=True))

    # On the host, for the run.

    def merge(self, a: Any, b: Any) -> Any:
        """The summary of two blocks, in their order."""
        raise self._missing("merge")

    def report(self, name: str, summary: Any, clock: Clock) -> ObserverReport:
        """The summary of a whole run, under its name."""
        raise self._missing("report")

    @property
    def has_error(self) -> bool:
        """Whether there is a standard error, for runs that continue until it is small enough (`until`)."""
        return type(self).error is not Watcher.error

    def error(self, summary: Any) -> float:
        """The largest standard error of what is reported at the end."""
        raise self._missing("error")

    def summary_bytes(self, row: Any, looks: int, trajectories: int) -> int:
        """Bytes of the summary of so many looks at so many trajectories; `row` has the shapes of one row."""
        del row, looks, trajectories
        return 0

    def _missing(self, verb: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} is a watcher without `{verb}`, which a run needs: see bismut.ensembles.Watcher.")


class Measuring(Watcher):
    """A watcher of function(state) or function(state, t), an array of any shape."""

    function: Any = eqx.field(static=True)

    def bound(self, scheme, name, example):
        measure(self.function, scheme, name, example)
        return self

    def value(self, scheme: Scheme, state: State, t) -> jax.Array:
        """The function of one state."""
        return value_of(self.function, scheme, state, t)

    def look(self, memory: Any, scheme: Scheme, state: State, t) -> tuple[Any, Any]:
        return memory, self.value(scheme, state, t)
