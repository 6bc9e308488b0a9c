"""What a scheme claims, measured: `verify` gives findings, and a finding can fail.

Each finding names a law, what was claimed, what was measured and the limit that separates the two. Claims that a scheme does not make are measured
all the same and shown as facts: that Euler–Maruyama is not symplectic is no failure of Euler–Maruyama.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bismut.actions import Action
from bismut.ensembles import trajectory
from bismut.ensembles.checks import check_start, check_step, one_start
from bismut.findings.noether import noether
from bismut.findings.report import Finding, Report, at_most, not_measured
from bismut.findings.slopes import orders
from bismut.findings.structure import step_structure
from bismut.flows import Langevin, Metropolised, action_differential
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import jacobian, rate
from bismut.noise import Wiener, words

_STEPS = 200  # of the trajectory along which conservation is measured
_CHEAP = {"xla_backend_optimization_level": 0}  # for what is run once: compiling is the cost


def verify(scheme: Scheme, start, *, step: float, seed: int = 0, order: bool = True) -> Report:
    """Measure symplecticity, phase volume, momentum maps, the variational principle, the solve, and the orders of a scheme.

    start  a state at which, and from which, things are measured
    step   the step h of the measurements
    seed   of the noise
    order  whether orders are measured, which takes longest

    Returns a report: print it, ask `report.ok`, or take one finding, `report["symplectic defect"].measured`; `report.unmeasured` lists what was not
    looked at, and why.
    """
    check_step(step)
    path = Wiener(seed)
    state = one_start(start, path, 0, check_start(scheme, start))
    system, claims = scheme.system, scheme.promised
    eps = float(np.finfo(system.dtype).eps)
    h = jnp.asarray(step, system.dtype)
    conservative = not scheme.forced
    findings = []

    def structure(state: State):
        # Three times the usual increment, so that a defect proportional to the noise is not missed.
        return step_structure(scheme, state, h, 3 * path.increment(words(0), words(0), scheme.channels, h, system.dtype))

    defect, volume, scale = map(float, jax.jit(structure, compiler_options=_CHEAP)(state))
    claimed = claims.symplectic and conservative
    limit = 5e4 * eps * scale
    findings.append(at_most("symplectic defect", defect, limit, claimed, "max |TᵀΩT − Ω| of one step"))
    findings.append(_volume(scheme, volume, step, limit, claimed))
    run = trajectory(scheme, state, step=step, steps=_STEPS, path=path)
    findings += _momentum_maps(scheme, run.states, claims.momentum_maps and (conservative or system.forced))
    if system.constraints:
        findings += _constraints(scheme, run.states, run.times, eps)
    if isinstance(scheme, Action):
        findings.append(_stationary(scheme, run.states, path, step, eps))
    solved = bool(np.all(run.solve.converged))
    worst, most = float(np.max(run.solve.residual)), int(np.max(run.solve.iterations))
    findings.append(Finding("solve", worst, np.inf, solved, f"largest residual of {_STEPS} steps, at most {most} iterations each"))
    findings += orders(scheme, state, step, seed, wanted=order)
    return Report(scheme.title, float(step), tuple(findings))


def _volume(scheme: Scheme, volume: float, step: float, limit: float, claimed: bool) -> Finding:
    """One for a symplectic step; e^{−h tr ΓM⁻¹} for a bath whose friction is the same everywhere."""
    if isinstance(scheme, Langevin) and not isinstance(scheme.splitting, Metropolised) and scheme.schedule is None:
        shrinking = scheme.friction.contraction(scheme.system)
        if shrinking is not None:
            words = f"|det − e^(−h tr ΓM⁻¹)| of one step (factor {volume:.12g})"
            return at_most("phase volume", abs(volume - float(np.exp(-step * shrinking))), limit, not scheme.moving.forced, words)
    return at_most("phase volume", abs(volume - 1), limit, claimed, f"|det − 1| of one step (factor {volume:.12g})")


def _momentum_maps(scheme: Scheme, states: State, claimed: bool) -> list[Finding]:
    system = scheme.system
    if not system.symmetries:
        return [not_measured("momentum maps", "the system names no symmetries")] if claimed else []
    if not system.moves:
        return [not_measured("momentum maps", "without a Lagrangian nobody can say whether a symmetry is one")]
    return noether(scheme, states, claimed)


def _constraints(scheme: Scheme, states: State, times: Array, eps: float) -> list[Finding]:
    """g(q) and its rate along a trajectory."""
    system = scheme.system
    held = lambda s, t: (system.constraint(s.q, t), rate(system, s.q, system.velocity(s.q, s.p, t), t))
    off = jax.jit(jax.vmap(held))(states, times)
    size = 1 + max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves((states.q, states.p)))
    laws = (("constraints", "largest |g(q)|"), ("rate of constraints", "largest |G v|"))
    return [
        at_most(law, float(jnp.max(jnp.abs(values))), 1e3 * eps * size**2, True, f"{words} in {_STEPS} steps")
        for (law, words), values in zip(laws, off, strict=True)
    ]


def _stationary(scheme: Action, states: State, path: Wiener, step: float, eps: float) -> Finding:
    h = jnp.asarray(step, scheme.system.dtype)
    size = 1.0 + max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(states.p))

    def slope_of(q, p):
        return action_differential(scheme, q, h, path.increments(0, _STEPS, scheme.channels, step, scheme.system.dtype), p=p)

    slopes = np.asarray(jax.jit(slope_of, compiler_options=_CHEAP)(states.q, states.p))
    if scheme.system.constraints:
        inner = jax.tree.map(lambda leaf: leaf[1:-1], states.q)
        slopes = _tangential(slopes, np.asarray(jax.jit(jax.vmap(lambda q, t: jacobian(scheme.system, q, t)))(inner, h * jnp.arange(1, _STEPS))))
    slope = float(np.abs(slopes).max())
    return at_most(
        "action stationary", slope, 1e3 * eps * size / step, True, f"largest |d𝔊{' + work of forces' if scheme.forced else ''}| along a computed path"
    )


def _tangential(slopes: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The part of covectors that multipliers of the constraints cannot take up."""
    normal = np.swapaxes(np.linalg.qr(np.swapaxes(G, 1, 2))[0], 1, 2)
    return slopes - np.einsum("kci,kc->ki", normal, np.einsum("kci,ki->kc", normal, slopes))
