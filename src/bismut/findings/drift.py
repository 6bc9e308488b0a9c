"""Does the energy oscillate, or does it go away?

    [mean of H in the last quarter − mean in the first] / (max − min in the first)        0 if H only oscillates
    spread of H along a path ~ h^r                                                        H̃ = H + h^r H_r + … is kept

without noise, averaged over trajectories from slightly different starts. A symplectic step nearly keeps a modified energy H̃, so H stays within the
oscillation it shows from the beginning, which falls with the step as its order says; any other method loses or gains with every turn.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from bismut.actions import Action
from bismut.ensembles import energy, perform, request, values
from bismut.findings.chance import mean_of, near
from bismut.findings.finding import Finding, Verdict, at_most
from bismut.findings.order import Convergence, slope_of
from bismut.findings.slopes import slope_finding
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama, RungeKutta4
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import project

_TRAJECTORIES, _LOOKS, _APART = 64, 128, 40
_LAW = "energy drift"
_TOLERANCE = 0.25  # of the oscillation
_UNSTABLE = 10.0  # oscillations that a half of all trajectories may be away


def drift(scheme: Scheme, state: State, *, step: float, seed: int) -> list[Finding]:
    """The secular change of H over its oscillation; a claim for symplectic schemes, a fact for others."""
    system = scheme.system
    if system.forced or not system.has_lagrangian or system.time_dependent:
        return []
    still = _without_noise(scheme)
    if still is None:
        return []
    start = _spread(still, state, seed)
    H, times = _energies(still, start, step, seed)
    claimed = scheme.claims.symplectic
    lost = int((~np.isfinite(H).all(-1)).sum())
    if lost:
        words = f"trajectories of {_TRAJECTORIES} that were lost in {_LOOKS * _APART} steps without noise"
        return [at_most(_LAW, float(lost), 0.0, claimed, words)]
    quarter = H.shape[-1] // 4
    first, last = H[..., :quarter], H[..., -quarter:]
    swing, size = first.max(-1) - first.min(-1), 1 + np.abs(first).max(-1)
    words = f"⟨change of H⟩ over its oscillation, {_LOOKS * _APART} steps without noise, {_TRAJECTORIES} trajectories"
    eps = float(np.finfo(system.dtype).eps)
    if np.nanmax(swing / size) < 1e4 * eps:
        rounded = float(np.nanmax(np.abs(last.mean(-1) - first.mean(-1)) / size))
        return [at_most(_LAW, rounded, 1e5 * eps, claimed, "H is kept to round-off; its relative change without noise")]
    change = (last.mean(-1) - first.mean(-1)) / swing
    if claimed and np.median(np.abs(change)) > _UNSTABLE:  # exponential growth has no useful standard error
        return [at_most(_LAW, float(np.median(np.abs(change))), _UNSTABLE, True, f"median; the step is not stable: {words}")]
    found = mean_of(change[None])
    finding = near(_LAW, found, 0.0, _TOLERANCE, words, data={"time": times, "energy": H[:8]})
    if not claimed:
        return [replace(finding, alarm=None, doubt=None, verdict=Verdict.fact, words=f"{words}; not claimed")]
    return [finding, *_modified(scheme, still, start, step, seed, H, 1e4 * eps * size.max())]


def _modified(scheme: Scheme, still: Scheme, start: State, step: float, seed: int, H: np.ndarray, roundoff: float) -> list[Finding]:
    """The order in h of the spread of H along a path, over the same time with half the step."""
    order = scheme.claims.order
    finer, _ = _energies(still, start, step / 2, seed, 2)
    if order is None or not np.isfinite(finer).all():
        return []
    steps, variances = np.array([step, step / 2]), np.stack([H.var(-1), finer.var(-1)])
    spreads = np.sqrt(variances.mean(1))
    if not spreads.min() > roundoff:
        return []
    words = "slope against h of the spread of H along paths without noise"
    return [slope_finding("modified energy", order, words, Convergence(steps, spreads, *slope_of(steps, variances), trajectories=len(H)))]


def _energies(scheme: Scheme, start: State, step: float, seed: int, finer: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """H of (trajectories, looks), and the times."""
    long = {"step": step, "steps": finer * _LOOKS * _APART, "every": finer * _APART, "trajectories": _TRAJECTORIES, "seed": seed}
    looks = perform(request(scheme, start, observe={"energy": values(energy)}, **long), progress=False)
    return np.asarray(looks["energy"].value), np.asarray(looks.times)


def _without_noise(scheme: Scheme) -> Scheme | None:
    if not scheme.channels:
        return scheme
    quiet = scheme.system.without_noise()
    if isinstance(scheme, Action) and type(scheme).on is Action.on and "scalar" not in type(scheme).__dataclass_fields__:
        return scheme.on(quiet)
    return replace(scheme, system=quiet) if isinstance(scheme, EulerMaruyama | ImplicitEulerMaruyama | RungeKutta4) else None


def _spread(scheme: Scheme, state: State, seed: int) -> State:
    """Starts with momenta that differ by some per cent, along the constraints."""
    space, system = scheme.space, scheme.system
    rng = np.random.default_rng(seed)
    flat = np.asarray(evaluate(space.flatten, state.p))
    shaken = flat * (1 + 0.05 * rng.normal(size=(_TRAJECTORIES, len(flat)))) + 0.01 * np.abs(flat).max() * rng.normal(size=(_TRAJECTORIES, len(flat)))
    q = jax.device_put(jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (_TRAJECTORIES, *np.shape(leaf))), state.q))
    along = lambda q, p: project(system, q, p, 0.0)[0] if system.constraints else p
    return State(q, evaluate(jax.vmap(lambda q, x: along(q, space.unflatten(x))), q, shaken.astype(system.dtype)))
