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

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers import sums
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.records import standard_error
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.watcher import Clock
from bismut.showing import measured

LEVELS = 31  # a run has at most 2³⁰ steps
MANY = 30  # trajectories from which their spread gives the error
_FEW = 30  # effective samples below which an error from one or few trajectories is a guess


class Blocks(NamedTuple):
    """Looks so far; the first sample, from which all are counted; at each level the sum of 2^l samples that waits for its neighbour; and Σ (a − b)²
    over neighbours that have met.

    A sum that finds a neighbour waiting goes one level up with it, as in counting with binary digits, so a look does two additions. Nothing is lost
    to cancellation, in single precision neither: the variance at a level is that one level up plus what neighbours differ by.
    """

    count: Any
    first: Any
    waiting: Any
    apart: sums.Sum

    @classmethod
    def begun(cls, first: jax.Array) -> "Blocks":
        levels = jnp.zeros((LEVELS, *first.shape), first.dtype)
        return cls(jnp.zeros((), jnp.int32), first, levels, sums.zero(levels))

    def add(self, x: jax.Array) -> "Blocks":
        at, put = jax.lax.dynamic_index_in_dim, jax.lax.dynamic_update_index_in_dim

        def met(now):
            level, x, apart = now
            neighbour = at(self.waiting, level, keepdims=False)
            here = jax.tree.map(lambda leaf: at(leaf, level, keepdims=False), apart)
            new = sums.add(here, (neighbour - x) ** 2)
            return level + 1, neighbour + x, jax.tree.map(lambda leaf, value: put(leaf, value, level, 0), apart, new)

        waits = lambda now: (self.count >> now[0]) & 1 == 1
        level, x, apart = jax.lax.while_loop(waits, met, (jnp.zeros((), jnp.int32), x - self.first, self.apart))
        return Blocks(self.count + 1, self.first, put(self.waiting, x, level, 0), apart)

    def variances(self, samples: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The mean of all samples of each trajectory, and the variance of means of 2^l of them, level by level. On the host."""
        waiting, apart = np.asarray(self.waiting, float), sums.value(self.apart)
        total, scatter, blocks = np.zeros_like(waiting[:, 0]), np.zeros_like(waiting[:, 0]), 0
        found = []
        for level in reversed(range(samples.bit_length())):
            scatter, blocks = 0.5 * (scatter + apart[:, level]), 2 * blocks
            if samples >> level & 1:
                one = waiting[:, level]
                scatter = scatter + (one - total / max(blocks, 1)) ** 2 * (blocks / (blocks + 1))
                total, blocks = total + one, blocks + 1
            found.append(scatter / blocks / 4.0**level)
        return self.first + total / samples, found[::-1]


class Averages(NamedTuple):
    """Samples of each trajectory; over trajectories, moments of the mean, and of the variance within a trajectory of block means at each level."""

    count: Any
    mean: Moments
    within: Moments


class TimeAverage(Measuring):
    """The mean over time and trajectories, with its error."""

    def begin(self, scheme, state, t):
        return Blocks.begun(self.value(scheme, state, t))

    def look(self, memory, scheme, state, t):
        return memory.add(self.value(scheme, state, t)), ()

    def close(self, tally, memory, ended):
        with np.errstate(over="ignore", invalid="ignore"):  # of trajectories that failed
            mean, within = memory.variances(ended.looks)
        return Averages(np.asarray(ended.looks), moments.gather(mean, ended.finished), moments.gather(np.stack(within, 1), ended.finished))

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


@checked()
def time_average(of, *, every: int | None = None) -> TimeAverage:
    """The average over time and trajectories of a function of a State, sampled every `every` steps after the burn-in."""
    return TimeAverage(of, every=every)
