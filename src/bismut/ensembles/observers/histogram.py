"""Histograms of one or two observables, over trajectories and over time.

    counts[b] = number of looks at a trajectory with  edge_b ≤ x < edge_{b+1}          (the last bin includes its right edge)

What falls outside the range is counted too, in `below` and `above` (outside, for two observables): nothing is lost silently.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.observable import Measure, measure
from bismut.ensembles.observers.report import Report
from bismut.ensembles.observers.watcher import Watcher
from bismut.errors import DomainError, ShapeError


class Histogram(Watcher):
    """Counts in bins of equal width; with two functions, on a grid."""

    functions: tuple[Any, ...] = eqx.field(static=True)
    bins: tuple[int, ...] = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    measures: tuple[Measure, ...] = ()

    def bound(self, scheme, name, example):
        measures = tuple(measure(function, scheme, name, example) for function in self.functions)
        if len(measures) > 1 and any(m.shape(example) for m in measures):
            raise ShapeError(
                f"observe[{name!r}]: a histogram of two observables needs numbers, but arrays of shapes {[m.shape(example) for m in measures]} came."
            )
        return eqx.tree_at(lambda w: w.measures, self, measures, is_leaf=lambda x: x == ())

    def begin(self, setting, sight):
        return jnp.zeros(self.bins, jnp.int32), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def look(self, memory, setting, sight):
        counts, below, above = memory
        n = sight.counted.shape[0]
        values = [m(sight.state, sight.t).reshape(n, -1) for m in self.measures]
        counted = jnp.broadcast_to(sight.counted[:, None], values[0].shape)
        place, under, over = [], False, False
        for x, low, high, bins in zip(values, self.low, self.high, self.bins, strict=True):
            b = jnp.floor((x - low) * (bins / (high - low)))
            b = jnp.where(x == high, bins - 1, b)
            under, over = under | (b < 0), over | (b >= bins)
            place.append(jnp.clip(b, 0, bins - 1).astype(jnp.int32))
        inside = counted & ~under & ~over
        counts = counts.at[tuple(place)].add(inside.astype(jnp.int32))
        return counts, below + jnp.sum(counted & under, dtype=jnp.int32), above + jnp.sum(counted & over & ~under, dtype=jnp.int32)

    def merge(self, a, b):
        return tuple(np.asarray(x, np.int64) + np.asarray(y, np.int64) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock):
        counts, below, above = (np.asarray(part, np.int64) for part in summary)
        axes = ("bin",) if len(self.bins) == 1 else ("x", "y")
        edges = [np.linspace(low, high, bins + 1) for low, high, bins in zip(self.low, self.high, self.bins, strict=True)]
        total = max(int(counts.sum() + below + above), 1)
        cell = np.prod([(high - low) / bins for low, high, bins in zip(self.low, self.high, self.bins, strict=True)])
        variables = {"counts": (axes, counts), "density": (axes, counts / (total * cell))}
        variables |= {f"edges_{axis}" if len(axes) > 1 else "edges": ((f"{axis}_edge",), e) for axis, e in zip(axes, edges, strict=True)}
        variables |= {"below": ((), below), "above": ((), above)}
        centres = {axis: 0.5 * (e[1:] + e[:-1]) for axis, e in zip(axes, edges, strict=True)}
        return Report(name, variables, centres, f"{total} values, {int(below)} below and {int(above)} above the range")


def histogram(of, *, range: Sequence, bins: int | Sequence[int] = 100, every: int | None = None) -> Histogram:
    """A histogram of a function of a State, range = (low, high); or of two functions, range = ((low, high), (low, high)).

    At most 2³¹ values fall into one bin of one block of trajectories.
    """
    functions = tuple(of) if isinstance(of, tuple | list) else (of,)
    ranges = tuple(range) if len(functions) > 1 else (tuple(range),)
    if len(functions) > 2 or len(ranges) != len(functions) or any(len(r) != 2 or not r[0] < r[1] for r in ranges):
        raise DomainError(f"A histogram needs one or two functions and (low, high) with low < high for each, but {len(functions)} and {range} came.")
    number = tuple(bins) if isinstance(bins, Sequence) else (bins,) * len(functions)
    if len(number) != len(functions) or any(not isinstance(b, int) or b < 1 for b in number):
        raise DomainError(f"bins must be a whole number ≥ 1 for each function, but {bins} came.")
    low, high = tuple(float(r[0]) for r in ranges), tuple(float(r[1]) for r in ranges)
    return Histogram(functions, number, low, high, every=every)
