"""What a scheme claims, measured: `verify` gives findings, and a finding can fail.

    structure     one step and a short path            consistency   what the user wrote by hand, against itself
    accuracy      orders, energy drift                 integrity     engines and compilers, against each other
    equilibrium   temperatures, averages, distance from Gibbs, where there is a bath

Each finding names a law, what was claimed, what was measured and the limit that separates the two. Claims that a scheme does not make are measured
all the same and shown as facts: that Euler–Maruyama is not symplectic is no failure of Euler–Maruyama. The measurements are `checks`.

A step function of the user's, step(q, p, h, dW) ↦ (q, p), is judged likewise: for a system with energies, temperatures, averages and orders; on a
space alone only its structure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.arguments import checked
from bismut.ensembles.checks import RUN
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.findings.checks import Check, Study, all_checks, by_group
from bismut.findings.consistency import custom_vjp_reason, function_without_forward
from bismut.findings.finding import Finding, not_measured
from bismut.findings.memory import NotEnoughMemory
from bismut.findings.report import Report
from bismut.findings.statistics import ALARM, holm_verdicts
from bismut.flows import Flow, Solve
from bismut.mechanics import Claims, Scheme, State, System
from bismut.mechanics.function import UserFunction, user_function
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.spaces import Space
from bismut.user_errors import reason_of

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BUDGET = 10.0  # seconds of work for sampling
NOTHING = Claims(order=None, strong_order=None, weak_order=None)


@checked(**RUN)
def verify(
    scheme: Scheme,
    start,
    *,
    step: float,
    seed: int = 0,
    order: bool = True,
    equilibrium: bool = True,
    integrity: bool | None = None,
    temperature: float | None = None,
    tolerance: float = 0.02,
    observables: Mapping[str, Callable[[State], Any]] | None = None,
    budget: int | float | str = BUDGET,
    alarm: float = ALARM,
) -> Report:
    """Measure what a scheme claims: structure, orders, consistency of what was written by hand, the machine, and equilibrium.

    start        the state at which and from which measurements are made
    step         the step h of the measurements
    seed         of the noise
    order        whether orders are measured, which takes longest
    equilibrium  whether a bath is measured; switch it off where a force drives the system on purpose
    integrity    whether engines and compilers are compared; the same as `order` by default
    temperature  kT, if the scheme does not define it or is believed to have another
    tolerance    how far temperatures may deviate, relatively, and averages, in units of their spread
    observables  names and functions of a State whose averages are compared with those of exp(−H/kT)
    budget       seconds for sampling, or "30s", "2m", "1h"; 0 for none. It is a count of work, of as many seconds on two quiet cores, so that
                 equal calls come out equal on any machine. Compilation is extra
    alarm        the probability that a report on a correct scheme contains a failure

    Returns a report: print it, check `report.ok`, or take one finding, `report["symplectic defect"].measured`. `report.undecided` lists claims for
    which there were too few samples, `report.unmeasured` what was not measured, and why.
    """
    check_process()
    begun = time.monotonic()
    asked = {"order": order, "equilibrium": equilibrium, "integrity": order if integrity is None else integrity, "budget": seconds_of(budget)}
    study = replace(study_of(scheme, start, step, seed), tolerance=tolerance, temperature=temperature, observables=observables or {}, **asked)
    findings = [finding for check in all_checks() for finding in _measured(check, study)]
    return Report(scheme.title, float(step), holm_verdicts(by_group(findings), alarm), alarm, seed, time.monotonic() - begun)


def study_of(scheme: Scheme, start: Any, step: float, seed: int) -> Study:
    """The study of a scheme from a start of the user's, at t = 0."""
    if scheme.changes_box:
        raise BismutError(f"The laws that verify measures are those of steps in one box. Verify the scheme inside {scheme.title}, scheme.scheme.")
    t0, path = 0.0, Wiener(seed)
    state = start_at(scheme, start, t0, "Measurements are made from t = 0: make the start without t.").one(path)
    scheme.check_step(step)
    return Study(scheme, State(state.q, state.p), step, path, t0)


