"""The values of an observable, trajectory by trajectory, at every look: nothing is averaged.

Memory grows with trajectories times looks, so look seldom; a look at the end alone is every = steps.
"""

import numpy as np

from bismut.arguments import checked
from bismut.ensembles.observers.report import ObserverReport, component_axes
from bismut.ensembles.observers.watcher import Clock, Measuring
from bismut.registry import OBSERVERS


class Values(Measuring):
    """All values (trajectory, time, ...), at the start, at every look and at the end; NaN from a failing step on."""

    records = True

    def collect(self, tally, looks):
        tally = [] if tally is None else tally
        rows = np.moveaxis(looks.rows, 0, 1)
        counted = None if looks.counted is None else looks.counted.T.reshape(*rows.shape[:2], *[1] * (rows.ndim - 2))
        tally.append(rows.copy() if counted is None else np.where(counted, rows, np.nan))
        return tally

    def close(self, tally, memory, ended):
        return np.concatenate(tally, 1), ended.trajectories

    def merge(self, a, b):
        return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock: Clock):
        values, numbers = summary
        times = clock.times
        variables = {"value": (("trajectory", "time", *component_axes(name, values.shape[2:])), values)}
        text = f"values of {len(values)} trajectories at {len(times)} times"
        return ObserverReport(name, variables, {"trajectory": numbers, "time": times}, text)

    def summary_bytes(self, row, looks, trajectories):
        return row.size * row.dtype.itemsize * looks * trajectories


@OBSERVERS.register
@checked()
def values(of, *, every: int | None = None) -> Values:
    """The values of a function of a State, of every trajectory at every observation, kept unchanged."""
    return Values(of, every=every)
