"""Structure: what one step and a short path keep.

TᵀΩT = Ω,     det T = 1 or e^{−h tr ΓM⁻¹},     J unchanged,     g(q) = 0,     d𝔊 = 0
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions import Action
from bismut.ensembles import Trajectory, trajectory
from bismut.findings.finding import Finding, at_most, decided, not_measured
from bismut.findings.noether import Near, noether
from bismut.findings.poisson import bracket_kept, invariants
from bismut.findings.structure import LARGEST, defect_along, step_structure
from bismut.flows import Langevin, Metropolised, action_differential
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import jacobian, rate
from bismut.noise import Wiener, counter
from bismut.spaces import Space

_STEPS = 200  # of the trajectory along which conservation is measured


def one_step(scheme: Scheme, state: State, path: Wiener, step: float, t0: float = 0.0) -> list[Finding]:
    """Symplectic form and phase volume; after reduction the bracket."""
    system, claims = scheme.system, scheme.promised
    if system.reduced:
        return [bracket_kept(scheme, state, path, step)]
    h = jnp.asarray(step, system.dtype)
    # Three times the usual increment, so that a defect proportional to the noise is not missed.
    increment = lambda: 3 * path.increment(counter(0), counter(0), scheme.channels, h, system.dtype)
    claimed, eps = claims.symplectic and not scheme.forced, 5e4 * float(np.finfo(system.dtype).eps)
    if scheme.space.dim > LARGEST:
        defect, scale = map(float, evaluate(lambda state: defect_along(scheme, state, h, increment(), t0), state))
        words = "max |Ω(Tu, Tv) − Ω(u, v)| of one step, random directions"
        many = f"{scheme.space.dim} degrees of freedom; up to {LARGEST} are tried. Fewer bodies of the same kind show it"
        return [at_most("symplectic defect", defect, eps * scale, claimed, words), not_measured("phase volume", many)]
    defect, volume, scale = map(float, evaluate(lambda state: step_structure(scheme, state, h, increment(), t0), state))
    limit = eps * scale
    return [at_most("symplectic defect", defect, limit, claimed, "max |TᵀΩT − Ω| of one step"), _volume(scheme, volume, step, limit, claimed)]


def short_path(scheme: Scheme, state: State, path: Wiener, step: float, t0: float = 0.0) -> Trajectory:
    return trajectory(scheme, state, step=step, steps=_STEPS, path=path, t0=t0)


def along(scheme: Scheme, run: Trajectory, path: Wiener, step: float, near: Near | None = None) -> list[Finding]:
    """Momentum maps, constraints, group membership, stationarity and the solve, along a path, near which there are points to judge symmetries at."""
    system = scheme.system
    eps = float(np.finfo(system.dtype).eps)
    findings = _momentum_maps(scheme, run.states, scheme.promised.momentum_maps and (system.forced or not scheme.forced), near)
    findings += casimirs(scheme, run.states) + invariants(scheme, run.states)
    if system.constraints:
        findings += _constraints(scheme, run, eps)
    if type(system.space).violation is not Space.violation and np.isfinite(np.asarray(jax.tree.leaves(run.states.p)[0])).all():
        findings.append(_on_the_space(system.space, run.states.q, eps))
    if isinstance(scheme, Action):
        findings.append(_stationary(scheme, run, path, step, eps))
    solved = bool(np.asarray(run.solve.converged).all())
    worst, most = float(np.asarray(run.solve.residual).max()), int(np.asarray(run.solve.iterations).max())
    findings.append(Finding("solve", worst, np.inf, decided(solved), f"largest residual of {_STEPS} steps, at most {most} iterations each"))
    return findings


def largest(tree: Any) -> float:
    return max(float(np.abs(np.asarray(leaf)).max()) for leaf in jax.tree.leaves(tree))


def _on_the_space(space: Space, q: Any, eps: float) -> Finding:
    after = lambda k: float(space.violation(jax.tree.map(lambda leaf: np.asarray(leaf)[k], q)))
    growth = f"; {after(_STEPS // 2):.1e} after {_STEPS // 2}, in single precision" if eps > 1e-10 else ""
    return at_most("stays on the space", after(-1), 1e2 * _STEPS * eps, True, f"violation after {_STEPS} steps{growth}")


def _volume(scheme: Scheme, volume: float, step: float, limit: float, claimed: bool) -> Finding:
    """One for a symplectic step; e^{−h tr ΓM⁻¹} for a bath whose friction is the same everywhere."""
    if isinstance(scheme, Langevin) and not isinstance(scheme.splitting, Metropolised) and scheme.schedule is None:
        shrinking = scheme.friction.contraction(scheme.system)
        if shrinking is not None:
            words = f"|det − e^(−h tr ΓM⁻¹)| of one step (factor {volume:.12g})"
            return at_most("phase volume", abs(volume - float(np.exp(-step * shrinking))), limit, not scheme.moving.forced, words)
    return at_most("phase volume", abs(volume - 1), limit, claimed, f"|det − 1| of one step (factor {volume:.12g})")


def _momentum_maps(scheme: Scheme, states: State, claimed: bool, near: Near | None) -> list[Finding]:
    system = scheme.system
    if not system.symmetries:
        return [not_measured("momentum maps", "the system names no symmetries")] if claimed else []
    if not system.moves:
        return [not_measured("momentum maps", "without a Lagrangian nobody can say whether a symmetry is one")]
    return noether(scheme, states, claimed, near)


def casimirs(scheme: Scheme, states: State) -> list[Finding]:
    """The Casimirs that a scheme names, along states."""
    eps, steps = float(np.finfo(scheme.system.dtype).eps), len(jax.tree.leaves(states.p)[0]) - 1
    findings = []
    for name, function in scheme.casimirs.items():
        values = np.asarray(evaluate(jax.vmap(function), State(states.q, states.p)), float)
        change = float(np.abs(values - values[0]).max() / max(np.abs(values).max(), np.finfo(float).tiny))
        words = f"largest relative change in {steps} steps"
        findings.append(at_most(f"Casimir {name}", change, 1e2 * eps * max(steps, 10), scheme.promised.casimirs, words))
    return findings


def _constraints(scheme: Scheme, run: Trajectory, eps: float) -> list[Finding]:
    """g(q, t) and its rate along a trajectory."""
    system, states = scheme.system, run.states
    held = lambda s, t: (system.constraint(s.q, t), rate(system, s.q, system.velocity(s.q, s.p, t), t))
    off = evaluate(jax.vmap(held), states, run.times)
    size = 1 + largest((states.q, states.p))
    laws = (("constraints", "largest |g(q)|"), ("rate of constraints", "largest |G v|"))
    return [
        at_most(law, largest(values), 1e3 * eps * size**2, True, f"{words} in {_STEPS} steps") for (law, words), values in zip(laws, off, strict=True)
    ]


def _stationary(scheme: Action, run: Trajectory, path: Wiener, step: float, eps: float) -> Finding:
    # All steps at once: fewer of them where each is large.
    steps = int(np.clip(_STEPS * LARGEST // scheme.space.dim, 4, _STEPS))
    states, times = jax.tree.map(lambda leaf: np.asarray(leaf)[: steps + 1], (State(run.states.q, run.states.p), run.times))
    h = jnp.asarray(step, scheme.system.dtype)
    size = 1 + largest(states.p)

    def slope_of(q, p):
        return action_differential(scheme, q, h, path.increments(0, steps, scheme.channels, step, scheme.system.dtype), times[0], p=p)

    slopes = np.asarray(evaluate(slope_of, states.q, states.p))
    if scheme.system.constraints:
        inner = jax.tree.map(lambda leaf: np.asarray(leaf)[1:-1], states.q)
        normals = jax.vmap(lambda q, t: jacobian(scheme.system, q, t))
        slopes = _tangential(slopes, np.asarray(evaluate(normals, inner, times[1:-1])))
    slope, summed = float(np.abs(slopes).max()), "|d𝔊 + work of forces|" if scheme.forced else "|d𝔊|"
    return at_most("action stationary", slope, 1e3 * eps * size / step, True, f"largest {summed} along a computed path")


def _tangential(slopes: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The part of covectors that multipliers of the constraints cannot take up."""
    normal = np.swapaxes(np.linalg.qr(np.swapaxes(G, 1, 2))[0], 1, 2)
    return slopes - np.einsum("kci,kc->ki", normal, np.einsum("kci,ki->kc", normal, slopes))
