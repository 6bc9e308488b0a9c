"""Equilibrium, where there is a temperature: one ensemble, and all findings from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.findings import gibbs
from bismut.findings.bath import Bath, bath_of, heated
from bismut.findings.checks import Study, check
from bismut.findings.equilibrium import axis_names, configurational_temperature, kinetic_distribution, sampled_values, temperatures
from bismut.findings.finding import Finding, not_measured, verdict_of
from bismut.findings.orbit_temperature import orbit_temperature
from bismut.findings.sampling import GROWN, BudgetExceeded, Sample, sample
from bismut.findings.statistics import mean_of
from bismut.flows import Langevin
from bismut.mechanics import State
from bismut.mechanics.fluctuation_dissipation import BracketDissipation
from bismut.registry import CHECKS

Record = Callable[[State], dict[str, Any]]


@CHECKS.register
@check("equilibrium", ("temperature",), rank=70)
def equilibrium(study: Study) -> list[Finding]:
    """All findings about equilibrium: none where no temperature is claimed, one that says why where it cannot be measured."""
    scheme, system = study.scheme, study.system
    if not study.equilibrium or not study.budget > 0:
        why = "budget=0" if study.equilibrium else "equilibrium=False"
        return [not_measured("temperature", why)] if isinstance(scheme, Langevin) else []
    if isinstance(system.dissipation, BracketDissipation):
        return [orbit_temperature(study)]
    if (rise := heated(scheme, study.state, study.t0, study.tolerance)) is not None:
        return [rise]
    bath, why = bath_of(scheme, study.state, study.step, study.t0, study.temperature)
    if bath is None:
        return [not_measured("temperature", why)] if why else []
    record = sampled_values(study, bath)
    try:
        own = _sample(study, scheme, bath, record, 0)
    except BudgetExceeded as problem:
        return [not_measured("temperature", str(problem))]
    if not own.stable:
        return [_stability(own), *(not_measured(law, "the step is not stable") for law in ("temperature", "⟨U⟩/kT"))]
    reference, averages = _averages(study, bath, record, own)
    findings = [_stability(own), *temperatures(own.values["axes"], axis_names(system), study.tolerance)]
    findings += kinetic_distribution(own.values["kinetic"], system, study.tolerance)
    findings += [configurational_temperature(own, system, study.tolerance), *averages]
    return [
        *_unsettled(findings, own),
        Finding("failures", float(own.failed), 0.0, verdict_of(not own.failed), f"trajectories of {own.trajectories} that failed"),
        gibbs.divergence(scheme, bath, reference, step=study.step, seed=study.seed + 2, budget=study.budget / 3),
    ]


def _sample(study: Study, scheme: Any, bath: Bath, record: Record, number: int) -> Sample:
    """One of three samples: a third of the budget for the scheme, a third for its reference, and the rest for the distance from Gibbs."""
    settings: dict[str, Any] = {"step": study.step, "budget": study.budget / 3, "tolerance": study.tolerance, "t0": study.t0}
    return sample(scheme, study.state.q, bath, record, seed=study.seed + number, **settings)


def _averages(study: Study, bath: Bath, record: Record, own: Sample) -> tuple[Sample | None, list[Finding]]:
    """Averages against the best reference there is; and the sample of the Metropolised scheme, from which the next measurement starts."""
    system, law = study.system, "⟨U⟩/kT"
    functions = potential_and_own(study, bath)
    if not np.nanstd(own.values["potential"]) > 1e-12 and not study.observables:
        return None, [not_measured(law, "the potential is constant")]
    exact_scheme = gibbs.metropolised(study.scheme, bath)
    reference, exceeded = None, ""
    if exact_scheme is not None:
        try:
            reference = _sample(study, exact_scheme, bath._replace(rate=max(bath.rate, 0.1)), record, 1)
        except BudgetExceeded as problem:
            exceeded = str(problem)
    exact = gibbs.quadrature(system, bath, functions, own.final.q, study.t0) if not system.constraints else None
    if exact is not None:
        return reference, gibbs.averages(own, exact, study.tolerance, "quadrature")
    if reference is not None:
        means = {name: mean_of(reference.values[name]) for name in functions}
        return reference, _unsettled(gibbs.averages(own, means, study.tolerance, "the Metropolised scheme"), reference)
    if exceeded:
        return None, [not_measured(law, f"of the Metropolised scheme: {exceeded}")]
    return None, [_second_temperature(study, bath, record, own)]


def potential_and_own(study: Study, bath: Bath) -> dict[str, Callable[[State], Any]]:
    """The observables whose averages are compared: U/kT and those of the user."""
    potential = lambda state: study.system.potential(state.q, study.t0) / bath.kT
    return {"potential": potential, **{f"own {name}": function for name, function in study.observables.items()}}


def _second_temperature(study: Study, bath: Bath, record: Record, own: Sample) -> Finding:
    scheme, law = study.scheme, "⟨U⟩/kT"
    if not isinstance(scheme, Langevin) or scheme.temperature.value is None:
        return not_measured(law, "neither quadrature nor a Metropolised scheme, and the temperature is not a number that could be changed")
    # Energies at both temperatures must overlap: their spread in kT decides how far apart these may be.
    hotter = bath.kT * (1 + min(0.5, 1 / max(float(np.nanstd(own.values["potential"])), 0.1)))
    warm = eqx.tree_at(lambda s: s.temperature.value, scheme, jnp.asarray(hotter, scheme.system.dtype))
    try:
        other = _sample(study, warm, bath._replace(kT=hotter), record, 1)
    except BudgetExceeded as problem:
        return not_measured(law, f"at a second temperature: {problem}")
    cold, hot = (one.values["potential"][-1] * bath.kT for one in (own, other))
    return gibbs.two_temperatures(cold, hot, bath.kT, hotter, study.tolerance)


def _unsettled(findings: list[Finding], own: Sample) -> list[Finding]:
    """What still relaxes towards equilibrium is no evidence against it, and none for it; what moves away is."""
    if own.settled == 0:
        return findings
    text = "; averages still move, away from kT" if own.settled > 0 else "; not yet in equilibrium: nothing can be said"
    probabilities = {"doubt": 1.0} if own.settled > 0 else {"doubt": 1.0, "alarm": 1.0}
    return [replace(finding, how=finding.how + text, **probabilities) if finding.alarm is not None else finding for finding in findings]


def _stability(own: Sample) -> Finding:
    """Beyond a largest step, hω = 2 for an oscillator, energies grow without bound, too slowly at times for a failure; errors grow with them."""
    how = f"largest median kinetic energy of {own.trajectories} trajectories at a look, over that at kT; limit {GROWN:g}"
    return Finding("stability", own.grown, GROWN, verdict_of(own.stable), how)
