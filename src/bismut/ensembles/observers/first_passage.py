"""First passage: how long until a function of the state is positive for the first time.

    T = min {t_k : g(z(t_k)) > 0},        S(t) = P(T > t) = Π_{t_k ≤ t} (1 − d_k/n_k)          (Kaplan & Meier)

d_k trajectories pass at look k, of n_k that have not passed before and are still there. Those that have not passed at the end, or that fail before,
are censored: they count for as long as they were seen and no longer. The error of S is Greenwood's, S² Σ d_k/(n_k (n_k − d_k)).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles.observable import measure
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Clock, Measuring
from bismut.errors import ShapeError
from bismut.registry import OBSERVERS


class Waiting(NamedTuple):
    """Looks so far, and the look of the first passage, −1 before it."""

    looks: Any
    passed: Any


class PassageCounts(NamedTuple):
    """How many passed at each look, and how many were last seen at each look without having passed."""

    passed: np.ndarray
    censored: np.ndarray


class FirstPassage(Measuring):
    """The survival curve of a first passage."""

    def bound(self, scheme, name, example):
        shape = measure(self.function, scheme, name, example)
        if shape != ():
            raise ShapeError(f"observe[{name!r}]: a first passage is that of one number g(state) > 0, got an array of shape {shape}.")
        return self

    def begin(self, scheme, state, t):
        return Waiting(jnp.zeros((), jnp.int32), jnp.full((), -1, jnp.int32))

    def look(self, memory, scheme, state, t):
        now = (memory.passed < 0) & (self.value(scheme, state, t) > 0)
        return Waiting(memory.looks + 1, jnp.where(now, memory.looks, memory.passed)), ()

    def close(self, tally, memory, ended):
        seen, passed = ended.survived // ended.every, np.asarray(memory.passed)
        through = (passed >= 0) & (passed <= seen)
        left = ~through & (seen >= 0)
        return PassageCounts(np.bincount(passed[through], minlength=ended.looks), np.bincount(seen[left], minlength=ended.looks))

    def merge(self, a, b):
        return PassageCounts(*(x + y for x, y in zip(a, b, strict=True)))

    def report(self, name, summary, clock: Clock):
        passed, censored = summary
        left = np.concatenate([[0], np.cumsum(passed + censored)[:-1]])
        at_risk = int(passed.sum() + censored.sum()) - left
        with np.errstate(divide="ignore", invalid="ignore"):
            survival = np.cumprod(np.where(at_risk > 0, 1 - passed / np.maximum(at_risk, 1), 1.0))
            greenwood = np.cumsum(np.where(at_risk > passed, passed / (at_risk * np.maximum(at_risk - passed, 1.0)), 0.0))
        times = clock.begin + clock.h * clock.every * np.arange(len(passed))
        # ∫S dt up to the last look: the mean of min(T, end), which needs no passage of everybody.
        mean = float(np.sum(survival[:-1]) * clock.h * clock.every)
        number, missing = int(passed.sum()), int(censored.sum())
        variables = {
            "survival": (("time",), survival),
            "stderr": (("time",), survival * np.sqrt(greenwood)),
            "at_risk": (("time",), at_risk),
            "passed": (("time",), passed),
            "restricted_mean": ((), np.asarray(mean)),
            "censored": ((), np.asarray(missing)),
            "count": ((), np.asarray(number + missing)),
        }
        half = times[np.argmax(survival <= 0.5)] if (survival <= 0.5).any() else np.nan
        text = f"{number} of {number + missing} passed" + (f", {missing} censored" if missing else "")
        text += f"; half of them by t = {half:g}" if np.isfinite(half) else f"; {survival[-1]:.4g} are left at the end"
        return ObserverReport(name, variables, {"time": times}, text)

    def summary_bytes(self, row, looks, trajectories):
        return 2 * 8 * looks


@OBSERVERS.register
@checked()
def first_passage(of, *, every: int = 1) -> FirstPassage:
    """When of(state) is positive for the first time: the survival curve, with its error, and those that were never seen to pass.

    Observed at every step by default; a passage between two observations that returns before the second is not seen.
    """
    return FirstPassage(of, every=every)
