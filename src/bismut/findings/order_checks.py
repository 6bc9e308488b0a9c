"""Accuracy: the orders that a scheme claims, measured as slopes, and the drift of its energy.

    log error = r log h + const                                                           claimed r kept if the slope is within ¼ of r
    [mean of H in the last quarter − mean in the first] / (max − min in the first)        0 if H only oscillates
    spread of H along a path ~ h^r                                                        H̃ = H + h^r H_r + … is kept

A slope below r − ¼ is a failure. One above r + ¼ is none: linear systems and special starts converge faster than a scheme does, and so do errors in
which noise hardly shows. But it is no evidence for the claim either, and is shown as a fact.

Energies are measured without noise, averaged over trajectories from slightly different starts. A symplectic step nearly keeps a modified energy H̃,
so H stays within the oscillation it shows from the beginning, which falls with the step as its order says; other methods lose or gain with every
period.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import scipy

from bismut.actions import Action, Verlet
from bismut.ensembles import complete_run, energy, request, values
from bismut.findings.checks import Study, check
from bismut.findings.convergence_study import FINEST, MOST_CHANNELS, Convergence, convergence, copies, slope_of, trajectories_for, weak_convergence
from bismut.findings.finding import Finding, Verdict, at_most, not_measured, verdict_of
from bismut.findings.statistics import close_to, mean_of
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama, Langevin, RungeKutta4
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import project
from bismut.programs.evaluation import evaluate
from bismut.registry import CHECKS

# Trajectories are added until the standard error of a slope is a fifth of what a claim may be off by, or so many rounds of them were made.
_SHARP, _ROUNDS = 0.05, 16
_SURE = 3.5  # standard errors
_OFF = 0.25  # by which a slope may be off what is claimed

_TRAJECTORIES, _LOOKS, _EVERY = 64, 128, 40  # of the energy drift
_DRIFT = 0.25  # of the oscillation, that a mean energy may move
_UNSTABLE = 10.0  # oscillations that half of all trajectories may be away


@CHECKS.register
@check("accuracy", ("orders",), rank=50, applies=lambda scheme: scheme.claims.order is not None)
def orders(study: Study) -> list[Finding]:
    """The slopes of errors that a scheme claims, each measured or with the reason why not."""
    scheme = study.scheme
    if not scheme.system.moves:
        return [not_measured("orders", "without a Lagrangian no other method can be the reference")]
    if not study.order:
        return [not_measured("orders", "order=False")]
    # A scheme cannot have noise and no noise at once: with all normals zero, a bath is plain friction.
    system, claims = scheme.damped if isinstance(scheme, Langevin) else scheme.system, scheme.effective_claims
    reference = Verlet(system) if system.constraints else RungeKutta4(system)
    # The same shapes for both measurements, so that each scheme is compiled once.
    common = {"t0": study.t0, "time": 16 * study.step, "levels": (16, 32, 64), "finest": FINEST, "trajectories": trajectories_for(scheme)}
    plain = convergence(scheme, reference, study.state, noise=0.0, seed=study.seed, **common)
    findings = [_slope("order", claims.order, "slope without noise", plain, study.state), limit_finding(plain, claims.order, study.state)]
    if scheme.channels and claims.strong_order is not None:
        strong = convergence(scheme, reference, study.state, seed=study.seed, **common, error=_SHARP, rounds=_ROUNDS)
        how = f"slope on one Brownian path, {strong.trajectories} trajectories"
        findings.append(_slope("strong order", claims.strong_order, how, strong, study.state))
    if scheme.channels and claims.weak_order is not None:
        findings.append(weak_order(study))
    return findings


def weak_order(study: Study) -> Finding:
    """The slope of averages."""
    scheme, state, step = study.scheme, study.state, study.step
    if scheme.channels > MOST_CHANNELS:
        return not_measured("weak order", f"{scheme.channels} normals a step; the quadrature takes up to {MOST_CHANNELS}")
    claimed = scheme.claims.weak_order
    measured = weak_convergence(scheme, state, (step, step / 2, step / 4), study.t0)
    # Terms of two orders may nearly cancel at large steps. A slope that is too small there is measured again at smaller ones, well above round-off.
    for finer in (step / 8, step / 64):
        if claimed is None or measured.order > claimed - _OFF or not measured.errors.min() > 1e3 * _roundoff(state):
            break
        measured = weak_convergence(scheme, state, (finer, finer / 2, finer / 4), study.t0)
    if not np.isfinite(measured.errors).all():
        return not_measured("weak order", "a step with increments of √3 standard deviations was not solved")
    small = f", steps from {measured.steps[0]:g}" if measured.steps[0] < step else ""
    return _slope("weak order", claimed, f"slope of averages, by quadrature over the noise{small}", measured, state)


def limit_finding(measured: Convergence, order: float | int | None, state: State) -> Finding:
    """The error against another method, over the one that the scheme's own differences predict: 1 where both have the same limit.

    A slope alone does not show it: a scheme may converge, at its order, to something else.
    """
    assert measured.own is not None
    predicted, roundoff = measured.own[-1] / (2.0 ** (order or 1) - 1), _roundoff(state)
    if measured.errors.min() < roundoff or predicted <= roundoff:
        return Finding("right limit", float(measured.errors[-1]), roundoff, Verdict.passed, "error at the smallest step; round-off")
    ratio = float(measured.errors[-1] / predicted)
    return at_most("right limit", ratio, 3.0, True, "error against another method, over what the scheme's own differences foretell")


def _roundoff(state: State) -> float:
    size = 1 + max(float(np.abs(np.asarray(leaf)).max()) for leaf in jax.tree.leaves(state))
    return 1e4 * float(np.finfo(jax.tree.leaves(state.p)[0].dtype).eps) * size


def _slope(law: str, claimed: float | int | None, how: str, measured: Convergence, state: State) -> Finding:
    """Errors at round-off have no slope: a scheme that is exact, or more accurate than can be measured, keeps any claim."""
    roundoff = _roundoff(state)
    if measured.errors.min() < roundoff:
        verdict = verdict_of(None if claimed is None else True)
        how = "error at the largest step; too close to round-off for a slope"
        return Finding(law, float(measured.errors.max()), roundoff, verdict, how, data=_data(measured, claimed))
    return slope_finding(law, claimed, how, measured)


def slope_finding(law: str, claimed: float | int | None, how: str, measured: Convergence) -> Finding:
    """The claim that a slope is what is claimed, within ¼; a fact where it is beyond that, with its error."""
    data = _data(measured, claimed)
    if claimed is None:
        return Finding(law, measured.order, -np.inf, Verdict.fact, f"{how}; not claimed", measured.error, data=data)
    if measured.order - _SURE * measured.error > claimed + _OFF:
        how = f"{how}; higher than the {claimed:g} that is claimed: this system, start or step does not show it"
        return Finding(law, measured.order, claimed + _OFF, Verdict.fact, how, measured.error, data=data)
    limit, how = claimed - _OFF, f"{how}; claimed {claimed:g}"
    if not measured.error > 1e-6:
        return Finding(law, measured.order, limit, verdict_of(measured.order > limit), how, data=data)
    n = measured.trajectories
    beyond = lambda x: float(scipy.special.stdtr(n - 1, x))
    alarm, doubt = beyond((measured.order - limit) / measured.error), beyond((limit - measured.order) / measured.error)
    return Finding(law, measured.order, limit, Verdict.undecided, how, measured.error, alarm=alarm, doubt=doubt, samples=float(n), data=data)


def _data(measured: Convergence, claimed: float | int | None) -> dict:
    return {"steps": measured.steps, "errors": measured.errors, "order": claimed}


# Energy drift.


def _conservative(scheme: Scheme) -> bool:
    system = scheme.system
    return system.has_lagrangian and not system.forced and not system.time_dependent


@CHECKS.register
@check("accuracy", ("energy drift",), rank=51, applies=_conservative)
def drift(study: Study) -> list[Finding]:
    """The secular change of H over its oscillation; a claim for symplectic schemes, a fact for others."""
    quiet, law = _without_noise(study.scheme), "energy drift"
    if quiet is None or not study.order:
        return []
    starts = _spread_starts(quiet, study)
    H, times = _energies(quiet, starts, study, 1)
    claimed, eps = study.scheme.claims.symplectic, study.eps
    lost = int((~np.isfinite(H).all(-1)).sum())
    if lost:
        how = f"trajectories of {_TRAJECTORIES} that were lost in {_LOOKS * _EVERY} steps without noise"
        return [at_most(law, float(lost), 0.0, claimed, how)]
    quarter = H.shape[-1] // 4
    first, last = H[..., :quarter], H[..., -quarter:]
    swing, size = first.max(-1) - first.min(-1), 1 + np.abs(first).max(-1)
    how = f"⟨change of H⟩ over its oscillation, {_LOOKS * _EVERY} steps without noise, {_TRAJECTORIES} trajectories"
    if np.nanmax(swing / size) < 1e4 * eps:
        rounded = float(np.nanmax(np.abs(last.mean(-1) - first.mean(-1)) / size))
        return [at_most(law, rounded, 1e5 * eps, claimed, "H is kept to round-off; its relative change without noise")]
    change = (last.mean(-1) - first.mean(-1)) / swing
    if claimed and np.median(np.abs(change)) > _UNSTABLE:  # exponential growth has no useful standard error
        return [at_most(law, float(np.median(np.abs(change))), _UNSTABLE, True, f"median; the step is not stable: {how}")]
    finding = close_to(law, mean_of(change[None]), 0.0, _DRIFT, how, data={"time": times, "energy": H[:8]})
    if not claimed:
        return [replace(finding, alarm=None, doubt=None, verdict=Verdict.fact, how=f"{how}; not claimed")]
    return [finding, *_modified_energy(study, quiet, starts, H, 1e4 * eps * size.max())]


def _modified_energy(study: Study, quiet: Scheme, starts: State, H: np.ndarray, roundoff: float) -> list[Finding]:
    """The order in h of the spread of H along a path, over the same time with half the step."""
    order = study.scheme.claims.order
    finer, _ = _energies(quiet, starts, study, 2)
    if order is None or not np.isfinite(finer).all():
        return []
    steps, variances = np.array([study.step, study.step / 2]), np.stack([H.var(-1), finer.var(-1)])
    spreads = np.sqrt(variances.mean(1))
    if not spreads.min() > roundoff:
        return []
    how = "slope against h of the spread of H along paths without noise"
    return [slope_finding("modified energy", order, how, Convergence(steps, spreads, *slope_of(steps, variances), trajectories=len(H)))]


def _energies(scheme: Scheme, starts: State, study: Study, finer: int) -> tuple[np.ndarray, np.ndarray]:
    """H of (trajectories, looks), and the times, with the step divided by a number."""
    course = {"step": study.step / finer, "steps": finer * _LOOKS * _EVERY, "every": finer * _EVERY, "trajectories": _TRAJECTORIES}
    result = complete_run(request(scheme, starts, seed=study.seed, t0=study.t0, observe={"energy": values(energy)}, **course))
    return np.asarray(result["energy"].value), np.asarray(result.times)


def _without_noise(scheme: Scheme) -> Scheme | None:
    if not scheme.channels:
        return scheme
    quiet = scheme.system.without_noise()
    if isinstance(scheme, Action) and type(scheme).on is Action.on and "scalar" not in type(scheme).__dataclass_fields__:
        return scheme.on(quiet)
    return replace(scheme, system=quiet) if isinstance(scheme, EulerMaruyama | ImplicitEulerMaruyama | RungeKutta4) else None


def _spread_starts(scheme: Scheme, study: Study) -> State:
    """Starts with momenta that differ by some per cent, tangent to the constraints."""
    space, system, n = scheme.space, scheme.system, _TRAJECTORIES
    rng = np.random.default_rng(study.seed)
    flat = np.asarray(evaluate(space.flatten, study.state.p))
    shaken = flat * (1 + 0.05 * rng.normal(size=(n, len(flat)))) + 0.01 * np.abs(flat).max() * rng.normal(size=(n, len(flat)))
    q = jax.device_put(copies(study.state, n).q)
    tangent = lambda q, p: project(system, q, p, study.t0)[0] if system.constraints else p
    return State(q, evaluate(jax.vmap(lambda q, x: tangent(q, space.unflatten(x))), q, shaken.astype(system.dtype)))
