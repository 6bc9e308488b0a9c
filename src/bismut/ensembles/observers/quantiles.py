"""Quantiles of an observable over trajectories and time, without knowing its range.

A sketch of a stream is a sample that stands for all of it, by rank (Munro & Paterson; Manku, Rajagopalan & Lindsay):

    buffers of K sorted values, each value standing for 2^l of the stream;  two of level l become one of level l + 1: sorted, every other stays

Which values stay depends on their order alone, so a heavy tail costs nothing: the share of the stream that lies below a value is right to L/(2K),
L = log₂(N/4K) the number of levels (0.3 % for 10¹² values, and a tenth of that as a rule), and exact for the first 4K values. There is one sketch for
each of some groups of trajectories; the quantile is that of all together, and its error comes from the spread between groups, since trajectories are
independent and looks at one are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from bismut.arguments import checked
from bismut.ensembles.observers.report import ObserverReport, component_axes, short
from bismut.ensembles.observers.watcher import Measuring
from bismut.registry import OBSERVERS

K = 2048  # values of a buffer
_FULL = 4 * K  # values that are kept as they are
_GROUPS = 16  # of trajectories, by their numbers


class Plain(NamedTuple):
    """A sketch as arrays, to be stored and sent."""

    waiting: np.ndarray
    levels: tuple[np.ndarray, ...]
    turns: int
    low: float
    high: float


def _is_sketch(plain: Any) -> bool:
    """Whether something stored is a sketch: rows of real numbers, how often the turn changed, and the range."""
    if type(plain) is not Plain or not isinstance(plain.levels, tuple):
        return False
    rows = all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind == "f" for part in (plain.waiting, *plain.levels))
    return rows and type(plain.turns) is int and type(plain.low) is float and type(plain.high) is float


class Sketch:
    """Values not yet sorted in, and one buffer per level, an empty one for none; level l stands for 2^(l + 2) values each."""

    def __init__(self, plain: Plain | None = None):
        self.waiting, levels, self.turns, self.low, self.high = plain or Plain(np.zeros(0), (), 0, np.inf, -np.inf)
        self.levels = list(levels)

    def plain(self) -> Plain:
        return Plain(self.waiting, tuple(self.levels), self.turns, self.low, self.high)

    def add(self, values: np.ndarray) -> None:
        if not values.size:
            return
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        waiting = np.concatenate([self.waiting, values])
        while len(waiting) >= _FULL:
            self._carry(np.sort(waiting[:_FULL])[2::4], 0)
            waiting = waiting[_FULL:]
        self.waiting = waiting.copy()

    def take(self, other: Sketch) -> None:
        """The other stream too: levels add up like binary digits."""
        self.add(other.waiting)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for level, buffer in enumerate(other.levels):
            if buffer.size:
                self._carry(buffer, level)

    def _carry(self, buffer: np.ndarray, level: int) -> None:
        while True:
            self.levels += [np.zeros(0)] * (level + 1 - len(self.levels))
            other = self.levels[level]
            if not other.size:
                self.levels[level] = buffer
                return
            self.levels[level] = np.zeros(0)
            self.turns += 1  # the odd ones and the even ones in turn, so that neither end is favoured
            buffer, level = np.sort(np.concatenate([other, buffer]))[self.turns % 2 :: 2], level + 1

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """All values that are kept, and what each stands for."""
        parts = [(self.waiting, 1.0), *((buffer, 4.0 * 2**level) for level, buffer in enumerate(self.levels))]
        return np.concatenate([values for values, _ in parts]), np.concatenate([np.full(len(values), weight) for values, weight in parts])


def quantile(sketches: list[Sketch], levels: tuple[float, ...]) -> np.ndarray:
    """The least values at or below which a share of all streams together lies."""
    values, weights = (np.concatenate(parts) for parts in zip(*(sketch.weighted() for sketch in sketches), strict=True))
    if not len(values):
        return np.full(len(levels), np.nan)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    inner = values[order][np.minimum(np.searchsorted(below, np.asarray(levels) * below[-1]), len(values) - 1)]
    low, high = min(sketch.low for sketch in sketches), max(sketch.high for sketch in sketches)
    return np.where(np.asarray(levels) <= 0, low, np.where(np.asarray(levels) >= 1, high, inner))


class Sketches(NamedTuple):
    """Sketches by component and group, the shape of the observable, and how many values were not numbers."""

    each: list
    shape: tuple[int, ...]
    wrong: int


class Quantiles(Measuring):
    """Quantiles of every component of an observable."""

    levels: tuple[float, ...] = eqx.field(static=True)

    def collect(self, tally, looks):
        rows = np.asarray(looks.rows, float)
        count, n = rows.shape[:2]
        flat = rows.reshape(count, n, -1)
        if tally is None:
            tally = Sketches([[Sketch() for _ in range(_GROUPS)] for _ in range(flat.shape[2])], rows.shape[2:], 0)
        counted = np.ones((count, n), bool) if looks.counted is None else looks.counted
        group = (looks.trajectories % np.uint64(_GROUPS)).astype(int)
        wrong = tally.wrong
        for g in np.unique(group):
            mine = group == g
            for c, sketches in enumerate(tally.each):
                values = flat[:, mine, c][counted[:, mine]]
                usable = values[~np.isnan(values)]
                wrong += values.size - usable.size
                sketches[g].add(usable)
        return Sketches(tally.each, tally.shape, wrong)

    def freeze(self, tally):
        return tally._replace(each=[[sketch.plain() for sketch in sketches] for sketches in tally.each])

    def thaw(self, frozen):
        return frozen._replace(each=[[Sketch(plain) for plain in sketches] for sketches in frozen.each])

    def close(self, tally, memory, ended):
        return self.freeze(tally)

    def fits(self, expected, stored):
        """As many sketches; how many values each of them holds depends on the values."""
        groups = lambda summary: [len(sketches) if isinstance(sketches, list) else -1 for sketches in summary.each]
        if type(stored) is not Sketches or not isinstance(stored.each, list) or type(stored.wrong) is not int:
            return False
        return (stored.shape, groups(stored)) == (expected.shape, groups(expected)) and all(
            _is_sketch(one) for sketches in stored.each for one in sketches
        )

    def merge(self, a, b):
        each = [[_both(x, y) for x, y in zip(mine, other, strict=True)] for mine, other in zip(a.each, b.each, strict=True)]
        return Sketches(each, a.shape, a.wrong + b.wrong)

    def report(self, name, summary, clock):
        levels, shape = self.levels, summary.shape
        each = [[Sketch(plain) for plain in sketches] for sketches in summary.each]
        arranged = lambda rows: np.moveaxis(np.asarray(rows).reshape(*shape, -1), -1, 0)
        values = arranged([quantile(sketches, levels) for sketches in each])
        errors = arranged([_error(sketches, levels) for sketches in each])
        axes = component_axes(name, shape)
        count = [sum(sketch.weighted()[1].sum() for sketch in sketches) for sketches in each]
        ends = [(min(s.low for s in sketches), max(s.high for s in sketches)) for sketches in each]
        variables = {"quantile": (("level", *axes), values), "stderr": (("level", *axes), errors)}
        variables |= {kind: (axes, np.asarray([end[i] for end in ends]).reshape(shape)) for i, kind in enumerate(("min", "max"))}
        variables |= {"count": (axes, np.asarray(count, np.int64).reshape(shape)), "nan": ((), np.asarray(summary.wrong))}
        text = f"quantiles {short(values)}" + (f"; {summary.wrong} values were not numbers and are not counted" if summary.wrong else "")
        return ObserverReport(name, variables, {"level": np.asarray(levels)}, text)

    def summary_bytes(self, row, looks, trajectories):
        values = min(looks * trajectories, _GROUPS * 24 * K)
        return 8 * values * max(row.size, 1)


def _both(a: Plain, b: Plain) -> Plain:
    sketch = Sketch(a)
    sketch.take(Sketch(b))
    return sketch.plain()


def _error(sketches: list[Sketch], levels: tuple[float, ...]) -> np.ndarray:
    """From the spread of the quantiles of groups."""
    each = np.asarray([quantile([sketch], levels) for sketch in sketches if sketch.low <= sketch.high])
    return each.std(0, ddof=1) / len(each) ** 0.5 if len(each) > 1 else np.full(len(levels), np.nan)


@OBSERVERS.register
@checked()
def quantiles(of, *, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), every: int | None = None) -> Quantiles:
    """Quantiles of a function of a State over trajectories and time; `levels` are the fractions that lie below.

    They are accurate in rank, to 0.3 % of all values at worst and exactly while there are few, however heavy the tail; `stderr` is how much another
    sample of trajectories would change them.
    """
    return Quantiles(of, tuple(float(p) for p in levels), every=every)
