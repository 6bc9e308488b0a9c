"""Histograms of one or two observables, over trajectories and over time.

    counts[b] = number of looks at a trajectory with  edge_b ≤ x < edge_{b+1}          (the last bin includes its right edge)

What falls outside the range is counted too, in `below` and `above` (outside, for two observables), and NaN in `nan`: nothing is lost
silently. Trajectories are independent, looks at one trajectory are not, so errors come from the spread between groups of trajectories:

    σ²(p_b) = G/(G − 1) Σ_g (C_gb − p_b N_g)² / N²,        p_b = Σ_g C_gb / N
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import Rule, checked
from bismut.ensembles.moments import scratch
from bismut.ensembles.observable import measure, value_of
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.errors import DomainError, ShapeError
from bismut.mechanics import Scheme, State
from bismut.registry import OBSERVERS

_GROUPS = 64  # of trajectories, by their numbers
_CELLS, _VALUES = 512, 4  # up to which a trajectory counts for itself; four values at 2³⁰ looks do not overflow a counter
_BINS = 2**24  # in one histogram: a gigabyte of counters
_MOST = 2**19  # counters that groups may have together; never fewer than eight groups


class Counted(NamedTuple):
    """Counts by group and bin; behind the bins those below, above, and not numbers."""

    counts: np.ndarray


class Histogram(Watcher):
    """Counts in bins of equal width; with two functions, on a grid."""

    functions: tuple[Any, ...] = eqx.field(static=True)
    bins: tuple[int, ...] = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    @property
    def cells(self) -> int:
        return int(np.prod(self.bins))

    @property
    def groups(self) -> int:
        return int(max(8, min(_GROUPS, _MOST // self.cells)))

    def bound(self, scheme, name, example):
        shapes = [measure(function, scheme, name, example) for function in self.functions]
        if len(shapes) > 1 and any(shapes):
            raise ShapeError(f"observe[{name!r}]: a histogram of two observables needs numbers, got arrays of shapes {shapes}.")
        return self

    def begin(self, scheme, state, t):
        """Each trajectory counts for itself if its counters are few; otherwise it tells the numbers of bins, row by row."""
        few = self.cells <= _CELLS and self._places(scheme, state, t).size <= _VALUES
        return jnp.zeros(self.cells + 3, jnp.uint32) if few else ()

    def look(self, memory, scheme, state, t):
        places = self._places(scheme, state, t)
        if isinstance(memory, tuple):
            return memory, places
        # A state that is not finite has no value.
        alive = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state)]).all().astype(jnp.uint32)
        for place in places.ravel():
            before = jax.lax.dynamic_index_in_dim(memory, place, keepdims=False)
            memory = jax.lax.dynamic_update_index_in_dim(memory, before + alive, place, 0)
        return memory, ()

    def _places(self, scheme: Scheme, state: State, t) -> jax.Array:
        """The numbers of the bins."""
        place, under, over, wrong = jnp.int32(0), False, False, False
        for function, low, high, bins in zip(self.functions, self.low, self.high, self.bins, strict=True):
            x = value_of(function, scheme, state, t)
            b = jnp.floor((x - low) * (bins / (high - low)))
            b = jnp.where(x == high, bins - 1.0, b)
            under, over, wrong = under | (b < 0), over | (b >= bins), wrong | jnp.isnan(x)
            place = place * bins + jnp.where((b >= 0) & (b < bins), b, 0.0).astype(jnp.int32)
        place = jnp.where(over, self.cells + 1, place)
        place = jnp.where(under, self.cells, place)
        return jnp.asarray(jnp.where(wrong, self.cells + 2, place), jnp.int32)

    def collect(self, tally, looks):
        width = self.cells + 3
        group = (looks.trajectories % np.uint64(self.groups)).astype(np.int64) * width
        rows = looks.rows.reshape(*looks.rows.shape[:2], -1)
        places = np.add(rows, group[:, None], out=scratch(rows.shape, np.int64))
        counted = places.ravel() if looks.counted is None else places[looks.counted].ravel()
        counts = np.bincount(counted, minlength=self.groups * width)
        return counts if tally is None else tally + counts

    def close(self, tally, memory, ended):
        if tally is None:
            group = ended.trajectories % np.uint64(self.groups)
            tally = np.stack([memory[group == g].sum(0, dtype=np.int64) for g in range(self.groups)])
        return Counted(tally.reshape(self.groups, -1))

    def merge(self, a, b):
        return Counted(a.counts + b.counts)

    def report(self, name, summary, clock):
        counts = np.asarray(summary.counts, np.int64)
        below, above, wrong = counts[:, self.cells :].sum(0)
        by_group, total = counts.sum(1), max(int(counts.sum()), 1)
        axes = ("bin",) if len(self.bins) == 1 else ("x", "y")
        edges = [np.linspace(low, high, bins + 1) for low, high, bins in zip(self.low, self.high, self.bins, strict=True)]
        cell = np.prod([(high - low) / bins for low, high, bins in zip(self.low, self.high, self.bins, strict=True)])
        inside = counts[:, : self.cells]
        share, filled = inside.sum(0) / total, int((by_group > 0).sum())
        scatter = ((inside - share * by_group[:, None]) ** 2).sum(0)
        stderr = np.sqrt(filled / (filled - 1) * scatter) / total if filled > 1 else np.full(self.cells, np.nan)
        variables = {
            "counts": (axes, inside.sum(0).reshape(self.bins)),
            "density": (axes, (share / cell).reshape(self.bins)),
            "stderr": (axes, (stderr / cell).reshape(self.bins)),
        }
        variables |= {f"edges_{axis}" if len(axes) > 1 else "edges": ((f"{axis}_edge",), e) for axis, e in zip(axes, edges, strict=True)}
        variables |= {"below": ((), below), "above": ((), above), "nan": ((), wrong)}
        centres = {axis: 0.5 * (e[1:] + e[:-1]) for axis, e in zip(axes, edges, strict=True)}
        text = f"{total} values, {int(below)} below and {int(above)} above the range" + (f", {int(wrong)} not numbers" if wrong else "")
        return ObserverReport(name, variables, centres, text)

    def summary_bytes(self, row, looks, trajectories):
        return 8 * self.groups * (self.cells + 3)


_FUNCTIONS = Rule(
    "a function of a State, or two of them in a tuple",
    lambda of: callable(of) or (isinstance(of, tuple | list) and 1 <= len(of) <= 2 and all(map(callable, of))),
    functions=2,
)


@OBSERVERS.register
@checked(of=_FUNCTIONS)
def histogram(of, *, range: Sequence, bins: int | Sequence[int] = 100, every: int | None = None) -> Histogram:
    """A histogram of a function of a State, range = (low, high); or of two functions, range = ((low, high), (low, high)).

    `stderr` is the error of the density, from the spread between groups of trajectories.
    """
    functions = tuple(of) if isinstance(of, tuple | list) else (of,)
    ranges = tuple(range) if np.ndim(range) > 1 else (tuple(range),)
    number = (int(bins),) * len(functions) if isinstance(bins, int | np.integer) else tuple(map(int, bins))
    if not len(functions) == len(ranges) == len(number):
        raise DomainError(f"range and bins must be given for each of {len(functions)} functions, got range = {range} and bins = {bins}.")
    if np.prod(number, dtype=float) > _BINS:
        raise DomainError(f"bins must be at most {_BINS} together, got {bins}.")
    low, high = tuple(float(r[0]) for r in ranges), tuple(float(r[1]) for r in ranges)
    return Histogram(functions, number, low, high, every=every)
