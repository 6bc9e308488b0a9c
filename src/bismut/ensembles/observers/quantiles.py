"""Quantiles of an observable over trajectories and time, without knowing its range.

A sketch keeps a sample by rank (`sketch.py`), for each of some groups of trajectories; the quantile is that of all together, and its error comes from
the spread between groups, since trajectories are independent and looks at one are not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np

from bismut.arguments import checked
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.sketch import K, Plain, Sketch, fits, quantile

_GROUPS = 16  # of trajectories, by their numbers


class Sketches(NamedTuple):
    """Sketches by component and group, the shape of the observable, and how many values were not numbers."""

    each: list
    shape: tuple[int, ...]
    wrong: int


class Quantiles(Measuring):
    """Quantiles of every component of an observable."""

    levels: tuple[float, ...] = eqx.field(static=True)

    def look(self, memory, scheme, state, t):
        return memory, self.value(scheme, state, t)

    def collect(self, tally, seen):
        rows = np.asarray(seen.rows, float)
        looks, n = rows.shape[:2]
        flat = rows.reshape(looks, n, -1)
        if tally is None:
            tally = Sketches([[Sketch() for _ in range(_GROUPS)] for _ in range(flat.shape[2])], rows.shape[2:], 0)
        counted = np.ones((looks, n), bool) if seen.counted is None else seen.counted
        group = (seen.trajectories % np.uint64(_GROUPS)).astype(int)
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

    def fits(self, expected, found):
        """As many sketches; how many values each of them holds depends on the values."""
        groups = lambda summary: [len(sketches) if isinstance(sketches, list) else -1 for sketches in summary.each]
        if type(found) is not Sketches or not isinstance(found.each, list) or type(found.wrong) is not int:
            return False
        return (found.shape, groups(found)) == (expected.shape, groups(expected)) and all(fits(one) for sketches in found.each for one in sketches)

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
        words = f"quantiles {short(values)}" + (f"; {summary.wrong} values were not numbers and are not counted" if summary.wrong else "")
        return Report(name, variables, {"level": np.asarray(levels)}, words)

    def held(self, row, looks, trajectories):
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


@checked()
def quantiles(of, *, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), every: int | None = None) -> Quantiles:
    """Quantiles of a function of a State over trajectories and time; `levels` are the fractions that lie below.

    They are accurate in rank, to 0.3 % of all values at worst and exactly while there are few, however heavy the tail; `stderr` is how much another
    sample of trajectories would change them.
    """
    return Quantiles(of, tuple(float(p) for p in levels), every=every)
