"""What a run proves of itself, at a twentieth of its work.

    failures, finite states, points on the space        always
    temperature of each axis, kinetic energy            from its last states, where there is a bath and the run was long enough to settle
    constraints                                         from its last states
    energy, Casimirs                                    from its first states and its last, where there is no bath
    structure, consistency, engines                     where a twentieth of the run pays for tracing and compiling them

A part is begun only if what is left of the twentieth pays for it. Both are counted in operations and never timed (`effort`), so that equal runs have
equal certificates, on a busy machine too: the run by its trajectories, steps and operations of a step, a part by how long the program of a step is,
since tracing and compiling is what it costs. What the run was too short to pay for is listed as not measured, with the command that measures it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.blame import why
from bismut.ensembles import Result
from bismut.ensembles.starts import many_starts, one_start
from bismut.findings.along import along, one_step, short_path
from bismut.findings.bath import Bath, bath_of, heated
from bismut.findings.chance import ALARM, judged
from bismut.findings.consistency import derivatives
from bismut.findings.effort import seconds_for, step_operations
from bismut.findings.equilibrium import GROUP, axes_of, kinetic, moving, temperatures
from bismut.findings.finding import Finding, Verdict, at_most, not_measured
from bismut.findings.integrity import integrity
from bismut.findings.noether import neighbours
from bismut.findings.report import Report
from bismut.findings.reversal import reversal
from bismut.findings.sampling import Sample
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.spaces import Space

SHARE = 0.05  # of the run's time
_STATES = 0.8  # seconds for what is read off the last states
# Seconds for the structure of a step: so many, and so many for each operation of its program. Further parts in units of that. Upper ends of what
# pendulum, heavy top, eight dipoles and a constrained molecule took.
_LEAST, _EACH = 0.4, 1e-4
_PATH, _REVERSAL, _DERIVATIVES, _INTEGRITY = 3.5, 2.2, 0.5, 5.0
_UNCOUNTED = 3e4  # operations, where XLA computes
_FEW = 64  # trajectories whose energies are compared
_SETTLED = 8.0  # relaxation times after which last states count as samples


class Purse:
    """Seconds that are left, and the findings they buy."""

    def __init__(self, seconds: float, unable: str):
        self.seconds, self.left, self.unable = seconds, SHARE * seconds, unable
        self.findings: list[Finding] = []

    def buy(self, cost: float, names: tuple[str, ...], measure: Callable[[], list[Finding]]) -> float:
        """Measure if there is enough left for it, and say so if not; its cost, infinite if it was not measured."""
        if self.unable:
            return self._without(names, self.unable)
        if self.left < cost:
            return self._without(names, f"a twentieth of the run's work, {self.seconds:.1f} s, does not pay for it; bismut verify measures it")
        try:
            self.findings.extend(measure())
        except Exception as problem:  # of the user's functions, at places where the run never was: its results are kept all the same
            self._without(names, f"{type(problem).__name__}: {why(problem)}")
        self.left -= cost
        return cost

    def _without(self, names: tuple[str, ...], reason: str) -> float:
        self.findings.extend(not_measured(name, reason) for name in names)
        return float("inf")


def certify(result: Result, seconds: float | None = None, tolerance: float = 0.02) -> Report:
    """The certificate of a run; of one that took so many seconds, if its work is not to be counted."""
    begun = time.monotonic()
    request = result.request
    scheme = request.scheme
    unable = "a sweep has no single certificate" if request.axes else "the run kept no last states" if result.final is None else ""
    length = _length(request)
    purse = Purse(_work(result, length) if seconds is None else seconds, unable)
    purse.findings += [_failures(result), *_on_space(scheme, result)]
    first = cache(lambda: _first(request))
    if scheme.system.has_lagrangian and bath_of_quickly(scheme):
        if not unable and (hot := heated(scheme, first(), tolerance)) is not None:
            purse.findings.append(hot)
        else:
            purse.buy(_STATES, ("temperature",), lambda: _thermal(scheme, first(), result, tolerance))
    elif kept_by(scheme):
        purse.buy(_STATES, tuple(kept_by(scheme)), lambda: _kept(scheme, request, result))
    if scheme.system.constraints:
        purse.buy(_STATES, ("constraints",), lambda: [_constraints(scheme, result)])
    _structure(purse, scheme, first, request, _LEAST + _EACH * length)
    subject = f"{scheme.title} on {scheme.space}"
    return Report(subject, request.step, judged(purse.findings), ALARM, request.path.seed_number, time.monotonic() - begun)


def _length(request: Any) -> float:
    """Operations in the program of a step, loops counted once; what nobody has counted is long."""
    return float(request.chosen.operations or _UNCOUNTED)


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


def bath_of_quickly(scheme: Scheme) -> bool:
    """Whether there is anything like a bath; what it is, is found out where time allows."""
    return hasattr(scheme, "friction") or scheme.system.dissipation is not None


def _first(request: Any) -> State:
    state = one_start(request.starts[0], request.path, 0, request.batch, request.t0)
    return State(state.q, state.p)


def _failures(result: Result) -> Finding:
    failed, run = len(result.outcome.failures), result.outcome.trajectories
    words = f"trajectories of {run} that failed"
    return Finding("failures", float(failed), 0.0, Verdict.failed if failed else Verdict.passed, words, group="structure")


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


def _thermal(scheme: Scheme, state: State, result: Result, tolerance: float) -> list[Finding]:
    bath, reason = bath_of(scheme, state, result.request.step)
    if bath is None:
        return [not_measured("temperature", reason)] if reason else []
    passed = result.steps_done * result.request.step * bath.rate
    if passed < _SETTLED:
        return [not_measured("temperature", f"the run lasted {passed:.2g} relaxation times of the momenta; {_SETTLED:g} are wanted")]
    seen = _seen(scheme, bath, result.final)
    names = axes_of(scheme.space)[0] if not scheme.system.constraints else ["all"]
    count = seen["kinetic"].shape[1]
    small = Sample(seen, state, count, 0, 0, 0.0)
    found = temperatures(seen["axes"], names, tolerance, ", its last states") + kinetic(small, scheme.system, tolerance)
    return [replace(finding, group=GROUP) for finding in found]


def _seen(scheme: Scheme, bath: Bath, final: Any) -> dict[str, np.ndarray]:
    """Kinetic energy and temperatures of the last states, one look."""
    system = scheme.system
    names, which = axes_of(system.space)

    def one(state: State):
        p, v = moving(system, state)
        whole = p @ v / bath.kT
        parts = jnp.zeros(len(names), p.dtype).at[which].add(p * v) / np.bincount(which) / bath.kT
        return {"kinetic": 0.5 * whole, "axes": (whole / system.freedom)[None] if system.constraints else parts}

    values = evaluate(jax.vmap(one), State(final.q, final.p))
    return {name: np.asarray(value)[None] for name, value in values.items()}


def kept_by(scheme: Scheme) -> list[str]:
    """What a run without a bath can say from its first states and its last."""
    system = scheme.system
    still = not scheme.channels and not scheme.forced and system.moves
    return (["energy"] if still and not system.time_dependent else []) + [f"Casimir {name}" for name in scheme.casimirs]


def _kept(scheme: Scheme, request: Any, result: Result) -> list[Finding]:
    """How much energy changed, a fact, and Casimirs, of the first trajectories."""
    assert result.final is not None
    count = min(_FEW, request.trajectories)
    numbers = np.arange(request.first, request.first + count, dtype=np.uint64)
    begin = many_starts(request.starts[0], request.path, numbers, request.batch, request.t0, np.arange(count))
    ends = [State(*(jax.tree.map(lambda leaf: np.asarray(leaf)[:count], part) for part in (state.q, state.p))) for state in (begin, result.final)]
    system, said = scheme.system, f"relative, largest of {count} trajectories after {result.steps_done} steps"
    functions = ({"energy": system.energy} if "energy" in kept_by(scheme) else {}) | {f"Casimir {name}": f for name, f in scheme.casimirs.items()}
    findings = []
    for law, function in functions.items():
        first, last = (np.asarray(evaluate(jax.vmap(function), state), float) for state in ends)
        change = float(np.nanmax(np.abs(last - first) / np.maximum(np.abs(first), np.finfo(float).tiny)))
        limit = 1e2 * float(np.finfo(system.dtype).eps) * max(result.steps_done, 100)
        findings.append(at_most(law, change, limit, law != "energy" and scheme.promised.casimirs, f"change, {said}"))
    return findings


def _constraints(scheme: Scheme, result: Result) -> Finding:
    system, final = scheme.system, result.final
    assert final is not None
    end = result.request.t0 + result.request.step * result.steps_done
    off = np.asarray(evaluate(jax.vmap(lambda q: system.constraint(q, end)), final.q))
    size = 1 + max(float(np.nanmax(np.abs(leaf))) for leaf in jax.tree.leaves((final.q, final.p)))
    limit = 1e3 * float(np.finfo(system.dtype).eps) * size**2
    return at_most("constraints", float(np.nanmax(np.abs(off))), limit, True, f"largest |g(q)| after {result.steps_done} steps")


def _structure(purse: Purse, scheme: Scheme, first: Callable[[], State], request: Any, unit: float) -> None:
    """One step, then a short path and what it keeps, then engines against each other."""
    path, step, system = request.path, request.step, scheme.system
    unit = purse.buy(unit, ("structure of a step",), lambda: one_step(scheme, first(), path, step, request.t0))
    run = cache(lambda: short_path(scheme, first(), path, step, request.t0))
    seen = ("stays on the space", "constraints")  # in the last states
    walk = lambda: [finding for finding in along(scheme, run(), path, step) if finding.law not in seen]
    walked = purse.buy(_PATH * unit, ("structure along a path",), walk)
    unit = float("inf") if walked == float("inf") else unit
    if system.has_lagrangian and not system.in_phase_space:
        purse.buy(_DERIVATIVES * unit, ("derivatives",), lambda: derivatives(system, neighbours(system, run().states)))
    purse.buy(_REVERSAL * unit, ("own adjoint", "reversible"), lambda: reversal(scheme, run().states, path, step, request.t0))
    purse.buy(_INTEGRITY * unit, ("integrity",), lambda: integrity(scheme, first(), step=step, seed=path.seed_number, t0=request.t0))
