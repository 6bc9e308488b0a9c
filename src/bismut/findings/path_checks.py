"""Structure: what one step and a short path keep, and whether a step backwards undoes a step.

    TᵀΩT = Ω,     det T = 1 or e^{−h tr ΓM⁻¹},     J unchanged,     C(z_k) = C(z_0),     g(q) = 0,     d𝔊 = 0
    φ_{−h}(−ΔW) ∘ φ_h(ΔW) = 1                       its own adjoint
    ρ φ_h(ΔW) ρ φ_h(ΔW) = 1,    ρ(q, p) = (q, −p)   reversible, where L, H and forces are even in the velocity

Reversibility follows from self-adjointness where the system itself is reversible, which is measured along the path: under a magnetic field no scheme
is.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from bismut.actions import Action
from bismut.findings.checks import STEPS, Study, check
from bismut.findings.finding import Finding, at_most, not_measured, verdict_of
from bismut.findings.memory import NotEnoughMemory, evaluate
from bismut.findings.noether import momentum_maps
from bismut.findings.structure import LARGEST, poisson_defect, random_defect, step_structure
from bismut.flows import Langevin, Metropolised, action_differential, flow
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.constraint import jacobian, rate
from bismut.registry import CHECKS
from bismut.spaces import Space, scale

_PLACES = 5  # of the path at which steps are reversed, away from its start, which may be special


@CHECKS.register
@check("structure", ("Poisson map",), rank=10, cost=1.0, label=("structure of a step",), applies=lambda scheme: scheme.system.reduced)
def poisson_map(study: Study) -> list[Finding]:
    """After reduction: the bracket, with three times the usual increment."""
    scheme, state = study.scheme, study.state
    n = sum(leaf.size for leaf in jax.tree.leaves((state.q, state.p)))
    if n > LARGEST:
        return [not_measured("Poisson map", f"the bracket of {n} numbers; up to {LARGEST} are tried. A smaller algebra of the same kind shows it")]
    defect, size = map(float, evaluate(lambda state: poisson_defect(scheme, state, study.h, 3 * study.increment(), study.t0), state))
    claimed = scheme.effective_claims.symplectic and not scheme.forced
    return [at_most("Poisson map", defect, 5e4 * study.eps * size, claimed, "max |T B Tᵀ − B| of one step, B_ij = {z_i, z_j}")]


_ONE_STEP = ("symplectic defect", "phase volume")


@CHECKS.register
@check("structure", _ONE_STEP, rank=10, cost=1.0, label=("structure of a step",), applies=lambda scheme: not scheme.system.reduced)
def one_step(study: Study) -> list[Finding]:
    """Symplectic form and phase volume, with three times the usual increment, so that a defect proportional to the noise is not missed."""
    scheme, many = study.scheme, study.scheme.space.dim > LARGEST
    measure = random_defect if many else step_structure
    measured = evaluate(lambda state: measure(scheme, state, study.h, 3 * study.increment(), study.t0), study.state)
    defect, *volume, size = map(float, measured)
    claimed, limit = scheme.effective_claims.symplectic and not scheme.forced, 5e4 * study.eps * size
    if many:
        how = "max |Ω(Tu, Tv) − Ω(u, v)| of one step, random directions"
        why = f"{scheme.space.dim} degrees of freedom; up to {LARGEST} are tried. Fewer bodies of the same kind show it"
        return [at_most("symplectic defect", defect, limit, claimed, how), not_measured("phase volume", why)]
    return [at_most("symplectic defect", defect, limit, claimed, "max |TᵀΩT − Ω| of one step"), _volume(study, volume[0], limit, claimed)]


def _volume(study: Study, volume: float, limit: float, claimed: bool) -> Finding:
    """One for a symplectic step; e^{−h tr ΓM⁻¹} for a bath whose friction is the same everywhere, Π c(hλ) if it is not exact."""
    scheme = study.scheme
    if isinstance(scheme, Langevin) and not isinstance(scheme.splitting, Metropolised) and scheme.schedule is None:
        expected = scheme.phase_volume(study.step)
        if expected is not None:
            formula = "e^(−h tr ΓM⁻¹)" if getattr(scheme.splitting, "loss", None) is None else "Π c(hλ)"
            how = f"|det − {formula}| of one step (factor {volume:.12g})"
            return at_most("phase volume", abs(abs(volume) - abs(expected)), limit, not scheme.moving.forced, how)
    return at_most("phase volume", abs(volume - 1), limit, claimed, f"|det − 1| of one step (factor {volume:.12g})")


@CHECKS.register
@check("structure", ("along a path",), rank=20, cost=3.5, label=("structure along a path",))
def along_path(study: Study) -> list[Finding]:
    """Momentum maps, Casimirs, invariants, constraints, points on the space, stationarity of the action, and the solve."""
    scheme, system, run = study.scheme, study.system, study.run
    claimed = scheme.effective_claims.momentum_maps and (system.forced or not scheme.forced)
    findings = momentum_maps(scheme, run.states, study.t0, claimed, study.probes) + casimirs(scheme, run.states) + _invariants(study)
    if system.constraints:
        findings += _constraints(study)
    if type(system.space).violation is not Space.violation and np.isfinite(np.asarray(jax.tree.leaves(run.states.p)[0])).all():
        findings.append(_on_the_space(study))
    if isinstance(scheme, Action):
        findings.append(_stationary(scheme, study))
    converged = bool(np.asarray(run.solve.converged).all())
    worst, most = float(np.asarray(run.solve.residual).max()), int(np.asarray(run.solve.iterations).max())
    how = f"largest residual of {STEPS} steps, at most {most} iterations each"
    return [*findings, Finding("solve", worst, np.inf, verdict_of(converged), how)]


def _largest(tree: Any) -> float:
    return max(float(np.abs(np.asarray(leaf)).max()) for leaf in jax.tree.leaves(tree))


def _on_the_space(study: Study) -> Finding:
    after = lambda k: float(study.scheme.space.violation(jax.tree.map(lambda leaf: np.asarray(leaf)[k], study.run.states.q)))
    growth = f"; {after(STEPS // 2):.1e} after {STEPS // 2}, in single precision" if study.eps > 1e-10 else ""
    return at_most("stays on the space", after(-1), 1e2 * STEPS * study.eps, True, f"violation after {STEPS} steps{growth}")


def casimirs(scheme: Scheme, states: State) -> list[Finding]:
    """The Casimirs that a scheme names, along states."""
    eps, steps = float(np.finfo(scheme.system.dtype).eps), len(jax.tree.leaves(states.p)[0]) - 1
    findings = []
    for name, function in scheme.casimirs.items():
        values = np.asarray(evaluate(jax.vmap(function), State(states.q, states.p)), float)
        change = float(np.abs(values - values[0]).max() / max(np.abs(values).max(), np.finfo(float).tiny))
        limit, how = 1e2 * eps * max(steps, 10), f"largest relative change in {steps} steps"
        findings.append(at_most(f"Casimir {name}", change, limit, scheme.effective_claims.casimirs, how))
    return findings


def _invariants(study: Study) -> list[Finding]:
    """One finding for each invariant that the system names. What the bracket keeps, every step on its orbits keeps; anything else is a belief of the
    user's, measured as well."""
    scheme, system, findings = study.scheme, study.system, []
    for name in system.invariants:
        law, how = f"Casimir {name}" if system.reduced else f"invariant {name!r}", f"largest change in {STEPS} steps over Σ|z ∂I/∂z|"
        try:
            values, terms = evaluate(jax.vmap(lambda state, name=name: _with_terms(system, name, state)), study.run.states)
        except NotEnoughMemory as problem:
            findings.append(not_measured(law, str(problem)))
            continue
        size = np.asarray(terms, float).max(0)
        drift = float((np.abs(values - values[0]).max(0) / np.where(size > 0, size, 1.0)).max())
        findings.append(at_most(law, drift, 1e3 * study.eps, scheme.effective_claims.symplectic, how))
    return findings


