"""What a run returns: labelled statistics of each observable over time, the final states, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bismut.ensembles.moments import Moments
from bismut.ensembles.outcome import Outcome
from bismut.errors import BismutError, nearest
from bismut.mechanics import State

if TYPE_CHECKING:
    import xarray


class Statistics:
    """One observable at the recorded times: `mean`, `std`, `stderr`, `min`, `max` and `count` over trajectories, as xarray."""

    def __init__(self, name: str, times: np.ndarray, moments: Moments):
        self.name, self.times, self.moments = name, times, moments

    def _labelled(self, values, kind: str) -> xarray.DataArray:
        import xarray

        values = np.asarray(values)
        axes = ["time"] + [f"{self.name}_{i}" for i in range(values.ndim - 1)]
        return xarray.DataArray(values, dims=axes, coords={"time": self.times}, name=f"{self.name}_{kind}")

    @property
    def mean(self):
        return self._labelled(np.where(self.moments.n > 0, self.moments.mean, np.nan), "mean")

    @property
    def std(self):
        n = np.asarray(self.moments.n)
        variance = self.moments.second / np.maximum(n - 1, 1)
        return self._labelled(np.where(n > 1, np.sqrt(variance), np.nan), "std")

    @property
    def stderr(self):
        return self._labelled(self.std.values / np.sqrt(np.maximum(self.moments.n, 1)), "stderr")

    @property
    def min(self):
        return self._labelled(self.moments.low, "min")

    @property
    def max(self):
        return self._labelled(self.moments.high, "max")

    @property
    def count(self):
        return self._labelled(self.moments.n, "count")

    def __repr__(self):
        first, last = self.mean.values[0], self.mean.values[-1]
        show = lambda value: np.array2string(np.asarray(value), precision=6)
        return f"{self.name}: mean {show(first)} at t = {self.times[0]:g}, {show(last)} at t = {self.times[-1]:g}"


@dataclass(frozen=True)
class Provenance:
    """What is needed to repeat a run, beside the user's own functions."""

    scheme: str
    space: str
    precision: str
    step: float
    steps: int
    every: int
    trajectories: int
    t0: float
    seed: int
    substeps: int
    shift: int
    bounded: bool
    mode: str
    block: int
    parameters: str
    versions: dict[str, str]


class Result:
    """Statistics by name (`result.energy` or `result["energy"]`), `final` states, `outcome`, `times` and `provenance`."""

    def __init__(self, times: np.ndarray, moments: dict[str, Moments], final: State | None, outcome: Outcome, provenance: Provenance):
        self.times, self.final, self.outcome, self.provenance = times, final, outcome, provenance
        self.observables = {name: Statistics(name, times, m) for name, m in moments.items()}

    def __getitem__(self, name: str) -> Statistics:
        if name not in self.observables:
            raise BismutError(f"This run did not observe {name!r}. {nearest(name, self.observables)}")
        return self.observables[name]

    def __getattr__(self, name: str) -> Statistics:
        if name.startswith("_") or name == "observables":
            raise AttributeError(name)
        try:
            return self[name]
        except BismutError as problem:
            raise AttributeError(str(problem)) from None

    def __repr__(self):
        p = self.provenance
        head = f"{p.scheme} on {p.space}: {p.trajectories} trajectories, {p.steps} steps of {p.step:g}, seed {p.seed}; {self.outcome}"
        return "\n".join([head, *(f"  {statistics!r}" for statistics in self.observables.values())])
