"""How far from Gibbs are the configurations that a splitting samples?

    D(ρ_q ‖ π_q) ≈ ½ (⟨w⟩_π − ⟨w⟩_ω),        w = shadow work / kT of a long enough run

Shadow work is what a step does to the energy beside heat and work: the ledger's `integrator_error`. π starts in equilibrium, ω with configurations of
the steady state and Maxwell momenta (Fass et al. 2018; with the steady state itself in place of ω it is the divergence in phase space of Sivak,
Chodera & Crooks 2014). Both runs end in the same steady state, so their difference does not grow with their length. Right to second order in the
distance: on the oscillator it is ½[D(ρ‖π) + D(π‖ρ)] exactly, which differs from D(ρ‖π) by a factor 1 ± h²ω²/12.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import perform, request
from bismut.findings.bath import Bath
from bismut.findings.chance import Mean, mean_of
from bismut.findings.effort import seconds_for, step_operations
from bismut.findings.finding import Finding, Verdict, not_measured
from bismut.findings.sampling import Sample
from bismut.flows import Langevin, Metropolised
from bismut.mechanics import Scheme, State, blank_ledger
from bismut.noise import Wiener

_LAW = "distance from Gibbs"
_SMALL, _ROUNDS = 5e-4, 16  # nats: averages of what is bounded by 1 are off by two hundredths then; and rounds at most


_TOO_MUCH = 20  # times the budget that a round may cost


class Divergence(NamedTuple):
    """D of configurations, and in phase space, in nats."""

    configurations: Mean
    phase_space: Mean


def divergence(scheme: Scheme, bath: Bath, exact: Sample | None, *, step: float, seed: int, budget: float) -> Finding:
    """The divergence of configurations as a finding; a fact, because no scheme claims a number for it."""
    if not isinstance(scheme, Langevin):
        return not_measured(_LAW, "shadow work is known for splittings")
    if isinstance(scheme.splitting, Metropolised):
        return not_measured(_LAW, "a Metropolised step is exact")
    if exact is None:
        return not_measured(_LAW, "equilibrium to start from needs the Metropolised scheme or a potential that varies")
    price = _price(scheme, bath, exact.final, step)
    if price > _TOO_MUCH * budget:
        return not_measured(_LAW, f"it would take about {price:.0f} s; give budget=")
    begun = time.monotonic()
    found = distances(scheme, bath, exact.final, step=step, seed=seed, budget=budget)
    one, whole = found
    words = f"nats, D of configurations from shadow work, {one.trajectories} trajectories; in phase space {whole.value:.2g} ± {whole.error:.1g}"
    return Finding(_LAW, one.value, np.inf, Verdict.fact, words, one.error, samples=one.samples, seconds=time.monotonic() - begun)


def distances(scheme: Langevin, bath: Bath, settled: State, *, step: float, seed: int, budget: float = 5.0, rounds: int | None = None) -> Divergence:
    """Both divergences, starting from states in equilibrium. Rounds of as many trajectories are added until errors are a tenth, or
    small, or the work is done that was paid for; or as many as asked for."""
    steps, count = _steps(bath, step), len(jax.tree.leaves(settled.p)[0])
    price = _price(scheme, bath, settled, step)
    found, gained = None, []
    for number in range(rounds or int(np.clip(budget / price, 1, _ROUNDS))):
        # Each round has momenta and noise of its own; configurations are those of the sample.
        own = seed + 3 * number
        first, steady = _shadow(scheme, scheme.start(settled.q, temperature=bath.kT, ledger=True), count, steps, step, own, bath)
        second, _ = _shadow(scheme, scheme.start(steady.q, temperature=bath.kT, ledger=True), count, steps, step, own + 1, bath)
        third, _ = _shadow(scheme, State(steady.q, steady.p, blank_ledger(scheme.system.dtype, (count,))), count, steps, step, own + 2, bath)
        gained.append((0.5 * (first - second), 0.5 * (first - third)))
        found = Divergence(*(mean_of(np.mean(part, 0)[None]) for part in zip(*gained, strict=True)))
        good = all(one.error <= max(0.1 * abs(one.value), _SMALL) for one in found)
        if rounds is None and good:
            break
    assert found is not None
    return found


def _steps(bath: Bath, step: float) -> int:
    """Six relaxation times."""
    return int(np.clip(np.ceil(6 / (bath.rate * step)), 10, 2000))


def _price(scheme: Langevin, bath: Bath, settled: State, step: float) -> float:
    """Seconds of work in a round."""
    one = jax.tree.map(lambda leaf: leaf[0], State(settled.q, settled.p))
    return seconds_for(3 * len(jax.tree.leaves(settled.p)[0]) * _steps(bath, step) * step_operations(scheme, one))


def _shadow(scheme: Langevin, start: Any, count: int, steps: int, step: float, seed: int, bath: Bath) -> tuple[np.ndarray, State]:
    """Shadow work in kT of each trajectory, and where it ended."""
    result = perform(request(scheme, start, step=step, steps=steps, every=steps, trajectories=count, path=Wiener(seed)), progress=False)
    assert result.final is not None
    assert result.final.ledger is not None
    return np.asarray(result.final.ledger.error) / bath.kT, State(
        jax.tree.map(jnp.asarray, result.final.q), jax.tree.map(jnp.asarray, result.final.p)
    )
