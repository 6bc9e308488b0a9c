"""The orders that a scheme claims, measured as slopes.

log error = r log h + const,       claimed r kept if the measured slope is within ¼ of r

A slope below r − ¼ is a failure. One above r + ¼ is none: linear systems and special starts converge faster than a scheme does, and so do errors in
which noise hardly shows. But it is no evidence for the claim either, and is shown as a fact.
"""

from __future__ import annotations

import jax
import numpy as np
import scipy

from bismut.actions import Verlet
from bismut.findings.finding import Finding, Verdict, at_most, decided, not_measured
from bismut.findings.order import FINEST, Convergence, convergence, trajectories_for
from bismut.findings.weak import MOST_CHANNELS, weak_convergence
from bismut.flows import Langevin, RungeKutta4
from bismut.mechanics import Scheme, State

# Trajectories are added until the standard error of a slope is a fifth of what a claim may be off by, or so many rounds of them were made.
_SHARP, _ROUNDS = 0.05, 16
_SURE = 3.5  # standard errors
_OFF = 0.25  # by which a slope may be off what is claimed


def orders(scheme: Scheme, state: State, step: float, seed: int, *, wanted: bool = True) -> list[Finding]:
    """The slopes of errors that a scheme claims, each measured or with the reason why not."""
    claims = scheme.claims
    if claims.order is None:
        return []
    if not scheme.system.moves:
        return [not_measured("orders", "without a Lagrangian no other method can be the reference")]
    return _measured(scheme, state, step, seed) if wanted else [not_measured("orders", "order=False")]


def _measured(scheme: Scheme, state: State, step: float, seed: int) -> list[Finding]:
    # A scheme cannot have noise and no noise at once: with all normals zero, a bath is plain friction.
    system, claims = scheme.damped if isinstance(scheme, Langevin) else scheme.system, scheme.promised
    reference = Verlet(system) if system.constraints else RungeKutta4(system)
    # The same shapes for both measurements, so that each scheme is compiled once.
    common = {"time": 16 * step, "levels": (16, 32, 64), "seed": seed, "finest": FINEST, "trajectories": trajectories_for(scheme)}
    plain = convergence(scheme, reference, state, noise=0.0, **common)
    found = [_slope("order", claims.order, "slope without noise", plain, state), _limit(plain, claims.order, state)]
    if scheme.channels and claims.strong_order is not None:
        strong = convergence(scheme, reference, state, **common, error=_SHARP, rounds=_ROUNDS)
        found.append(_slope("strong order", claims.strong_order, f"slope on one Brownian path, {strong.trajectories} trajectories", strong, state))
    if scheme.channels and claims.weak_order is not None:
        found.append(_weak(scheme, state, step))
    return found


def _weak(scheme: Scheme, state: State, step: float) -> Finding:
    if scheme.channels > MOST_CHANNELS:
        return not_measured("weak order", f"{scheme.channels} normals a step; the quadrature takes up to {MOST_CHANNELS}")
    claimed = scheme.claims.weak_order
    measured = weak_convergence(scheme, state, (step, step / 2, step / 4))
    # Terms of two orders may nearly cancel at large steps. A slope that is too small there is measured again at smaller ones, well above round-off.
    for finer in (step / 8, step / 64):
        if claimed is None or measured.order > claimed - _OFF or not measured.errors.min() > 1e3 * _roundoff(state):
            break
        measured = weak_convergence(scheme, state, (finer, finer / 2, finer / 4))
    if not np.isfinite(measured.errors).all():
        return not_measured("weak order", "a step with increments of √3 standard deviations was not solved")
    small = f", steps from {measured.steps[0]:g}" if measured.steps[0] < step else ""
    return _slope("weak order", claimed, f"slope of averages, by quadrature over the noise{small}", measured, state)


def _limit(measured: Convergence, order: float | int | None, state: State) -> Finding:
    """The error against another method, over the one that the scheme's own differences foretell: 1 where both have the same limit.

    A slope alone does not tell: a scheme may converge, at its order, to something else.
    """
    assert measured.own is not None
    foretold = measured.own[-1] / (2.0 ** (order or 1) - 1)
    ratio = float(measured.errors[-1] / foretold) if foretold > 0 else float("nan")
    if measured.errors.min() < _roundoff(state) or not foretold > _roundoff(state):
        return Finding("right limit", float(measured.errors[-1]), _roundoff(state), decided(True), "error at the smallest step; round-off")
    return at_most("right limit", ratio, 3.0, True, "error against another method, over what the scheme's own differences foretell")


def _roundoff(state: State) -> float:
    size = 1 + max(float(np.abs(np.asarray(leaf)).max()) for leaf in jax.tree.leaves(state))
    return 1e4 * float(np.finfo(jax.tree.leaves(state.p)[0].dtype).eps) * size


def _slope(law: str, claimed: float | int | None, words: str, measured: Convergence, state: State) -> Finding:
    """Errors at round-off have no slope: a scheme that is exact, or more accurate than can be seen, keeps any claim."""
    roundoff = _roundoff(state)
    if measured.errors.min() < roundoff:
        held = decided(None if claimed is None else True)
        words = "error at the largest step; too close to round-off for a slope"
        return Finding(law, float(measured.errors.max()), roundoff, held, words, data=_data(measured, claimed))
    return slope_finding(law, claimed, words, measured)


def slope_finding(law: str, claimed: float | int | None, words: str, measured: Convergence) -> Finding:
    """The claim that a slope is what is claimed, within ¼; a fact where it is beyond that, with its error."""
    data = _data(measured, claimed)
    if claimed is None:
        return Finding(law, measured.order, -np.inf, decided(None), f"{words}; not claimed", measured.error, data=data)
    if measured.order - _SURE * measured.error > claimed + _OFF:
        words = f"{words}; higher than the {claimed:g} that is claimed: this system, start or step does not show it"
        return Finding(law, measured.order, claimed + _OFF, decided(None), words, measured.error, data=data)
    limit, words = claimed - _OFF, f"{words}; claimed {claimed:g}"
    if not measured.error > 1e-6:
        return Finding(law, measured.order, limit, decided(measured.order > limit), words, data=data)
    n = measured.trajectories
    beyond = lambda x: float(scipy.special.stdtr(n - 1, x))
    alarm, doubt = beyond((measured.order - limit) / measured.error), beyond((limit - measured.order) / measured.error)
    return Finding(law, measured.order, limit, Verdict.undecided, words, measured.error, alarm=alarm, doubt=doubt, samples=float(n), data=data)


def _data(measured: Convergence, claimed: float | int | None) -> dict:
    return {"steps": measured.steps, "errors": measured.errors, "order": claimed}