def _with_terms(system: System, name: str, state: State) -> tuple[Array, Array]:
    """An invariant, flat, and the size of its terms: one that happens to be zero has round-off all the same."""
    z, back = ravel_pytree((state.q, state.p))
    of = lambda z: jnp.ravel(system.invariant(name, State(*back(z))))
    values = of(z)
    # Forward, every number carries a direction through all pairs; backward there are only as many rows as values.
    slopes = jax.jacfwd(of) if z.size <= 2 * LARGEST or z.size <= values.size else jax.jacrev(of)
    return values, jnp.abs(slopes(z)) @ jnp.abs(z)


def _constraints(study: Study) -> list[Finding]:
    """g(q, t) and its rate along the path."""
    system, states = study.system, study.run.states
    both = lambda s, t: (system.constraint(s.q, t), rate(system, s.q, system.velocity(s.q, s.p, t), t))
    off = evaluate(jax.vmap(both), states, study.run.times)
    limit = 1e3 * study.eps * (1 + _largest((states.q, states.p))) ** 2
    laws = (("constraints", "largest |g(q)|"), ("rate of constraints", "largest |G v|"))
    return [at_most(law, _largest(values), limit, True, f"{what} in {STEPS} steps") for (law, what), values in zip(laws, off, strict=True)]


