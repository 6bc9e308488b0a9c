"""Equilibrium, when there is a temperature: one ensemble, and all that is read off it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.findings import gibbs
from bismut.findings.bath import Bath, bath_of, heated
from bismut.findings.chance import mean_of
from bismut.findings.distance import divergence
from bismut.findings.equilibrium import GROUP, axes_of, configurational_temperature, kinetic, temperatures, watcher
from bismut.findings.finding import Finding, Verdict, decided, not_measured
from bismut.findings.orbit import orbit_temperature
from bismut.findings.sampling import GROWN, Sample, Unaffordable, sample
from bismut.flows import Langevin
from bismut.mechanics import Scheme, State
from bismut.mechanics.balance import Balance


def equilibrium(
    scheme: Scheme,
    state: State,
    *,
    step: float,
    seed: int,
    budget: float,
    tolerance: float,
    temperature: float | None = None,
    observables: Mapping[str, Callable[[State], Any]] | None = None,
) -> list[Finding]:
    """All findings about equilibrium: none where no temperature is claimed, one that says why where it cannot be measured."""
    if isinstance(scheme.system.dissipation, Balance):
        return orbit_temperature(scheme, state, step=step, seed=seed, budget=budget, tolerance=tolerance, temperature=temperature)
    if (hot := heated(scheme, state, tolerance)) is not None:
        return [hot]
    bath, why = bath_of(scheme, state, step, temperature)
    if bath is None:
        return [replace(not_measured("temperature", why), group=GROUP)] if why else []
    watch = watcher(scheme.system, bath, observables)
    # A third for the scheme, a third for what it is compared with, and the rest for the distance from Gibbs.
    share: dict[str, Any] = {"step": step, "budget": budget / 3, "tolerance": tolerance}
    try:
        found = sample(scheme, state.q, bath, watch, seed=seed, **share)
    except Unaffordable as problem:
        return [replace(not_measured("temperature", str(problem)), group=GROUP)]
    if not found.stable:
        unstable = [_stability(found), *(not_measured(law, "the step is not stable") for law in ("temperature", "⟨U⟩/kT"))]
        return [replace(finding, group=GROUP, seed=seed, seconds=found.seconds) for finding in unstable]
    names = axes_of(scheme.space)[0] if not scheme.system.constraints else ["all"]
    findings = [_stability(found), *temperatures(found.values["axes"], names, tolerance)]
    findings += kinetic(found, scheme.system, tolerance)
    findings.append(configurational_temperature(found, scheme.system, tolerance))
    reference, exact = _averages(scheme, state, bath, watch, observables, found, seed, share)
    findings += exact
    findings = _settled(findings, found)
    findings.append(_finished(found))
    findings.append(divergence(scheme, bath, reference, step=step, seed=seed + 2, budget=budget / 3))
    seconds = found.seconds
    return [replace(finding, group=GROUP, seed=seed, seconds=finding.seconds or seconds) for finding in findings]


def _averages(
    scheme: Scheme,
    state: State,
    bath: Bath,
    watch: Callable,
    observables: Mapping[str, Callable] | None,
    found: Sample,
    seed: int,
    share: dict[str, Any],
) -> tuple[Sample | None, list[Finding]]:
    """Averages against the best that there is; and the sample of the Metropolised scheme, which starts what comes next."""
    system = scheme.system
    functions = {"potential": lambda s: system.potential(s.q) / bath.kT, **{f"own {name}": f for name, f in (observables or {}).items()}}
    if not np.nanstd(found.values["potential"]) > 1e-12 and not observables:
        return None, [not_measured("⟨U⟩/kT", "the potential is constant")]
    exact_scheme = gibbs.metropolised(scheme, bath)
    reference, unaffordable = None, ""
    if exact_scheme is not None:
        try:
            reference = sample(exact_scheme, state.q, bath._replace(rate=max(bath.rate, 0.1)), watch, seed=seed + 1, **share)
        except Unaffordable as problem:
            unaffordable = str(problem)
    known = gibbs.quadrature(system, bath, functions, found.final.q) if not system.constraints else None
    if known is not None:
        return reference, gibbs.averages(found, known, share["tolerance"], "quadrature")
    if reference is not None:
        means = {name: mean_of(reference.values[name]) for name in functions}
        return reference, _settled(gibbs.averages(found, means, share["tolerance"], "the Metropolised scheme"), reference)
    if unaffordable:
        return None, [not_measured("⟨U⟩/kT", f"of the Metropolised scheme: {unaffordable}")]
    return None, [_second(scheme, state, bath, watch, found, seed, share)]


def _second(scheme: Scheme, state: State, bath: Bath, watch: Callable, found: Sample, seed: int, share: dict[str, Any]) -> Finding:
    if not isinstance(scheme, Langevin) or scheme.temperature.value is None:
        return not_measured("⟨U⟩/kT", "neither quadrature nor a Metropolised scheme, and the temperature is not a number that could be changed")
    # Energies at both temperatures must overlap: their spread in kT decides how far apart these may be.
    hotter = bath.kT * (1 + min(0.5, 1 / max(float(np.nanstd(found.values["potential"])), 0.1)))
    warm = eqx.tree_at(lambda s: s.temperature.value, scheme, jnp.asarray(hotter, scheme.system.dtype))
    try:
        other = sample(warm, state.q, bath._replace(kT=hotter), watch, seed=seed + 1, **share)
    except Unaffordable as problem:
        return not_measured("⟨U⟩/kT", f"at a second temperature: {problem}")
    return gibbs.two_temperatures(
        found.values["potential"][-1] * bath.kT, other.values["potential"][-1] * bath.kT, bath.kT, hotter, share["tolerance"]
    )


def _settled(findings: list[Finding], found: Sample) -> list[Finding]:
    """What still relaxes towards equilibrium is no evidence against it, and none for it; what moves away is."""
    if found.settled == 0:
        return findings
    said = "; averages still move, away from kT" if found.settled > 0 else "; not yet in equilibrium: nothing can be said"
    unsure = {"doubt": 1.0} if found.settled > 0 else {"doubt": 1.0, "alarm": 1.0}
    return [replace(finding, words=finding.words + said, **unsure) if finding.alarm is not None else finding for finding in findings]


def _stability(found: Sample) -> Finding:
    """Beyond a largest step, hω = 2 for an oscillator, energies grow without bound, too slowly at times for a failure; errors grow with them."""
    words = f"largest median kinetic energy of {found.trajectories} trajectories at a look, over that at kT; limit {GROWN:g}"
    return Finding("stability", found.grown, GROWN, decided(found.stable), words)


def _finished(found: Sample) -> Finding:
    words = f"trajectories of {found.trajectories} that failed"
    return Finding("failures", float(found.failed), 0.0, Verdict.failed if found.failed else Verdict.passed, words)
