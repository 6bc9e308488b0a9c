"""What watches a run, in constant memory.

    begin(sight) → memory,    look(memory, sight) → memory   every so many steps,    end(memory) → summary,    merge(summary, summary) → summary

A watcher belongs to the compiled program of a block: it sees all its trajectories at once and carries a memory of fixed size from look to look.
When the block has finished, its memory becomes a summary on the host; summaries are merged in block order, and the last one is reported. A watcher
with `row` writes one row at each look instead, and the rows of a run are what it reports: that is how statistics over time are made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bismut.ensembles.observers.report import Report
from bismut.mechanics import Scheme, State
from bismut.noise import Index, Wiener
from bismut.showing import settings


class Sight(NamedTuple):
    """The trajectories of a block at one time; those that are not counted have failed or do not exist."""

    state: State
    t: Float[Array, ""]
    step: Index
    counted: Bool[Array, " n"]


class Setting(eqx.Module):
    """What a run consists of, apart from its states: how it steps, what drives it, who watches."""

    scheme: Scheme
    path: Wiener
    h: Float[Array, ""]
    t0: Float[Array, ""]
    watchers: tuple[tuple[str, Watcher], ...]
    by_lanes: bool = eqx.field(static=True)

    def time(self, k: Index) -> Float[Array, ""]:
        dtype = self.scheme.system.dtype
        return self.t0 + self.h * (k[0].astype(dtype) + jnp.asarray(2.0**32, dtype) * k[1].astype(dtype))


class Clock(NamedTuple):
    """When a watcher looked, and at how many trajectories, for its report."""

    begin: float
    h: float
    every: int
    steps: int
    trajectories: int


class Watcher(eqx.Module):
    """The verbs a run calls; `every` is the number of steps between looks, None for that of the run."""

    every: int | None = eqx.field(static=True, default=None, kw_only=True)

    def __repr__(self) -> str:
        return settings(self)

    @property
    def records(self) -> bool:
        """Whether it writes rows, and looks at the last step whatever its stride."""
        return False

    def bound(self, scheme: Scheme, name: str, example: State) -> Watcher:
        """The watcher made ready for a scheme, tried on shapes: mistakes show before the run."""
        del scheme, name, example
        return self

    def begin(self, setting: Setting, sight: Sight) -> Any:
        del setting, sight
        return ()

    def look(self, memory: Any, setting: Setting, sight: Sight) -> Any:
        del setting, sight
        return memory

    def row(self, setting: Setting, sight: Sight, index: Index) -> Any:
        """What is written at one look, by a watcher that `records`."""
        raise self._missing("row")

    def end(self, memory: Any, setting: Setting, sight: Sight, index: Index) -> Any:
        """The summary of a block, as arrays; runs once, at the end."""
        del setting, sight, index
        return memory

    def merge(self, a: Any, b: Any) -> Any:
        """The summary of two blocks, in their order; on the host."""
        raise self._missing("merge")

    def report(self, name: str, summary: Any, clock: Clock) -> Report:
        """The summary of a whole run, under its name."""
        raise self._missing("report")

    def error(self, summary: Any) -> float | None:
        """The largest standard error of what is reported at the end, for a run that goes on until it is small enough."""
        del summary
        return None

    def _missing(self, verb: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} is a watcher without `{verb}`, which a run needs: see bismut.ensembles.Watcher.")
