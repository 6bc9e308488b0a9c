"""Averages over time, with errors that know of correlation.

    x̄ = (1/N) Σ_k x(t_k),       σ²(x̄) = Var(means of blocks of 2^l samples)/(N/2^l − 1)   for l large enough            (Flyvbjerg & Petersen)

Samples of one trajectory are correlated, so σ²/N would be far too small. Means of ever longer blocks are kept, level by level: as the blocks grow
longer than the correlation time the estimate stops growing, and the first level past that point is taken, B³ > 2N (σ_l/σ_0)⁴ (Lee et al.). Blocking
knows nothing of what a trajectory has not seen: in a well that it has not left there is a plateau. Means of trajectories are independent, so their
spread does know it as soon as one of them has left: the larger of both is the error. The effective sample size is the number of independent samples
that would give the same error.

    R̂² = 1 − 1/L + Var(means of parts)/mean(variance within parts)          split R̂: parts are halves or thirds of trajectories, of L samples

is 1 when all parts of all trajectories are alike, and about 1 + 1/(effective samples of a part); an error is trusted only below 1.1 (Gelman et al.).
Many trajectories share what remains of their start, σ (τ/T) e^{−b/τ} at most, T and b the times of the average and of the burn-in, τ that of
correlation. Where this exceeds half of the error, it is not trusted either.

Trajectories shorter than τ have R̂ > 1.1 in equilibrium too, and none with fewer than 4 looks. The spread between many of them is an honest error all
the same once the start is forgotten. How long that takes is then read off the correlation ρ between parts of a trajectory that lie ℓ apart,

    τ = 5 ℓ/ln(1/ρ⁺),     artanh ρ⁺ = artanh ρ + 2/√n                        (two standard errors above, Fisher)

five times what one exponential would have, because what is slow may be a small part of all that varies. One look at each tells nothing of τ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.moments import KahanSum, Moments
from bismut.ensembles.observers.records import standard_error
from bismut.ensembles.observers.report import ObserverReport, component_axes, short
from bismut.ensembles.observers.watcher import Clock, Measuring
from bismut.formatting import with_error
from bismut.programs.codegen.elementary.numbers import elementary
from bismut.registry import OBSERVERS

LEVELS = 31  # a run has at most 2³⁰ steps
MANY = 30  # trajectories from which their spread is an error without a plateau of blocking, and whatever R̂ is if the start is forgotten
_FEW = 30  # effective samples below which an error from one or few trajectories is a guess
_ALIKE = 1.1  # R̂ up to which parts of trajectories are alike
_SLOWER = 5.0  # by how much a memory may be longer than parts of short trajectories show


class BlockingMemory(NamedTuple):
    """Looks so far; the first sample, from which all are counted; at each level the sum of 2^l samples that waits for its neighbour; and Σ (a − b)²
    over neighbours that have met.

    A sum that finds a neighbour waiting goes one level up with it, as in counting with binary digits, so a look does two additions. Nothing is lost
    to cancellation, in single precision neither: the variance at a level is that one level up plus what neighbours differ by.
    """

    count: Any
    first: Any
    waiting: Any
    differences: KahanSum

    @classmethod
    def begun(cls, first: jax.Array) -> BlockingMemory:
        levels = jnp.zeros((LEVELS, *first.shape), first.dtype)
        return cls(jnp.zeros((), jnp.int32), first, levels, KahanSum.zero(levels))

    def add(self, x: jax.Array) -> BlockingMemory:
        at, put = jax.lax.dynamic_index_in_dim, jax.lax.dynamic_update_index_in_dim

        def met(now):
            level, x, differences = now
            neighbour = at(self.waiting, level, keepdims=False)
            here = jax.tree.map(lambda leaf: at(leaf, level, keepdims=False), differences)
            new = here.add((neighbour - x) ** 2)
            return level + 1, neighbour + x, jax.tree.map(lambda leaf, value: put(leaf, value, level, 0), differences, new)

        waits = lambda now: (self.count >> now[0]) & 1 == 1
        level, x, differences = jax.lax.while_loop(waits, met, (jnp.zeros((), jnp.int32), x - self.first, self.differences))
        return BlockingMemory(self.count + 1, self.first, put(self.waiting, x, level, 0), differences)

    def variances(self, samples: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The mean of all samples of each trajectory, and the variance of means of 2^l of them, level by level. On the host."""
        waiting, differences = np.asarray(self.waiting, float), self.differences.value()
        total, scatter, blocks = np.zeros_like(waiting[:, 0]), np.zeros_like(waiting[:, 0]), 0
        variances = []
        for level in reversed(range(samples.bit_length())):
            scatter, blocks = 0.5 * (scatter + differences[:, level]), 2 * blocks
            if samples >> level & 1:
                one = waiting[:, level]
                scatter = scatter + (one - total / max(blocks, 1)) ** 2 * (blocks / (blocks + 1))
                total, blocks = total + one, blocks + 1
            variances.append(scatter / blocks / 4.0**level)
        return self.first + total / samples, variances[::-1]


class Averages(NamedTuple):
    """Samples of each trajectory; over trajectories, moments of the mean, and of the variance within a trajectory of block means at each level."""

    count: Any
    mean: Moments
    within: Moments


