"""The least and the largest value of an observable over time, per trajectory.

low_i = min_t x_i(t),     high_i = max_t x_i(t)
"""

import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.observers.records import statistics
from bismut.ensembles.observers.report import ObserverReport, short
from bismut.ensembles.observers.watcher import Measuring
from bismut.registry import OBSERVERS


class Extremes(Measuring):
    """low and high over time: of all trajectories (`min`, `max`), and the mean over trajectories of each (`mean_min`, `mean_max`, with errors)."""

    def begin(self, scheme, state, t):
        x = self.value(scheme, state, t)
        return x, x

    def look(self, memory, scheme, state, t):
        x = self.value(scheme, state, t)
        return (jnp.minimum(memory[0], x), jnp.maximum(memory[1], x)), ()

    def close(self, tally, memory, ended):
        return tuple(moments.gather(x, ended.finished) for x in memory)

    def merge(self, a, b):
        return tuple(moments.merge(x, y) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock):
        low, high = (statistics(name, part, ()) for part in summary)
        variables = {
            "min": low["min"],
            "max": high["max"],
            "mean_min": low["mean"],
            "mean_max": high["mean"],
            "stderr_min": low["stderr"],
            "stderr_max": high["stderr"],
            "count": low["count"],
        }
        return ObserverReport(name, variables, {}, f"from {short(np.asarray(low['min'][1]))} to {short(np.asarray(high['max'][1]))}")


@OBSERVERS.register
@checked()
def extremes(of, *, every: int | None = None) -> Extremes:
    """Smallest and largest value over time of a function of a State: over all trajectories, and the mean over trajectories of each."""
    return Extremes(of, every=every)
