"""Statistics over trajectories at chosen times: mean, standard deviation and error, least and largest value.

This is what a plain function of a `State` becomes when it is observed.
"""

import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers.report import ObserverReport, Variables, component_axes
from bismut.ensembles.observers.watcher import Clock, Measuring
from bismut.formatting import with_error


def statistics(name: str, over: Moments, axis: tuple[str, ...]) -> Variables:
    """mean, std, stderr, min, max and count of moments whose leading axes are named."""
    n = np.asarray(over.n)
    std = np.sqrt(over.second / np.maximum(n - 1, 1))
    axes = (*axis, *component_axes(name, n.shape[len(axis) :]))
    values = {
        "mean": np.where(n > 0, over.mean, np.nan),
        "std": np.where(n > 1, std, np.nan),
        "stderr": np.where(n > 1, std / np.sqrt(np.maximum(n, 1)), np.nan),
        "min": np.where(n > 0, over.low, np.nan),
        "max": np.where(n > 0, over.high, np.nan),
        "count": n,
    }
    return {kind: (axes, np.asarray(value)) for kind, value in values.items()}


_ALONE = 0.25  # of the scatter about the mean that one trajectory may carry


def standard_error(over: Moments) -> float:
    """The largest standard error over components; infinite as long as it rests on one trajectory.

    Where one value carries a quarter of Σ(x − x̄)², rarer ones that have not come yet carry the rest, and the error is an accident.
    """
    n = np.asarray(over.n)
    if n.size == 0 or n.min() < 2:
        return float("inf")
    farthest = np.maximum(over.high - over.mean, over.mean - over.low)
    if np.any(farthest**2 > _ALONE * over.second + (8 * np.finfo(float).eps * over.mean) ** 2):  # a constant has round-off about its mean
        return float("inf")
    return float(np.max(np.sqrt(over.second / (n - 1) / n)))


class Records(Measuring):
    """One observable at the recorded times."""

    records = True

    def collect(self, tally, looks):
        tally = [] if tally is None else tally
        tally.append(moments.gather(looks.rows, looks.counted, axis=1))
        return tally

    def close(self, tally, memory, ended):
        return moments.joined(tally)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock: Clock):
        times = clock.times
        variables = statistics(name, summary, ("time",))
        mean, error = variables["mean"][1], variables["stderr"][1]
        text = f"mean {with_error(mean[0], error[0])} at t = {times[0]:g}, {with_error(mean[-1], error[-1])} at t = {times[-1]:g}"
        return ObserverReport(name, variables, {"time": times}, text)

    def error(self, summary):
        return standard_error(Moments(*(rows[-1] for rows in summary)))

    def summary_bytes(self, row, looks, trajectories):
        return 5 * 8 * looks * row.size
