"""The certificate of a run, measured at a twentieth of its work.

    failures, finite states, points on the space        always
    temperature of each axis, kinetic energy            from its last states, where there is a bath and the run was long enough to settle
    constraints                                         from its last states
    energy, Casimirs                                    from its first states and its last, where there is no bath
    structure, consistency, engines                     where a twentieth of the run pays for tracing and compiling them (`checks` with a cost)

A part is begun only if the rest of the twentieth pays for it. Both are counted in operations and never timed (`cost`), so that equal runs have equal
certificates, on a busy machine too: the run by its trajectories, steps and operations of a step, a part by the length of the program of a step, since
tracing and compiling are what it costs. What the run was too short to pay for is listed as not measured, with the command that measures it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np

from bismut.ensembles import Result
from bismut.ensembles.starts import StartStates
from bismut.findings.bath import bath_of, heated
from bismut.findings.checks import Study, all_checks
from bismut.findings.cost import seconds_for, step_operations
from bismut.findings.equilibrium import axis_names, kinetic_distribution, kinetic_values, temperatures
from bismut.findings.finding import Finding, at_most, not_measured, verdict_of
from bismut.findings.memory import NotEnoughMemory
from bismut.findings.report import Report
from bismut.findings.statistics import ALARM, holm_verdicts
from bismut.mechanics import Scheme, State
from bismut.programs.evaluation import evaluate
from bismut.registry import PROVIDERS
from bismut.spaces import Space
from bismut.user_errors import reason_of

SHARE = 0.05  # of the run's time
_STATES = 0.8  # seconds for what is read off the last states
# Seconds for the structure of a step: so many, and so many for each operation of its program. Costs of checks are in units of it. Upper ends of what
# pendulum, heavy top, eight dipoles and a constrained molecule took.
_LEAST, _EACH = 0.4, 1e-4
_UNCOUNTED = 3e4  # operations, where XLA computes
_FEW = 64  # trajectories whose energies are compared
_SETTLED = 8.0  # relaxation times after which last states count as samples


class Budget:
    """Seconds that are left, and the findings they paid for."""

    def __init__(self, seconds: float, unable: str):
        self.seconds, self.left, self.unable = seconds, SHARE * seconds, unable
        self.findings: list[Finding] = []

    def run(self, cost: float, laws: tuple[str, ...], group: str, measure: Callable[[], list[Finding]]) -> bool:
        """Measure if there is enough left for it, list the laws as not measured if not; whether it was paid for."""
        affordable = not self.unable and self.left >= cost
        if affordable:
            self.left -= cost
            try:
                findings = measure()
            except NotEnoughMemory as problem:
                findings = [not_measured(law, str(problem)) for law in laws]
            except KeyboardInterrupt:  # the run is complete, and is not lost over what is said about it
                self.unable = "the certificate was interrupted; bismut verify measures it"
                findings = [not_measured(law, self.unable) for law in laws]
            except Exception as problem:  # of the user's functions, at points where the run never was: its results are valid all the same
                findings = [not_measured(law, f"{type(problem).__name__}: {reason_of(problem)}") for law in laws]
        else:
            unpaid = f"a twentieth of the run's work, {self.seconds:.1f} s, does not pay for it; bismut verify measures it"
            findings = [not_measured(law, self.unable or unpaid) for law in laws]
        known = {finding.law for finding in self.findings}  # a law that the last states showed is not listed twice
        self.findings += [replace(finding, group=group) for finding in findings if finding.law not in known]
        return affordable


@PROVIDERS.register
def certify(result: Result, seconds: float | None = None, tolerance: float = 0.02) -> Report:
    """The certificate of a run; of one that took so many seconds, if its work is not to be counted."""
    begun = time.monotonic()
    request = result.request
    scheme, length = request.scheme, _length(request)
    unable = "a sweep has no single certificate" if request.axes else "the run kept no last states" if result.final is None else ""
    unable = unable or ("it is measured of the scheme inside, bm.verify(scheme.scheme, ...)" if scheme.changes_box else "")
    budget = Budget(_work(result, length) if seconds is None else seconds, unable)
    budget.findings += [_failures(result), *_on_space(scheme, result)]
    study = cache(lambda: Study(scheme, _first(request), request.step, request.path, request.t0, tolerance=tolerance))
    if scheme.system.has_lagrangian and _has_bath(scheme):
        if not unable and (rise := heated(scheme, study().state, request.t0, tolerance)) is not None:
            budget.findings.append(replace(rise, group="equilibrium"))
        else:
            budget.run(_STATES, ("temperature",), "equilibrium", lambda: _thermal(study(), result))
    elif conserved := _conserved(scheme):
        budget.run(_STATES, tuple(conserved), "structure", lambda: _changes(conserved, scheme, result))
    if scheme.system.constraints:
        budget.run(_STATES, ("constraints",), "structure", lambda: [_constraints(scheme, result)])
    unit, affordable = _LEAST + _EACH * length, True
    for check in all_checks():
        if check.cost is not None and check.applies(scheme):  # the first that is not affordable is the last that is tried
            cost = check.cost * unit if affordable else float("inf")
            affordable = budget.run(cost, check.label, check.group, lambda check=check: check(study()))
    subject = f"{scheme.title} on {scheme.space}"
    return Report(subject, request.step, holm_verdicts(budget.findings), ALARM, request.path.seed_number, time.monotonic() - begun)


def _length(request: Any) -> float:
    """Operations in the program of a step, loops counted once; a program that was not counted is taken for long."""
    return float(request.engine_plan.operations or _UNCOUNTED)


def _work(result: Result, length: float) -> float:
    """Seconds of work in a run, that of earlier processes included.

    Loops over bodies and pairs are counted as often as they run, for which a step is traced again: only where a twentieth could pay for anything.
    """
    request, mode = result.request, result.provenance.mode
    steps = float(np.sum(result.trajectories_run)) * result.steps_done
    most = seconds_for(steps * length * max(1.0, 0.5 * request.scheme.space.dim**2), mode)
    if request.axes or SHARE * most < _STATES:
        return seconds_for(steps * length, mode)
    return seconds_for(steps * step_operations(request.scheme, _first(request)), mode)


def _has_bath(scheme: Scheme) -> bool:
    """Whether there is anything like a bath; its temperature is determined where the budget allows."""
    return hasattr(scheme, "friction") or scheme.system.dissipation is not None


def _first(request: Any) -> State:
    state = StartStates(request.starts[0], request.batch, request.t0).one(request.path)
    return State(state.q, state.p)


def _failures(result: Result) -> Finding:
    failed, run = len(result.outcome.failures), result.outcome.trajectories
    return Finding("failures", float(failed), 0.0, verdict_of(not failed), f"trajectories of {run} that failed")


def _on_space(scheme: Scheme, result: Result) -> list[Finding]:
    """Whether the last points are points of the space; the worst of the first hundred."""
    space = scheme.space
    if result.final is None or result.request.axes or type(space).violation is Space.violation:
        return []
    count = min(100, len(jax.tree.leaves(result.final.p)[0]))
    off = [float(space.violation(jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], result.final.q))) for i in range(count)]
    finite = [value for value in off if np.isfinite(value)]
    eps = float(np.finfo(scheme.system.dtype).eps)
    limit = 1e2 * eps * max(result.steps_done, 100)
    return [at_most("stays on the space", max(finite, default=0.0), limit, True, f"violation after {result.steps_done} steps, {count} trajectories")]


def _thermal(study: Study, result: Result) -> list[Finding]:
    """Temperatures and the distribution of kinetic energy, from the last states."""
    system = study.system
    bath, reason = bath_of(study.scheme, study.state, study.step, study.t0)
    if bath is None:
        return [not_measured("temperature", reason)] if reason else []
    passed = result.steps_done * study.step * bath.rate
    if passed < _SETTLED:
        return [not_measured("temperature", f"the run lasted {passed:.2g} relaxation times of the momenta; {_SETTLED:g} are wanted")]
    assert result.final is not None
    values = evaluate(jax.vmap(kinetic_values(system, bath.kT, study.t0)), State(result.final.q, result.final.p))
    kinetic, axes = (np.asarray(values[name])[None] for name in ("kinetic", "axes"))
    findings = temperatures(axes, axis_names(system), study.tolerance, ", its last states")
    return findings + kinetic_distribution(kinetic, system, study.tolerance)


def _conserved(scheme: Scheme) -> dict[str, Callable[[State], Any]]:
    """What a run without a bath can compare between its first states and its last: energy and Casimirs."""
    system = scheme.system
    conservative = not scheme.channels and not scheme.forced and system.moves and not system.time_dependent
    return ({"energy": system.energy} if conservative else {}) | {f"Casimir {name}": function for name, function in scheme.casimirs.items()}


def _changes(functions: dict[str, Callable[[State], Any]], scheme: Scheme, result: Result) -> list[Finding]:
    """How much energy changed, a fact, and Casimirs, of the first trajectories."""
    assert result.final is not None
    request = result.request
    count = min(_FEW, request.trajectories)
    numbers = np.arange(request.first, request.first + count, dtype=np.uint64)
    begin = StartStates(request.starts[0], request.batch, request.t0).many(request.path, numbers, np.arange(count))
    ends = [jax.tree.map(lambda leaf: np.asarray(leaf)[:count], State(state.q, state.p)) for state in (begin, result.final)]
    how = f"change, relative, largest of {count} trajectories after {result.steps_done} steps"
    limit = 1e2 * float(np.finfo(scheme.system.dtype).eps) * max(result.steps_done, 100)
    findings = []
    for law, function in functions.items():
        first, last = (np.asarray(evaluate(jax.vmap(function), state), float) for state in ends)
        change = float(np.nanmax(np.abs(last - first) / np.maximum(np.abs(first), np.finfo(float).tiny)))
        findings.append(at_most(law, change, limit, law != "energy" and scheme.effective_claims.casimirs, how))
    return findings


def _constraints(scheme: Scheme, result: Result) -> Finding:
    system, final = scheme.system, result.final
    assert final is not None
    end = result.request.t0 + result.request.step * result.steps_done
    off = np.asarray(evaluate(jax.vmap(lambda q: system.constraint(q, end)), final.q))
    size = 1 + max(float(np.nanmax(np.abs(leaf))) for leaf in jax.tree.leaves((final.q, final.p)))
    limit = 1e3 * float(np.finfo(system.dtype).eps) * size**2
    return at_most("constraints", float(np.nanmax(np.abs(off))), limit, True, f"largest |g(q)| after {result.steps_done} steps")
