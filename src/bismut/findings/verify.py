"""What a scheme claims, measured: `verify` gives findings, and a finding can fail.

    structure     one step and a short path            consistency   what the user wrote by hand, against itself
    accuracy      orders, energy drift                 integrity     engines and compilers, against each other
    equilibrium   temperatures, averages, distance from Gibbs, where there is a bath

Each finding names a law, what was claimed, what was measured and the limit that separates the two. Claims that a scheme does not make are measured
all the same and shown as facts: that Euler–Maruyama is not symplectic is no failure of Euler–Maruyama.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bismut.arguments import checked
from bismut.ensembles.checks import RUN
from bismut.ensembles.starts import one_start, start_at
from bismut.errors import BismutError, DomainError
from bismut.findings.along import along, one_step, short_path
from bismut.findings.chance import ALARM, judged
from bismut.findings.consistency import curl, derivatives, right_action
from bismut.findings.drift import drift
from bismut.findings.finding import Finding, not_measured
from bismut.findings.forward import reason, without_forward
from bismut.findings.integrity import integrity as measure_integrity
from bismut.findings.judging import equilibrium as measure_equilibrium
from bismut.findings.noether import neighbours
from bismut.findings.report import Report
from bismut.findings.reversal import reversal
from bismut.findings.slopes import orders
from bismut.flows import Langevin
from bismut.mechanics import Scheme, State
from bismut.mechanics.heat import Drag
from bismut.noise import Wiener
from bismut.process import check_process

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BUDGET = 10.0  # seconds of work for sampling


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
    seconds = seconds_of(budget)
    begun = time.monotonic()
    path = Wiener(seed)
    start, batch = start_at(scheme, start, 0.0, "Measurements are made from t = 0: make the start without t.")
    state = one_start(start, path, 0, batch, 0.0)
    bare = State(state.q, state.p)
    scheme.check_step(step)
    system = scheme.system
    findings: list[Finding] = []

    def add(group: str, laws: tuple[str, ...], measure: Callable[[], list[Finding]]) -> None:
        clock = time.monotonic()
        try:
            found = measure()
        except (BismutError, TypeError, NotImplementedError) as problem:
            if reason(problem) is None:
                raise
            # What was compiled before does not know whose function it is: the system does.
            why = without_forward(system) or str(reason(problem))
            found = [not_measured(law, why) for law in laws]
        spent = time.monotonic() - clock
        findings.extend(replace(one, group=group, seed=seed, seconds=round(spent if one.seconds is None else one.seconds, 3)) for one in found)

    add("structure", ("Poisson map",) if system.reduced else ("symplectic defect", "phase volume"), lambda: one_step(scheme, state, path, step))
    run = short_path(scheme, state, path, step)
    near = neighbours(system, run.states) if system.has_lagrangian and not system.in_phase_space else None
    add("structure", ("along a path",), lambda: along(scheme, run, path, step, near))
    add("structure", ("own adjoint", "reversible"), lambda: reversal(scheme, run.states, path, step))
    if near is not None:
        add("consistency", ("derivatives of L",), lambda: derivatives(system, near))
        add("consistency", ("S_d",), lambda: right_action(scheme, near, step))
        bathed = isinstance(scheme, Langevin) or isinstance(system.dissipation, Drag)
        if system._force is not None and bathed and equilibrium:
            add("consistency", ("force without a curl",), lambda: [curl(system, near)])
    add("accuracy", ("orders",), lambda: orders(scheme, state, step, seed, wanted=order))
    add("accuracy", ("energy drift",), lambda: drift(scheme, bare, step=step, seed=seed) if order else [])
    if order if integrity is None else integrity:
        add("integrity", ("engines agree",), lambda: measure_integrity(scheme, bare, step=step, seed=seed))
    if equilibrium and seconds > 0:
        settings = {"tolerance": tolerance, "temperature": temperature, "observables": observables}
        add("equilibrium", ("temperature",), lambda: measure_equilibrium(scheme, bare, step=step, seed=seed, budget=seconds, **settings))
    elif isinstance(scheme, Langevin):
        findings.append(replace(not_measured("temperature", "equilibrium=False" if not equilibrium else "budget=0"), group="equilibrium"))
    return Report(scheme.title, float(step), judged(findings, alarm), alarm, seed, time.monotonic() - begun)


def seconds_of(budget: int | float | str) -> float:
    """30, "30s", "2m" or "1h" in seconds."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|min|h|)\s*", str(budget))
    try:
        value = float(budget) if not isinstance(budget, str) else float(found.group(1)) * _UNITS[found.group(2)] if found else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise DomainError(f'budget must be seconds such as 30, or "30s", "2m", "1h", got {budget!r}.')
    return value
