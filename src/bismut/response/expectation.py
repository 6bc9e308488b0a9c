"""A number to a tolerance.

    ⟨f(z(T))⟩ = Σ_{l ≤ L} ⟨Y_l⟩ + Δ_L/(2^r − 1) + bias,       Δ_l = ⟨Y_l⟩ = ⟨f⟩ at h_l − ⟨f⟩ at h_{l−1} ≈ −(2^r − 1) c h_l^r

The bias of a step is measured, by pairs of runs at h and h/2 on one noise (`levels`), and removed by extrapolation with the weak order r that the
scheme claims. Two extrapolations from successive pairs differ by what a single order does not explain,

    E_L − E_{L−1} = (2^r Δ_L − Δ_{L−1})/(2^r − 1),         bias = |E_L − E_{L−1}|/(2^r − 1),

which is the bias that is stated. log₂ |Δ_{L−1}/Δ_L| is the measured order. Where it contradicts r, nothing is extrapolated and the bias is all of
max(|Δ_L|, |Δ_{L−1}|/2^s)/(2^s − 1), s the smaller order. Trajectories go to levels as √(Var Y_l/cost) (Giles), steps are halved until the bias takes
at most half of the tolerance, and trajectories are added until bias + 2 standard errors fit into it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bismut.arguments import Rule, checked, is_number
from bismut.ensembles.checks import RUN
from bismut.ensembles.observable import measure
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError
from bismut.formatting import table, with_error
from bismut.mechanics import Scheme
from bismut.process import check_process
from bismut.response.levels import Level, Problem, variance_of

SURE = 2.0  # standard errors that the tolerance must hold
_PILOT = 512  # trajectories of a level before its variance is believed
_COARSEST, _FINEST = 4, 2**16  # steps
_OFF = 0.5  # by which a measured order may differ from the claimed one, beside its error
_RESOLVED = 0.25  # error of an order that is called measured
_POSITIVE = Rule("a positive number", lambda value: is_number(value) and value > 0)


@dataclass(frozen=True)
class Expectation:
    """A mean with its two errors: |value − ⟨f⟩| ≤ bias + 2 stderr with a probability of about 95 %.

    value      the mean, extrapolated to h → 0 where the measured order agrees with the claimed one
    bias       what a finite step is estimated to leave in it
    stderr     its standard error
    order      the measured weak order, and its error; NaN where differences are lost in noise
    claimed    the order by which it was extrapolated
    step       the smallest step
    met        whether bias + 2 stderr ≤ tolerance
    limited_by what is in the way of a smaller error: "step", "trajectories"
    levels     rows (step, trajectories, mean of Y_l, its error)
    doubt      what cannot be said, and why
    """

    value: Any
    bias: Any
    stderr: Any
    tolerance: float
    order: float
    order_error: float
    claimed: float
    step: float
    met: bool
    limited_by: str
    extrapolated: bool
    levels: tuple[tuple[float, int, Any, Any], ...]
    doubt: str = ""

    @property
    def error(self) -> float:
        """The largest bias + 2 stderr over components."""
        return float(np.max(self.bias + SURE * self.stderr))

    def __repr__(self) -> str:
        shown = lambda value, error: ", ".join(with_error(v, e) for v, e in zip(np.ravel(value), np.ravel(error), strict=True))
        reached = "within" if self.met else "NOT within"
        order = "not resolved" if math.isnan(self.order) else with_error(self.order, self.order_error)
        how = "extrapolated by" if self.extrapolated else "not extrapolated; claimed"
        lines = [
            f"{shown(self.value, self.stderr)} (statistical), bias ≤ {float(np.max(self.bias)):.2g}; {reached} {self.tolerance:g}, "
            f"limited by {self.limited_by}",
            f"  weak order {order}, {how} {self.claimed:g}; smallest step {self.step:.4g}",
        ]
        for i, (h, n, mean, error) in enumerate(self.levels):
            lines.append(f"  h = {h:<10.4g} {n:>9} trajectories   {'Δ' if i else '⟨f⟩'} = {shown(mean, error)}")
        return "\n".join(lines + ([f"  {self.doubt}"] if self.doubt else []))

    def _repr_html_(self) -> str:
        return table(
            repr(self).splitlines()[0], [(f"{h:.4g}", n, mean, error) for h, n, mean, error in self.levels], ("h", "trajectories", "Δ", "error")
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        names = ("tolerance", "order", "order_error", "claimed", "step", "met", "limited_by", "extrapolated", "doubt")
        plain = {name: getattr(self, name) for name in names}
        plain = {name: None if isinstance(part, float) and math.isnan(part) else part for name, part in plain.items()}
        numbers = {name: np.asarray(getattr(self, name)).tolist() for name in ("value", "bias", "stderr")}
        rows = [{"step": h, "trajectories": n, "mean": np.asarray(m).tolist(), "stderr": np.asarray(e).tolist()} for h, n, m, e in self.levels]
        return numbers | plain | {"levels": rows}


@checked(**(RUN | {"time": _POSITIVE, "tolerance": _POSITIVE}))
def expectation(
    scheme: Scheme,
    start: Any,
    *,
    of: Any,
    time: float,
    tolerance: float = 1e-3,
    step: float | None = None,
    seed: int = 0,
    t0: float = 0.0,
    most: float = 1e9,
) -> Expectation:
    """The mean of a function of a State after a time, with bias and statistical error, each small enough for a tolerance or named as the limit.

    of         a function of a State, or of a State and t; a number or an array, of which every component is held to the tolerance
    time       after which it is evaluated
    tolerance  of |value − mean|: bias + 2 standard errors
    step       the largest step; by default the largest power of ½ of `time` at which runs at h and h/2 follow each other
    seed       of the noise; the answer is a function of it
    most       steps of all trajectories together, at most; reached, the result says that it fell short, and by what
    """
    check_process()
    starts = start_at(scheme, start, t0)
    if starts.batch:
        raise DomainError(f"expectation draws as many trajectories as it needs: give one start, or Maxwell momenta, got {starts.batch} states.")
    shape = measure(of, scheme, "of", starts.example)
    problem = Problem(scheme, start, of, float(time), int(seed), float(t0))
    run = _Run(problem, float(tolerance), float(most), float(scheme.claims.weak_order or 1), None if step is None else float(step))
    return run.result(shape)


class _Run:
    """Levels, and what is known from them."""

    def __init__(self, problem: Problem, tolerance: float, most: float, claimed: float, step: float | None):
        self.problem, self.tolerance, self.most, self.claimed = problem, tolerance, most, claimed
        self.levels = self._first_levels(step)
        self.refine()

    def _first_levels(self, step: float | None) -> list[Level]:
        """The coarsest three levels of which pairs follow each other."""
        problem = self.problem
        steps = _COARSEST if step is None else max(1, math.ceil(problem.time / step - 1e-9))
        while True:
            pair = Level(2 * steps, False, 2 * steps)
            pair.add(problem, _PILOT)
            if not pair.failed and _follow(pair, coupled=step is None and problem.scheme.pathwise):
                break
            steps *= 2
            if 4 * steps > _FINEST:
                why = "trajectories fail" if pair.failed else "runs at h and h/2 on one noise do not follow each other"
                raise BismutError(f"At {steps // 2} steps {why} still. Give step= a step at which the scheme is known to work, or a shorter time.")
        levels = [Level(steps, True, steps + 2**20), pair, Level(4 * steps, False, 4 * steps)]
        for level in (levels[0], levels[2]):
            level.add(problem, _PILOT)
        return levels

    # What is known.

    @property
    def spent(self) -> float:
        return sum(level.drawn * level.cost for level in self.levels)

    def differences(self) -> tuple[Level, Level]:
        return self.levels[-2], self.levels[-1]

    def order(self) -> tuple[float, float]:
        """log₂ of the ratio of the last differences, of the component in which it is seen best, and its error."""
        a, b = self.differences()
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.sqrt(a.squared_error / a.mean**2 + b.squared_error / b.mean**2) / math.log(2)
            orders = np.log2(np.abs(a.mean / b.mean))
        best = int(np.argmin(np.where(np.isfinite(relative), relative, np.inf)))
        seen = bool(np.isfinite(relative[best]) and relative[best] < _RESOLVED and a.mean[best] * b.mean[best] > 0)
        return (float(orders[best]), float(relative[best])) if seen else (math.nan, math.nan)

    @property
    def agrees(self) -> bool:
        """Whether the measured order does not contradict the claimed one."""
        order, error = self.order()
        return math.isnan(order) or abs(order - self.claimed) < _OFF + 2 * error

    def bias(self) -> np.ndarray:
        a, b = self.differences()
        if self.agrees:
            r = self.claimed
            return np.abs(2**r * b.mean - a.mean) / (2**r - 1) ** 2
        s = max(0.5, min(self.order()[0], self.claimed))
        return np.maximum(np.abs(b.mean), np.abs(a.mean) / 2**s) / (2**s - 1)

    def weights(self) -> list[float]:
        """What the mean of each level counts in the value."""
        last = 1 + 1 / (2**self.claimed - 1) if self.agrees else 1.0
        return [1.0] * (len(self.levels) - 1) + [last]

    def stderr(self) -> np.ndarray:
        return np.sqrt(sum(w**2 * level.squared_error for w, level in zip(self.weights(), self.levels, strict=True)))

    # What is done.

    def refine(self) -> None:
        """Trajectories until the statistical error fits into what the bias leaves; half the step where the bias takes more than half."""
        while True:
            self._sample(0.5 * self.tolerance)
            bias = float(np.max(self.bias()))
            if bias <= 0.5 * self.tolerance or self.spent >= self.most or 2 * self.levels[-1].steps > _FINEST:
                break
            last = self.levels[-1].steps
            level = Level(2 * last, False, 2 * last)
            level.add(self.problem, _PILOT)
            self.levels.append(level)
        self._sample(self.tolerance - min(float(np.max(self.bias())), 0.5 * self.tolerance))

    def _sample(self, room: float) -> None:
        """Trajectories to each level until 2 standard errors are within `room`; in rounds, as variances become known."""
        for _ in range(12):
            if self.spent >= self.most or np.max(SURE * self.stderr()) <= room:
                return
            weights = self.weights()
            spread = [w * np.sqrt(np.max(level.variance)) for w, level in zip(weights, self.levels, strict=True)]
            total = sum(s * math.sqrt(level.cost) for s, level in zip(spread, self.levels, strict=True))
            wanted = [1.05 * total * s / math.sqrt(level.cost) * (SURE / room) ** 2 for s, level in zip(spread, self.levels, strict=True)]
            missing = [max(0, math.ceil(n) - level.count) for n, level in zip(wanted, self.levels, strict=True)]
            work = sum(n * level.cost for n, level in zip(missing, self.levels, strict=True))
            share = min(1.0, max(0.0, self.most - self.spent) / max(work, 1.0))
            for n, level in zip(missing, self.levels, strict=True):
                # Never more than ten times as many at once: a variance from a few may be an accident.
                level.add(self.problem, min(math.ceil(share * n), 10 * level.drawn))

    def result(self, shape: tuple[int, ...]) -> Expectation:
        value = sum(w * level.mean for w, level in zip(self.weights(), self.levels, strict=True))
        bias, stderr, (order, error) = self.bias(), self.stderr(), self.order()
        met = bool(np.max(bias + SURE * stderr) <= self.tolerance * (1 + 1e-9))
        failed, drawn = sum(level.failed for level in self.levels), sum(level.drawn for level in self.levels)
        doubts = [f"{failed} of {drawn} trajectories failed and are left out: the mean is of the others"] if failed else []
        if math.isnan(order):
            left = float(np.max(np.abs(self.levels[-1].mean) + SURE * np.sqrt(self.levels[-1].squared_error))) / (2**self.claimed - 1)
            doubts.append(
                f"differences between steps are lost in noise, so the order is not measured: the bias rests on the claimed order {self.claimed:g}; "
                f"without extrapolation it would be {left:.2g} at most"
            )
        if not self.agrees:
            doubts.append(f"the measured order is not the claimed one, {self.claimed:g}: nothing was extrapolated")
        shaped = lambda x: np.reshape(x, shape) if shape else float(np.ravel(x)[0])
        rows = [(self.problem.time / level.steps, level.count, shaped(level.mean), shaped(np.sqrt(level.squared_error))) for level in self.levels]
        return Expectation(
            value=shaped(value),
            bias=shaped(bias),
            stderr=shaped(stderr),
            tolerance=self.tolerance,
            order=order,
            order_error=error,
            claimed=self.claimed,
            step=self.problem.time / self.levels[-1].steps,
            met=met and not failed,
            limited_by="step" if np.max(bias) > SURE * np.max(stderr) else "trajectories",
            extrapolated=self.agrees,
            levels=tuple(rows),
            doubt="; ".join(doubts),
        )


def _follow(pair: Level, coupled: bool) -> bool:
    """Whether the coarse run is no wilder than the fine one and, if they are to be coupled, explains half of its variance."""
    fine, coarse, both = variance_of(pair.fine), variance_of(pair.coarse), pair.variance
    tiny = 1e-20 * (1 + np.abs(pair.fine.mean if pair.fine is not None else 0.0)) ** 2
    return bool(np.all(coarse <= 2 * fine + tiny) and (not coupled or np.all(both <= 0.5 * fine + tiny)))
