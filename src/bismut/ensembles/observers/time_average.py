"""Averages over time, with errors that know of correlation.

    x̄ = (1/N) Σ_k x(t_k),       σ²(x̄) = Var(means of blocks of 2^l samples)/(N/2^l − 1)   for l large enough            (Flyvbjerg & Petersen)

Samples of one trajectory are correlated, so σ²/N would be far too small. Means of ever longer blocks are kept, level by level: as the blocks grow
longer than the correlation time the estimate stops growing, and the first level past that point is taken, B³ > 2N (σ_l/σ_0)⁴ (Lee et al.). With many
trajectories their means are independent, and their spread is the better estimate: it is used from 30 trajectories on. The effective sample size
is the number of independent samples that would give the same error.
"""

from typing import Any, NamedTuple

import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.records import standard_error
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.watcher import Clock
from bismut.ensembles.scratch import scratch
from bismut.showing import measured

MANY = 30  # trajectories from which their spread gives the error
_FEW = 30  # effective samples below which an error from one or few trajectories is a guess


class Blocking:
    """Sums over blocks of 2^l samples of every trajectory, level by level, relative to its first sample; in double precision, whatever the run
    computes with. Sums and not means: a factor of two is exact, and is put in at the end."""

    def __init__(self):
        self.count, self.first = 0, np.zeros(0)
        self.waiting: list[np.ndarray | None] = []
        self.total: list[np.ndarray] = []
        self.square: list[np.ndarray] = []

    def add(self, x: np.ndarray) -> None:
        """Some more samples, along the first axis. A level gets half as many as the one below, so all levels together cost twice the first."""
        if not self.count:
            self.first = np.array(x[0], float)
        self.count += len(x)
        x = np.subtract(x, self.first, out=scratch(np.shape(x)))
        level = 0
        while len(x):
            if level == len(self.total):
                self.waiting.append(None)
                self.total.append(np.zeros(x.shape[1:]))
                self.square.append(np.zeros(x.shape[1:]))
            flat = x.reshape(len(x), -1)
            self.total[level] += x.sum(0)
            self.square[level] += np.einsum("kn,kn->n", flat, flat).reshape(x.shape[1:])
            x = self._paired(level, x)
            level += 1

    def _paired(self, level: int, x: np.ndarray) -> np.ndarray:
        """Sums of two that follow each other, the one that waited included; who is left over waits."""
        waited = self.waiting[level]
        alone = 0 if waited is None else 1
        pairs = scratch(((len(x) + alone) // 2, *x.shape[1:]), which=(level + 1) % 2)
        if waited is not None:
            np.add(waited, x[0], out=pairs[0])
        rest = x[alone:]
        self.waiting[level] = rest[-1].copy() if len(rest) % 2 else None
        even = rest[: len(rest) // 2 * 2]
        np.add(even[::2], even[1::2], out=pairs[alone:])
        return pairs


class Frozen(NamedTuple):
    """A `Blocking` at rest."""

    count: Any
    first: np.ndarray
    waiting: list
    total: list
    square: list


class Averages(NamedTuple):
    """Samples of each trajectory; over trajectories, moments of the mean, and of the variance within a trajectory of block means at each level."""

    count: Any
    mean: Moments
    within: Moments


class TimeAverage(Measuring):
    """The mean over time and trajectories, with its error."""

    def look(self, memory, scheme, state, t):
        return memory, self.value(scheme, state, t)

    def collect(self, tally, seen):
        tally = Blocking() if tally is None else tally
        tally.add(seen.rows)
        return tally

    def freeze(self, tally: Blocking):
        return Frozen(tally.count, tally.first, tally.waiting, tally.total, tally.square)

    def thaw(self, frozen: Frozen):
        tally = Blocking()
        tally.count, tally.first, tally.waiting, tally.total, tally.square = frozen
        return tally

    def close(self, tally: Blocking, memory, ended):
        within = []
        for level, (total, square) in enumerate(zip(tally.total, tally.square, strict=True)):
            blocks, length = tally.count >> level, 2.0**level
            within.append(np.maximum(square / length**2 / blocks - (total / length / blocks) ** 2, 0.0))
        mean = tally.first + tally.total[0] / tally.count
        return Averages(np.asarray(tally.count), moments.gather(mean, ended.finished), moments.gather(np.stack(within, 1), ended.finished))

    def merge(self, a, b):
        return Averages(a.count, moments.merge(a.mean, b.mean), moments.merge(a.within, b.within))

    def report(self, name, summary, clock: Clock):
        samples, n = int(summary.count), np.asarray(summary.mean.n)
        levels = max(1, samples.bit_length() - 1)
        blocks = (samples >> np.arange(levels)).reshape(-1, *[1] * n.ndim)
        within = np.asarray(summary.within.mean)[:levels]
        by_level = np.sqrt(within / np.maximum(blocks - 1, 1) / np.maximum(n, 1))
        blocked, reached = plateau(by_level, blocks, samples)
        spread = summary.mean.second / np.maximum(n - 1, 1)
        between = np.where(n > 1, np.sqrt(spread / np.maximum(n, 1)), np.nan)
        stderr = np.where(n >= MANY, between, blocked)
        variance = within[0] + np.where(n > 1, spread, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(stderr > 0, np.minimum(variance / stderr**2, samples * n), samples * n)
        trusted = (n >= MANY) | (reached & (effective >= _FEW))
        axes = component_axes(name, n.shape)
        mean = np.where(n > 0, summary.mean.mean, np.nan)
        values = {"mean": mean, "stderr": stderr, "std": np.sqrt(variance), "effective_samples": effective, "trusted": trusted}
        values |= {
            "inefficiency": samples * n / np.maximum(effective, 1e-300),
            "stderr_between": between,
            "stderr_blocking": blocked,
            "count": samples * n,
        }
        variables = {kind: (axes, np.asarray(value)) for kind, value in values.items()}
        variables["block_stderr"] = (("block", *axes), by_level)
        lengths = clock.h * clock.every * 2.0 ** np.arange(levels)
        words = f"{measured(mean, stderr)}, {short(effective)} effective samples"
        words += "" if trusted.all() else f"; the error is not to be trusted: fewer than {_FEW} correlation times, and fewer than {MANY} trajectories"
        return Report(name, variables, {"block": lengths}, words)

    def error(self, summary):
        return standard_error(summary.mean)


def plateau(by_level: np.ndarray, blocks: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The error at the first level whose blocks are longer than correlations reach, and whether there is one."""
    first = np.maximum(by_level[0], 1e-300)
    chosen, found = by_level[-1].copy(), np.zeros(by_level[0].shape, bool)
    for level in range(len(by_level)):
        long_enough = 2.0 ** (3 * level) > 2 * samples * (by_level[level] / first) ** 4
        take = long_enough & ~found & (blocks[level] > 1)
        chosen = np.where(take, by_level[level], chosen)
        found |= take
    return np.where(found, chosen, by_level.max(0)), found


def time_average(of, *, every: int | None = None) -> TimeAverage:
    """The average over time and trajectories of a function of a State; looks `every` so many steps, after the burn-in."""
    return TimeAverage(of, every=every)