def _measured(check: Check, study: Study) -> list[Finding]:
    """The findings of a check, with seed and seconds; its laws as not measured where a function has no forward derivative, or there is too
    little memory."""
    clock = time.monotonic()
    try:
        findings = check(study)
    except (ValueError, TypeError, NotImplementedError) as problem:
        reason = custom_vjp_reason(problem)
        if reason is None:
            raise
        # What was compiled before does not know whose function it is: the system does.
        reason = function_without_forward(study.system) or reason
        findings = [replace(not_measured(law, reason), group=check.group) for law in check.laws]
    except NotEnoughMemory as problem:
        findings = [replace(not_measured(law, str(problem)), group=check.group) for law in check.laws]
    spent = time.monotonic() - clock
    return [replace(one, seed=study.seed, seconds=round(spent if one.seconds is None else one.seconds, 3)) for one in findings]


def seconds_of(budget: int | float | str) -> float:
    """30, "30s", "2m" or "1h" in seconds."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|min|h|)\s*", str(budget))
    try:
        value = float(budget) if not isinstance(budget, str) else float(match.group(1)) * _UNITS[match.group(2)] if match else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise DomainError(f'budget must be seconds such as 30, or "30s", "2m", "1h", got {budget!r}.')
    return value


# A step of the user's.


class UserStep(Flow):
    """A step given as a function, with the claims that its author makes."""

    function: UserFunction = eqx.field(static=True)
    declared: Claims = eqx.field(static=True)
    normals: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    constrained = True

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.declared

    @property
    def channels(self) -> int:
        return self.normals

    @property
    def title(self) -> str:
        return self.name

    def advance(self, state, h, dW, t):
        q, p = self.function(state.q, state.p, h, dW, t=t, parameters=self.system.parameters)
        return State(q, p), Solve(jnp.zeros((), self.system.dtype), jnp.array(True), jnp.zeros((), int))


def user_step(step: Callable, on: System | Space, *, channels: int = 0, claims: Claims = NOTHING, name: str | None = None) -> UserStep:
    """The scheme of a step function, checked: it must give back points and momenta as it got them."""
    if isinstance(on, Space):
        on = System(on, None, channels=channels)
    if not isinstance(on, System):
        raise BismutError(f"verify_step needs a space such as bm.SO3() or a system, got {type(on).__name__}.")
    function = user_function("step", step, ("q", "p", "h", "dW"))
    assert function is not None
    scheme = UserStep(on, function, claims, channels, name or getattr(step, "__name__", "step").replace("<lambda>", "step"))
    q, p, one = on.space.origin(on.dtype), on.space.zero(on.dtype), jnp.ones((), on.dtype)
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)
    try:
        end = jax.eval_shape(lambda: function(q, p, one, jnp.zeros(channels, on.dtype), t=one, parameters=on.parameters))
    except Exception as problem:
        raise ShapeError(f"step(q, p, h, dW) fails on {on.space} with {channels} channels: {reason_of(problem)}.") from problem
    if not isinstance(end, tuple) or len(end) != 2 or (shapes(end[0]), shapes(end[1])) != (shapes(q), shapes(p)):
        raise ShapeError(f"step(q, p, h, dW) must return (q, p) with the shapes it was given, {shapes(q)} and {shapes(p)}, got {shapes(end)}.")
    return scheme


def verify_step(
    step: Callable,
    on: System | Space,
    start: State,
    *,
    h: float,
    channels: int = 0,
    claims: Claims = NOTHING,
    temperature: float | None = None,
    name: str | None = None,
    seed: int = 0,
    order: bool = True,
    tolerance: float = 0.02,
    observables: Mapping[str, Callable[[State], Any]] | None = None,
    budget: int | float | str = BUDGET,
    alarm: float = ALARM,
) -> Report:
    """Judge a step function of your own, or of another program, as `verify` judges a scheme.

    step         step(q, p, h, dW) ↦ (q, p), a JAX function; it may name t and parameters
    on           the system it should solve, or only the space it moves on
    start        a bm.State(q, p), p canonical: ∂L/∂v, on a group in the body frame
    h            the step size
    channels     how many Wiener increments a step takes, as dW, each with variance h
    claims       the claims it is tested against: bm.Claims(order=2, symplectic=True, ...)
    temperature  kT, if it has a bath; then temperatures and averages are measured

    Other arguments are as for `verify`.
    """
    scheme = user_step(step, on, channels=channels, claims=claims, name=name)
    more = {"order": order, "temperature": temperature, "tolerance": tolerance, "observables": observables, "budget": budget, "alarm": alarm}
    return verify(scheme, start, step=h, seed=seed, **more)
