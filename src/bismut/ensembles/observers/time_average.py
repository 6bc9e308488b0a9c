"""Averages over time, with errors that know of correlation.

    x̄ = (1/N) Σ_k x(t_k),       σ²(x̄) = Var(means of blocks of 2^l samples)/(N/2^l − 1)   for l large enough            (Flyvbjerg & Petersen)

Samples of one trajectory are correlated, so σ²/N would be far too small. Means of ever longer blocks are kept, level by level: as the blocks grow
longer than the correlation time the estimate stops growing, and the first level past that point is taken, B³ > 2N (σ_l/σ_0)⁴ (Lee et al.). With many
trajectories their means are independent, and their spread is the better estimate: it is used from 30 trajectories on. The effective sample size
is the number of independent samples that would give the same error.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.records import standard_error
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.watcher import Clock

LEVELS = 26  # blocks up to 2²⁵ samples
_MANY = 30  # trajectories from which their spread gives the error


class Blocked(NamedTuple):
    """Samples so far; the first of each trajectory; and, relative to it, per level an unfinished block and the sums over finished ones."""

    count: Any
    first: Any
    waiting: Any
    total: Any
    square: Any


class Averages(NamedTuple):
    """Over trajectories: moments of the mean, and of the variance within a trajectory of block means at each level."""

    count: Any
    mean: Moments
    within: Moments


class TimeAverage(Measuring):
    """The mean over time and trajectories, with its error."""

    def begin(self, setting, sight):
        x = self.values(sight)
        zeros = jnp.zeros((LEVELS, *x.shape), x.dtype)
        return Blocked(jnp.zeros((), jnp.int32), x, zeros, zeros, zeros)

    def look(self, memory, setting, sight):
        return add(memory, self.values(sight))

    def end(self, memory, setting, sight, index):
        number = jnp.maximum(memory.count >> jnp.arange(LEVELS), 1).astype(memory.first.dtype)
        number = number.reshape(-1, *[1] * memory.first.ndim)
        mean = memory.first + memory.total[0] / number[0]
        within = jnp.maximum(memory.square / number - (memory.total / number) ** 2, 0.0)
        return Averages(memory.count, moments.gather(mean, sight.counted), moments.gather(jnp.moveaxis(within, 0, 1), sight.counted))

    def merge(self, a, b):
        return Averages(a.count, moments.merge(a.mean, b.mean), moments.merge(a.within, b.within))

    def report(self, name, summary, clock: Clock):
        samples, n = int(summary.count), np.asarray(summary.mean.n)
        levels = max(1, min(LEVELS, samples.bit_length() - 1))
        blocks = (samples >> np.arange(levels)).reshape(-1, *[1] * n.ndim)
        within = np.asarray(summary.within.mean)[:levels]
        by_level = np.sqrt(within / np.maximum(blocks - 1, 1) / np.maximum(n, 1))
        blocked = plateau(by_level, blocks, samples)
        spread = summary.mean.second / np.maximum(n - 1, 1)
        between = np.sqrt(spread / np.maximum(n, 1))
        stderr = np.where(n >= _MANY, between, blocked)
        variance = within[0] + np.where(n > 1, spread, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(stderr > 0, np.minimum(variance / stderr**2, samples * n), samples * n)
        axes = component_axes(name, n.shape)
        values = {"mean": np.where(n > 0, summary.mean.mean, np.nan), "stderr": stderr, "std": np.sqrt(variance), "effective_samples": effective}
        values |= {
            "inefficiency": samples * n / np.maximum(effective, 1e-300),
            "stderr_between": between,
            "stderr_blocking": blocked,
            "count": samples * n,
        }
        variables = {kind: (axes, np.asarray(value)) for kind, value in values.items()}
        variables["block_stderr"] = (("block", *axes), by_level)
        lengths = clock.h * clock.every * 2.0 ** np.arange(levels)
        return Report(name, variables, {"block": lengths}, f"{short(values['mean'])} ± {short(stderr)}, {short(effective)} effective samples")

    def error(self, summary):
        return standard_error(summary.mean)


def add(memory: Blocked, x) -> Blocked:
    """One more sample. Level l gets a value whenever 2^l samples are complete, so on average two levels are touched."""
    count = memory.count + 1
    value = x - memory.first

    def touch(level, carry):
        value, waiting, total, square = carry
        total = total.at[level].add(value)
        square = square.at[level].add(value**2)
        joined = 0.5 * (waiting[level] + value)
        waiting = waiting.at[level].set(value)
        return joined, waiting, total, square

    # The number of trailing zeros of `count`: how many levels are complete with this sample.
    complete = jax.lax.population_count((count & -count) - 1)
    touched = jnp.minimum(complete + 1, LEVELS)
    _, waiting, total, square = jax.lax.fori_loop(0, touched, touch, (value, memory.waiting, memory.total, memory.square))
    return Blocked(count, memory.first, waiting, total, square)


def plateau(by_level: np.ndarray, blocks: np.ndarray, samples: int) -> np.ndarray:
    """The error at the first level whose blocks are longer than correlations reach."""
    first = np.maximum(by_level[0], 1e-300)
    chosen, found = by_level[-1].copy(), np.zeros(by_level[0].shape, bool)
    for level in range(len(by_level)):
        long_enough = 2.0 ** (3 * level) > 2 * samples * (by_level[level] / first) ** 4
        take = long_enough & ~found & (blocks[level] > 1)
        chosen = np.where(take, by_level[level], chosen)
        found |= take
    return np.where(found, chosen, by_level.max(0))


def time_average(of, *, every: int | None = None) -> TimeAverage:
    """The average over time and trajectories of a function of a State; looks `every` so many steps, after the burn-in."""
    return TimeAverage(of, every=every)
