"""Statistics over trajectories at chosen times: mean, standard deviation and error, least and largest value.

This is what a plain function of a `State` becomes when it is observed.
"""

import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.report import Report, Variables, component_axes
from bismut.ensembles.observers.watcher import Clock
from bismut.showing import measured


def statistics(name: str, found: Moments, axis: tuple[str, ...]) -> Variables:
    """mean, std, stderr, min, max and count of moments whose leading axes are named."""
    n = np.asarray(found.n)
    std = np.sqrt(found.second / np.maximum(n - 1, 1))
    axes = (*axis, *component_axes(name, n.shape[len(axis) :]))
    values = {
        "mean": np.where(n > 0, found.mean, np.nan),
        "std": np.where(n > 1, std, np.nan),
        "stderr": np.where(n > 1, std / np.sqrt(np.maximum(n, 1)), np.nan),
        "min": np.where(n > 0, found.low, np.nan),
        "max": np.where(n > 0, found.high, np.nan),
        "count": n,
    }
    return {kind: (axes, np.asarray(value)) for kind, value in values.items()}


_ALONE = 0.25  # of the scatter about the mean that one trajectory may carry


def standard_error(found: Moments) -> float:
    """The largest standard error over components; infinite as long as it rests on one trajectory.

    Where one value carries a quarter of Σ(x − x̄)², rarer ones that have not come yet carry the rest, and the error is an accident.
    """
    n = np.asarray(found.n)
    if n.size == 0 or n.min() < 2:
        return float("inf")
    farthest = np.maximum(found.high - found.mean, found.mean - found.low)
    if np.any(farthest**2 > _ALONE * found.second + (8 * np.finfo(float).eps * found.mean) ** 2):  # a constant has round-off about its mean
        return float("inf")
    return float(np.max(np.sqrt(found.second / (n - 1) / n)))


class Records(Measuring):
    """One observable at the recorded times."""

    @property
    def records(self):
        return True

    def look(self, memory, scheme, state, t):
        return memory, self.value(scheme, state, t)

    def collect(self, tally, seen):
        tally = [] if tally is None else tally
        tally.append(moments.gather(seen.rows, seen.counted, axis=1))
        return tally

    def close(self, tally, memory, ended):
        return moments.joined(tally)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock: Clock):
        times = clock.begin + clock.h * np.asarray(record_steps(clock.steps, clock.every))
        variables = statistics(name, summary, ("time",))
        mean, error = variables["mean"][1], variables["stderr"][1]
        words = f"mean {measured(mean[0], error[0])} at t = {times[0]:g}, {measured(mean[-1], error[-1])} at t = {times[-1]:g}"
        return Report(name, variables, {"time": times}, words)

    def error(self, summary):
        return standard_error(Moments(*(rows[-1] for rows in summary)))

    def held(self, row, looks, trajectories):
        return 5 * 8 * looks * row.size


def record_steps(steps: int, every: int) -> range | list[int]:
    """The steps after which a record is made: 0, every, 2 every, ..., and the last."""
    marks = range(0, steps + 1, every)
    return marks if marks[-1] == steps else [*marks, steps]
