"""How an average moves with a parameter.

    d⟨O⟩/dθ        at a time, or in equilibrium, with an error over independent trajectories

by the estimator for which variance × cost is smallest in a pilot (`estimators`). All that apply are reported; those that do not, with the reason.
Work is counted, not timed, so equal calls give equal answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from bismut.arguments import Rule, checked, integer, one_of, positive
from bismut.ensembles import complete_run, request, values
from bismut.ensembles.checks import RUN
from bismut.ensembles.observable import measure
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError
from bismut.findings.statistics import SURE
from bismut.formatting import first_of, table, with_error
from bismut.mechanics import Scheme
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.response.bath import no_bath
from bismut.response.estimators import NAMES, Estimates, Question, control_for, cost, sample, why_not
from bismut.response.parameters import parameters_of

_PILOT, _SHARE = 64, 10  # trajectories of a pilot at least; or a tenth of the run
_APART = 2**40  # trajectory numbers between the run and the pilots
_TWO = integer(2).but("Errors are over independent trajectories.")
_NAMES = Rule("names of parameters such as ['k', 'temperature']", lambda value: isinstance(value, str | Sequence))


@dataclass(frozen=True)
class Estimator:
    """One way: value and standard error (P, M) from so many trajectories; variance of one trajectory × its cost, in plain trajectories."""

    value: np.ndarray
    stderr: np.ndarray
    trajectories: int
    failed: int
    cost: float
    engine: str
    note: str = ""

    @property
    def inefficiency(self) -> np.ndarray:
        """Variance of a single trajectory × cost."""
        return self.stderr**2 * self.trajectories * self.cost


@dataclass(frozen=True)
class Sensitivity:
    """d⟨O⟩/dθ.

    value, stderr   by the name of a parameter: arrays (shape of O, shape of the parameter), trees of them where it is a tree
    mean            ⟨O⟩ and its standard error
    method          the estimator used; estimators: all that apply, from the pilot or, of the one used, from the run
    missing         those that do not apply, with the reason
    agree           whether all agree within 4.5 standard errors
    """

    value: dict[str, Any]
    stderr: dict[str, Any]
    mean: tuple[Any, Any]
    method: str
    estimators: dict[str, Estimator]
    missing: dict[str, str]
    labels: tuple[str, ...]
    agree: bool
    doubt: str
    subject: str

    def __repr__(self) -> str:
        best = self.estimators[self.method]
        verdict = "" if len(self.estimators) < 2 else "; the estimators agree" if self.agree else "; THE ESTIMATORS DO NOT AGREE"
        lines = [f"{self.subject}: ⟨O⟩ = {with_error(*self.mean)}; by {self.method}{verdict}"]
        rows = [(f"d⟨O⟩/d{label}", best.value[j], best.stderr[j]) for j, label in enumerate(self.labels)]
        shown = [f"  {name:<16} {_numbers(value, error)}" for name, value, error in rows]
        lines += first_of(shown, 8, "\n").splitlines()
        least = min(one.inefficiency.max() for one in self.estimators.values())
        for name, one in sorted(self.estimators.items(), key=lambda item: item[1].inefficiency.max()):
            ratio = one.inefficiency.max() / least if least else 1.0
            first = f"{_numbers(one.value[0], one.stderr[0])}"
            lines.append(f"  {name:<12} {first:>22}   {one.trajectories} trajectories, cost {one.cost:.3g}, variance × cost {ratio:.3g}{one.note}")
        lines += [f"  {name:<12} {'–':>22}   {why}" for name, why in self.missing.items()]
        return "\n".join(lines + ([f"  {self.doubt}"] if self.doubt else []))

    def _repr_html_(self) -> str:
        best = self.estimators[self.method]
        rows = [(label, _numbers(best.value[j], best.stderr[j])) for j, label in enumerate(self.labels)]
        return table(repr(self).splitlines()[0], rows, ("θ", "d⟨O⟩/dθ"))

    def as_json(self) -> dict[str, Any]:
        """Plain data; arrays (parameters, components)."""
        ways = {
            name: {
                "value": one.value.tolist(),
                "stderr": one.stderr.tolist(),
                "trajectories": one.trajectories,
                "failed": one.failed,
                "cost": one.cost,
                "engine": one.engine,
            }
            for name, one in self.estimators.items()
        }
        mean = {"value": np.asarray(self.mean[0]).tolist(), "stderr": np.asarray(self.mean[1]).tolist()}
        rest = {"method": self.method, "estimators": ways, "missing": self.missing, "agree": self.agree, "doubt": self.doubt}
        return {"subject": self.subject, "parameters": list(self.labels), "mean": mean} | rest


def _numbers(value: np.ndarray, error: np.ndarray) -> str:
    return with_error(value[0], error[0]) if np.size(value) == 1 else with_error(value, error)


@checked(**(RUN | {"parameters": _NAMES, "time": positive, "trajectories": _TWO, "method": one_of("auto", *NAMES)}))
def sensitivity(
    scheme: Scheme,
    start: Any,
    *,
    of: Any,
    parameters: Any = None,
    step: float,
    steps: int | None = None,
    time: float | None = None,
    trajectories: int = 1000,
    seed: int = 0,
    t0: float = 0.0,
    equilibrium: bool = False,
    burn_in: int = 0,
    every: int | None = None,
    method: str = "auto",
    smooth: bool = False,
) -> Sensitivity:
    """d⟨O⟩/dθ of a function of a State, after a time or in equilibrium, with an error over independent trajectories.

    of            a function of a State, or of a State and t; a number or an array
    parameters    names: keys of the system's parameters, "temperature", or "friction", a common factor on it; by default all of the system's
    step, steps   as for simulate; or time= in place of steps
    equilibrium   whether O is averaged over time after the burn-in, and exp(−H/kT) may be used; else O is that of the last state
    burn_in       steps to equilibrium; every: steps between observations in equilibrium, about a thousand of them by default
    method        "auto": all estimators that apply are tried on a tenth of the trajectories, and the best one runs; or "pathwise", "likelihood",
                  "covariance", "adjoint"
    smooth        whether O is known to be continuous although there are comparisons in it

    The start is part of the question: its temperature is not that of the bath, but masses are felt in momenta that follow from a velocity or a
    temperature. In equilibrium derivatives forget it, and all but the covariance are those of averages from this start.
    """
    check_process()
    steps = _steps(steps, time, step)
    if equilibrium and (why := no_bath(scheme)):
        raise BismutError(f"equilibrium=True asks for averages in equilibrium, but there is {why}; or ask at a time, without equilibrium=True.")
    chosen = parameters_of(scheme, parameters)
    starts = start_at(scheme, start, t0)
    if starts.batch and starts.batch != (trajectories,):
        raise DomainError(f"start holds {starts.batch} states, but trajectories = {trajectories}. Give one start, or one for each trajectory.")
    shape = measure(of, scheme, "of", starts.example)
    path = Wiener(seed)
    every = (max(1, steps // 1000) if every is None else every) if equilibrium else steps
    if every > steps:
        raise DomainError(f"every = {every} is more than steps = {steps}: nothing would be observed.")
    run = {"step": float(step), "steps": int(steps), "every": int(every), "burn_in": int(burn_in), "t0": float(t0)}
    question = Question(scheme, start, of, chosen, path, starts.one(path), bool(smooth), bool(equilibrium), bool(starts.batch), run)
    control = control_for(question)
    reasons = {name: why_not(name, question, control) for name in (NAMES if method == "auto" else (method,))}
    able = [name for name, why in reasons.items() if not why]
    missing = {name: why for name, why in reasons.items() if why}
    if not able:
        lines = "; ".join(f"{name}: {why}" for name, why in missing.items())
        raise BismutError(f"No estimator applies to this derivative. {lines}.")
    estimators: dict[str, Estimator] = {}
    if len(able) > 1:
        pilot = min(trajectories, max(_PILOT, trajectories // _SHARE))
        first = 0 if starts.batch else _APART
        estimators = {name: _estimate(name, question, control, sample(name, question, control, first, pilot)) for name in _different(able)}
        if "adjoint" in able and "adjoint" not in estimators:
            forward = estimators["pathwise"]
            estimators["adjoint"] = replace(forward, cost=cost("adjoint", question, control, "native"), note="; the numbers of pathwise, backwards")
        best = min(_eligible(able, estimators), key=lambda name: _merit(estimators, name))
    else:
        best = able[0]
    final = sample(best, question, control, 0, trajectories)
    estimators[best] = _estimate(best, question, control, final)
    value, stderr = estimators[best].value, estimators[best].stderr
    agree, doubts = _agree(estimators), []
    if final.failed:
        doubts.append(f"{final.failed} of {trajectories} trajectories failed and are left out")
    if not agree:
        doubts.append(f"two estimators differ by more than {SURE:g} standard errors: a longer burn_in, or a smaller step, may tell which is right")
    if question.cut and best in ("pathwise", "adjoint"):
        doubts.append("O has an angle (atan2), which jumps where it goes round: its derivative does not see that. Give smooth=True if O does not")
    shaped = lambda array: chosen.split(np.moveaxis(array, 0, 1).reshape((*shape, chosen.count)), scheme)
    n = max(len(final.value), 2)
    mean = final.value.mean(0).reshape(shape), (final.value.std(0, ddof=1) / math.sqrt(n)).reshape(shape)
    when = "in equilibrium" if equilibrium else f"at t = {t0 + (burn_in + steps) * step:g}"
    subject = f"{scheme.title} on {scheme.space}, step {step:g}, {trajectories - final.failed} trajectories, {when}"
    return Sensitivity(shaped(value), shaped(stderr), mean, best, estimators, missing, tuple(chosen.labels), agree, "; ".join(doubts), subject)


def _steps(steps: int | None, time: float | None, step: float) -> int:
    if (steps is None) == (time is None):
        raise DomainError("Give steps= or time=, one of the two.")
    if time is None:
        return int(steps or 0)
    count = max(1, round(time / step))
    if abs(count * step - time) > 1e-9 * time:
        raise DomainError(f"time = {time:g} is no multiple of the step {step:g}: give steps=, or another step.")
    return count


def _different(able: list[str]) -> list[str]:
    """Those whose numbers differ: backwards gives those of pathwise, trajectory by trajectory."""
    return [name for name in able if name != "adjoint" or "pathwise" not in able]


def _estimate(name: str, question: Question, control: Any, seen: Estimates) -> Estimator:
    n = len(seen.each)
    if (n < 2 or not np.isfinite(seen.each).all()) and _undefined(question):
        raise BismutError("O, the function `of`, is NaN or infinite in states that are finite: a root or a logarithm of a negative number? Mend it.")
    if n < 2:
        raise BismutError(f"Errors are over trajectories that finished, of which {name} has {n}; {seen.failed} failed. Take a smaller step.")
    stderr = seen.each.std(0, ddof=1) / math.sqrt(n)
    return Estimator(seen.each.mean(0), stderr, n, seen.failed, cost(name, question, control, seen.engine), seen.engine, seen.note)


def _undefined(question: Question) -> bool:
    """Whether O is no number in the last state of some trajectory, although that is finite; asked where an estimator has no answer."""
    run, few = question.run, 1 if question.batch else 8
    start = jax.tree.map(lambda leaf: leaf[0], question.start) if question.batch else question.start
    settings = {"step": run["step"], "steps": run["burn_in"] + run["steps"], "trajectories": few, "t0": run["t0"], "path": question.path}
    seen = complete_run(request(question.scheme, start, observe={"of": values(question.of, every=settings["steps"])}, **settings))
    last = np.asarray(seen.observables["of"].value)[:, -1].reshape(few, -1)
    return int((~np.isfinite(last).all(1)).sum()) > len(seen.outcome.failures)


def _eligible(able: list[str], estimators: dict[str, Estimator]) -> list[str]:
    """Those among which the best is chosen. Where they do not agree one without any variance is no good one: it sees nothing of what moves."""
    blind = [name for name in able if not estimators[name].inefficiency.any()]
    return able if _agree(estimators) or len(blind) == len(able) else [name for name in able if name not in blind]


def _merit(estimators: dict[str, Estimator], name: str) -> float:
    """The mean over components of variance × cost, each in units of the smallest; failures are no way to a small variance."""
    least = np.min([one.inefficiency for one in estimators.values()], 0)
    own = estimators[name]
    ratio = np.where(least > 0, own.inefficiency / np.where(least > 0, least, 1.0), np.where(own.inefficiency > 0, np.inf, own.cost))
    return float(ratio.mean()) * (1e6 if own.failed else 1.0)


def _agree(estimators: dict[str, Estimator]) -> bool:
    ways = list(estimators.values())
    pairs = [(a, b) for i, a in enumerate(ways) for b in ways[:i]]
    return all(bool(np.all(np.abs(a.value - b.value) <= SURE * np.hypot(a.stderr, b.stderr) + 1e-9 * np.abs(a.value))) for a, b in pairs)