class TimeAverage(Measuring):
    """The mean over time and trajectories, with its error."""

    def begin(self, scheme, state, t):
        return BlockingMemory.begun(self.value(scheme, state, t))

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
        stderr = np.fmax(between, blocked)
        variance = within[0] + np.where(n > 1, spread, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(stderr > 0, np.minimum(variance / stderr**2, samples * n), samples * n)
        alike = split_r_hat(within, spread, n, samples)
        tau = samples * n / np.maximum(2 * effective, 1e-300)
        short_ones = (n >= MANY) & ~(alike <= _ALIKE)
        left = start_left(np.where(short_ones, memory_time(within, spread, n, samples), tau), samples, clock.before / clock.every)
        forgotten = np.asarray(np.sqrt(variance) * left <= 0.5 * stderr)
        trusted = np.asarray(((n >= MANY) | reached) & (effective >= _FEW) & ((alike <= _ALIKE) | short_ones) & forgotten)
        axes = component_axes(name, n.shape)
        mean = np.where(n > 0, summary.mean.mean, np.nan)
        values = {"mean": mean, "stderr": stderr, "std": np.sqrt(variance), "effective_samples": effective, "r_hat": alike, "trusted": trusted}
        values |= {
            "inefficiency": samples * n / np.maximum(effective, 1e-300),
            "stderr_between": between,
            "stderr_blocking": blocked,
            "count": samples * n,
        }
        variables = {kind: (axes, np.asarray(value)) for kind, value in values.items()}
        variables["block_stderr"] = (("block", *axes), by_level)
        lengths = clock.h * clock.every * 2.0 ** np.arange(levels)
        text = f"{with_error(mean, stderr)}, {short(np.rint(np.nan_to_num(effective)).astype(int))} effective samples"
        return ObserverReport(name, variables, {"block": lengths}, text + _doubts(trusted, alike, forgotten, n, samples, clock.one_start))

    def error(self, summary):
        return standard_error(summary.mean)


def split_r_hat(within: np.ndarray, spread: Any, n: np.ndarray, samples: int) -> np.ndarray:
    """R̂ of parts of 2^l samples, two or three of each trajectory; NaN where there are too few samples to divide.

    within  variance, in the mean over trajectories, of means of 2^l samples about that of their trajectory, level by level
    spread  variance between the means of trajectories
    """
    length = 2 ** (len(within) - 1)
    parts = samples // length
    if length < 2:
        return np.full(np.shape(n), np.nan)
    total = parts * n  # the parts of all trajectories
    between = parts * (n * within[-1] + np.where(n > 1, (n - 1) * spread, 0.0)) / np.maximum(total - 1, 1)
    inside = (within[0] - within[-1]) * length / (length - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0, between / np.maximum(inside, 0.0), 0.0)  # what is constant agrees with itself
    return np.where(total > 1, np.sqrt(1 - 1 / length + ratio), np.nan)


def memory_time(within: np.ndarray, spread: Any, n: np.ndarray, samples: int) -> np.ndarray:
    """An upper estimate of τ, in samples, from the correlation between the parts of 2^l samples of n trajectories; infinite for one sample of each.

    Of m parts with variance v and covariance c:  spread = (v + (m − 1) c)/m,   within = (1 − 1/m)(v − c)
    """
    length = 2 ** (len(within) - 1)
    parts = samples // length
    if parts < 2:
        return np.full(np.shape(n), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(spread > 0, (spread - within[-1] / (parts - 1)) / (spread + within[-1]), 0.0)
        above = elementary("tanh", elementary("atanh", np.maximum(correlation, 0.0)) + 2 / np.sqrt(n))
        return np.asarray(_SLOWER * length * (parts + 1) / 3 / elementary("log", 1 / above))


def start_left(tau: Any, samples: int, before: float) -> Any:
    """(τ/T) e^{−b/τ}: how much of a start is left in an average of `samples`, the first of them `before` samples after it."""
    tau = np.maximum(tau, 1e-9)
    return tau / samples * elementary("exp", -before / tau)


def _doubts(trusted: np.ndarray, alike: np.ndarray, forgotten: np.ndarray, n: np.ndarray, samples: int, one_start: bool) -> str:
    """What keeps an error from being trusted, or what one trajectory cannot know, and a few from one point no better: before a barrier that none of
    them has crossed they agree."""
    if trusted.all():
        most = np.max(n, initial=0)
        if most == 1:
            return "; one trajectory knows nothing of places where it has not been"
        return "; all began at one point, and know nothing of places where none has been" if one_start and 1 < most < MANY else ""
    doubt = "; the error is not to be trusted: "
    many = np.min(n, initial=MANY) >= MANY
    if many and samples == 1:
        return f"{doubt}one look at each trajectory does not tell whether the start is forgotten. More looks would tell"
    if np.any(alike > _ALIKE):
        start = ", and the start may be seen in them. A longer burn_in= or longer runs would tell" if many else ". Longer runs would tell"
        return f"{doubt}parts of trajectories disagree, R̂ = {np.nanmax(alike):.3g}{start}"
    if not forgotten.all():
        return f"{doubt}the start may be seen in so many trajectories. A longer burn_in= would tell"
    return f"{doubt}fewer than {_FEW} correlation times, or too few to see how long they are"


def plateau(by_level: np.ndarray, blocks: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The error at the first level whose blocks are longer than correlations reach, and whether there is one."""
    first = np.maximum(by_level[0], 1e-300)
    chosen, reached = by_level[-1].copy(), np.zeros(by_level[0].shape, bool)
    for level in range(len(by_level)):
        long_enough = 2.0 ** (3 * level) > 2 * samples * (by_level[level] / first) ** 4
        take = long_enough & ~reached & (blocks[level] > 1)
        chosen = np.where(take, by_level[level], chosen)
        reached |= take
    return np.where(reached, chosen, by_level.max(0)), reached


@OBSERVERS.register
@checked()
def time_average(of, *, every: int | None = None) -> TimeAverage:
    """The average over time and trajectories of a function of a State, sampled every `every` steps after the burn-in."""
    return TimeAverage(of, every=every)
