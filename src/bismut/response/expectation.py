"""A number to a tolerance.

    ⟨f(z(T))⟩ = Σ_{l ≤ L} ⟨Y_l⟩ + Δ_L/(2^r − 1) + bias,       Δ_l = ⟨Y_l⟩ = ⟨f⟩ at h_l − ⟨f⟩ at h_{l−1} ≈ −(2^r − 1) c h_l^r

The bias of a step is measured, by pairs of runs at h and h/2 on one noise (`levels`), and removed by extrapolation with the weak order r that the
scheme claims. log₂ (Δ_{L−1}/Δ_L) = p ± e is the measured order. The claim is not taken at its word: what any other order that the pairs allow would
make of the same differences is stated as the bias,

    bias = |Δ_L| max_s |1/(2^s − 1) − 1/(2^r − 1)|,       s between r and p ± 2e, at least ½.

Where p contradicts r, nothing is extrapolated and the bias is max(|Δ_L|, |Δ_{L−1}|/2^s)/(2^s − 1), s = min(p − 2e, r); and so with s = ½ where the
differences are seen but grow or change sign, so that there is no order. Where they are lost in noise, so is the order: the claim is used, and the
bias is |Δ_L| + 2 standard errors, as if nothing had been removed by it. Each component is judged by itself.

Trajectories go to levels as √(Var Y_l/cost) (Giles), steps are halved until the bias takes at most half of the tolerance, and trajectories are added
until bias + 2 standard errors fit into it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bismut.arguments import POSITIVE, checked
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
_LEAST = 0.5  # order that differences are believed to have at least; what is left of h and h² with opposite signs is within it too
_SEEN = 4.0  # standard errors from zero of a difference that is called seen


@dataclass(frozen=True)
class Expectation:
    """A mean with its two errors: |value − ⟨f⟩| ≤ bias + 2 stderr with a probability of about 95 %.

    value      the mean, extrapolated to h → 0 where the measured order agrees with the claimed one
    bias       what a finite step is estimated to leave in it
    stderr     its standard error
    order      the measured weak order, and its error; NaN where differences are lost in noise, or have none
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


@checked(**(RUN | {"time": POSITIVE, "tolerance": POSITIVE}))
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
            if pair.undefined == pair.drawn:
                raise BismutError(
                    "The function `of` is NaN or infinite in the last state of every trajectory, although the states are finite. Mend it."
                )
            if not pair.failed and _follow(pair, coupled=step is None and problem.scheme.pathwise):
                break
            steps *= 2
            if 4 * steps > _FINEST:
                why = "runs at h and h/2 on one noise do not follow each other"
                why = "trajectories fail" if pair.failed else why
                why = f"`of` is not finite in {pair.undefined} of {pair.drawn} trajectories, whose states are," if pair.undefined else why
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

    def orders(self) -> tuple[np.ndarray, np.ndarray]:
        """log₂ of the ratio of the last differences of each component, and its error; NaN where it is not resolved."""
        a, b = self.differences()
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(a.squared_error / a.mean**2 + b.squared_error / b.mean**2) / math.log(2)
            order = np.log2(a.mean / b.mean)
        measured = np.isfinite(order) & (error < _RESOLVED)
        return np.where(measured, order, np.nan), np.where(measured, error, np.nan)

    def order(self) -> tuple[float, float]:
        """That of the component in which it is seen best."""
        orders, errors = self.orders()
        if np.isnan(errors).all():
            return math.nan, math.nan
        best = int(np.nanargmin(errors))
        return float(orders[best]), float(errors[best])

    @property
    def irregular(self) -> np.ndarray:
        """Whether the last difference is seen, and the one before it is not larger and of the same sign: no order explains both."""
        a, b = self.differences()
        seen = np.abs(b.mean) > _SEEN * np.sqrt(b.squared_error)
        return np.isnan(self.orders()[0]) & seen & (a.mean * np.sign(b.mean) + SURE * np.sqrt(a.squared_error) < np.abs(b.mean))

    @property
    def agrees(self) -> np.ndarray:
        """Whether the differences of each component do not contradict the claimed order."""
        order, error = self.orders()
        return np.where(np.isnan(order), ~self.irregular, np.abs(order - self.claimed) < _OFF + 2 * error)

    def bias(self) -> np.ndarray:
        """By the module docstring."""
        a, b = self.differences()
        (order, error), r = self.orders(), self.claimed
        last, before = np.abs(b.mean), np.abs(a.mean)
        rest = lambda s: 1 / (2 ** np.maximum(s, _LEAST) - 1)
        extrapolated = last * np.maximum(np.abs(rest(order - 2 * error) - rest(r)), np.abs(rest(order + 2 * error) - rest(r)))
        s = np.where(self.irregular, _LEAST, np.clip(order - 2 * error, _LEAST, r))
        whole = np.maximum(last, before / 2**s) * rest(s)
        unresolved = last + SURE * np.sqrt(b.squared_error)
        return np.where(self.agrees, np.where(np.isnan(order), unresolved, extrapolated), whole)

    def weights(self) -> list[Any]:
        """What the mean of each level, and of each component in the last one, counts in the value."""
        return [1.0] * (len(self.levels) - 1) + [1 + np.where(self.agrees, 1 / (2**self.claimed - 1), 0.0)]

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
            spread = [float(np.max(w * np.sqrt(level.variance))) for w, level in zip(weights, self.levels, strict=True)]
            if not np.isfinite(spread).all():
                raise BismutError(
                    f"The function `of` varies so much that its variance overflows: the step {self.problem.time / self.levels[0].steps:.3g} is "
                    "unstable, or the mean does not exist. Give a smaller step=."
                )
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
        lost = np.isnan(self.orders()[0]) & ~self.irregular
        if lost.any():
            doubts.append(
                f"differences between steps are lost in noise{_some(lost)}, so the order is not measured: the last is extrapolated by the claimed "
                f"order {self.claimed:g}, but the bias is all of it and twice its error"
            )
        if self.irregular.any():
            doubts.append(f"differences between steps grow or change sign{_some(self.irregular)}, so there is no order: nothing was extrapolated")
        contradicted = ~self.agrees & ~self.irregular
        if contradicted.any():
            doubts.append(f"the measured order is not the claimed one, {self.claimed:g}{_some(contradicted)}: nothing was extrapolated")
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
            extrapolated=bool(self.agrees.all()),
            levels=tuple(rows),
            doubt="; ".join(doubts),
        )


def _some(which: np.ndarray) -> str:
    """Of how many components something is said, unless of all."""
    return "" if which.all() else f" in {int(which.sum())} of {which.size} components"


def _follow(pair: Level, coupled: bool) -> bool:
    """Whether the coarse run is no wilder than the fine one and, if they are to be coupled, explains half of its variance."""
    fine, coarse, both = variance_of(pair.fine), variance_of(pair.coarse), pair.variance
    if not (np.isfinite(coarse).all() and np.isfinite(fine).all()):  # finite numbers whose squares overflow: the step is unstable
        return False
    tiny = 1e-20 * (1 + np.abs(pair.fine.mean if pair.fine is not None else 0.0)) ** 2
    return bool(np.all(coarse <= 2 * fine + tiny) and (not coupled or np.all(both <= 0.5 * fine + tiny)))