def _stationary(scheme: Action, study: Study) -> Finding:
    # All steps at once: fewer of them where each is large.
    steps = int(np.clip(STEPS * LARGEST // scheme.space.dim, 4, STEPS))
    run = study.run
    states, times = jax.tree.map(lambda leaf: np.asarray(leaf)[: steps + 1], (State(run.states.q, run.states.p), run.times))

    def slope_of(q, p):
        dW = study.path.increments(0, steps, scheme.channels, study.step, scheme.system.dtype)
        return action_differential(scheme, q, study.h, dW, times[0], p=p)

    slopes = np.asarray(evaluate(slope_of, states.q, states.p))
    if scheme.system.constraints:
        inner = jax.tree.map(lambda leaf: np.asarray(leaf)[1:-1], states.q)
        normals = jax.vmap(lambda q, t: jacobian(scheme.system, q, t))
        slopes = _tangential(slopes, np.asarray(evaluate(normals, inner, times[1:-1])))
    slope, summed = float(np.abs(slopes).max()), "|d𝔊 + work of forces|" if scheme.forced else "|d𝔊|"
    limit = 1e3 * study.eps * (1 + _largest(states.p)) / study.step
    return at_most("action stationary", slope, limit, True, f"largest {summed} along a computed path")


def _tangential(slopes: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The part of covectors that multipliers of the constraints cannot take up."""
    normal = np.swapaxes(np.linalg.qr(np.swapaxes(G, 1, 2))[0], 1, 2)
    return slopes - np.einsum("kci,kc->ki", normal, np.einsum("kci,ki->kc", normal, slopes))


def _dissipative(scheme: Scheme) -> bool:
    return isinstance(scheme, Langevin) or scheme.system.dissipation is not None


@CHECKS.register
@check("structure", ("own adjoint", "reversible"), rank=40, cost=2.2, applies=lambda scheme: not _dissipative(scheme))
def reversal(study: Study) -> list[Finding]:
    """Claims of schemes that are their own adjoint, facts for all others; nothing for a bath, which is irreversible."""
    return reversal_at(study, study.run.states)


def reversal_at(study: Study, states: State) -> list[Finding]:
    """At some states of a path."""
    scheme, system, h = study.scheme, study.system, study.h
    stepper, count = flow(scheme), len(jax.tree.leaves(states.p)[0])
    chosen = np.linspace(count // 2, count - 1, _PLACES).astype(int)
    places = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], State(states.q, states.p))

    def advance(state: State, h, dW, t) -> State:
        new, _ = stepper.advance(state, h, dW, t)
        return State(new.q, new.p)

    step_of = jax.jit(jax.vmap(advance, in_axes=(0, None, None, 0)))  # one function for all three steps, so that it is traced once
    turned = lambda state: State(state.q, scale(-1.0, state.p))

    def both(places: State, t):
        dW = study.increment()
        there = step_of(places, h, dW, t)
        back, reflected = step_of(there, -h, -dW, t + h), turned(step_of(turned(there), h, dW, t))
        return [jnp.max(jax.vmap(lambda a, b: _gap(system.space, a, b))(end, places)) for end in (back, reflected)]

    gaps = [float(gap) for gap in evaluate(both, places, study.t0 + study.step * np.asarray(chosen, system.dtype))]
    limit, claimed = 1e4 * study.eps * (1 + _largest(places.p)), scheme.effective_claims.self_adjoint
    laws = (("own adjoint", "|φ₋ₕ φₕ z − z|", "", ""), ("reversible", "|ρφρφ z − z|", ", ρ(q, p) = (q, −p)", _irreversible(study, places)))
    findings = []
    for gap, (law, what, where, reason) in zip(gaps, laws, strict=True):
        if not np.isfinite(gap):
            findings.append(not_measured(law, "a step backwards is not finite"))
            continue
        how = f"largest {what} at {_PLACES} places of a path{where}"
        findings.append(at_most(law, gap, limit, claimed and not reason, how, reason or "not claimed"))
    return findings


def _gap(space: Space, a: State, b: State):
    return jnp.max(jnp.abs(jnp.concatenate([space.gap(a.q, b.q), space.flatten(a.p) - space.flatten(b.p)])))


def _irreversible(study: Study, places: State) -> str:
    """Why the system is not reversible; empty where it is."""
    system = study.system
    if not system.moves:
        return "without a Lagrangian it is unknown whether the system is reversible"
    if system.time_dependent:
        return "the system depends on time"

    def odd(state: State):
        both = [_dynamics(system, state, sign, study.t0) for sign in (1.0, -1.0)]
        return jnp.max(jnp.abs(both[0] - both[1]) / (jnp.abs(both[0]) + jnp.abs(both[1]) + jnp.finfo(system.dtype).tiny))

    limit = 1e-10 if system.dtype == np.float64 else 1e-4
    worst = float(np.nanmax(np.asarray(evaluate(jax.vmap(odd), places))))
    return "" if worst <= limit else f"the system is not reversible: its laws change with the sign of the velocity ({worst:.1g})"


def _dynamics(system: System, state: State, sign: float, t):
    """L or H, noise Hamiltonians and forces at q, with the velocity or the momentum times a sign."""
    q, flat = state.q, system.space.flatten
    if system.in_phase_space:
        p = scale(sign, state.p)
        noises = [system.noise_hamiltonian(q, p, t)] if system.noise_hamiltonians else []
        return jnp.concatenate([system.hamiltonian(q, p, t)[None], *noises])
    v = scale(sign, system.velocity(q, state.p, t))
    forces = [flat(system.force(q, v, t))] if system.pushed else []
    forces += [jnp.ravel(jax.vmap(flat)(system.random_force(q, v, t)))] if system.random_forces else []
    return jnp.concatenate([system.lagrangian(q, v, t)[None], *forces])
