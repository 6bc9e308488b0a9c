"""Does a step backwards undo a step, and is the motion reversible?

    φ_{−h}(−ΔW) ∘ φ_h(ΔW) = 1                       its own adjoint
    ρ φ_h(ΔW) ρ φ_h(ΔW) = 1,    ρ(q, p) = (q, −p)   reversible, where L, H and forces are even in the velocity

The second follows from the first where the system itself is reversible, which is measured along the path: a magnetic field turns motion around, and
no scheme is reversible then.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings.finding import Finding, at_most, not_measured
from bismut.flows import Langevin, flow
from bismut.host import evaluate
from bismut.mechanics import Scheme, State, System
from bismut.noise import Path, counter
from bismut.spaces import scale

_PLACES = 5  # of the path, away from its start, which may be a special one


def reversal(scheme: Scheme, states: State, path: Path, step: float, t0: float = 0.0) -> list[Finding]:
    """Claims of schemes that are their own adjoint, facts for all others; nothing for a bath, which forgets where it came from."""
    system = scheme.system
    if isinstance(scheme, Langevin) or system.dissipation is not None:
        return []
    h, stepper = jnp.asarray(step, system.dtype), flow(scheme)
    count = len(jax.tree.leaves(states.p)[0])
    chosen = np.linspace(count // 2, count - 1, _PLACES).astype(int)
    places = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], State(states.q, states.p))
    # One function for all three steps, so that it is traced once.
    step_of = jax.jit(jax.vmap(lambda state, h, dW, t: State(*_bare(stepper.advance(state, h, dW, t)[0])), in_axes=(0, None, None, 0)))

    def both(places: State, t):
        dW = path.increment(counter(0), counter(0), scheme.channels, h, system.dtype)
        there = step_of(places, h, dW, t)
        back = step_of(there, -h, -dW, t + h)
        turned = _turned(step_of(_turned(there), h, dW, t))
        return [jnp.max(jax.vmap(lambda a, b: _gap(system, a, b))(end, places)) for end in (back, turned)]

    gaps = [float(gap) for gap in evaluate(both, places, t0 + step * np.asarray(chosen, system.dtype))]
    size = 1 + max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(places.p))
    limit, claimed = 1e4 * float(np.finfo(system.dtype).eps) * size, scheme.promised.self_adjoint
    laws = (("own adjoint", "|φ₋ₕ φₕ z − z|", "", ""), ("reversible", "|ρφρφ z − z|", ", ρ(q, p) = (q, −p)", _one_way(system, places)))
    findings = []
    for gap, (law, said, more, reason) in zip(gaps, laws, strict=True):
        if not np.isfinite(gap):
            findings.append(not_measured(law, "a step backwards is not finite"))
            continue
        how = f"largest {said} at {_PLACES} places of a path{more}"
        findings.append(at_most(law, gap, limit, claimed and not reason, how, reason or "not claimed"))
    return findings


def _bare(state: State):
    return state.q, state.p


def _turned(state: State) -> State:
    return State(state.q, scale(-1.0, state.p))


def _gap(system: System, a: State, b: State):
    space = system.space
    return jnp.max(jnp.abs(jnp.concatenate([space.gap(a.q, b.q), space.flatten(a.p) - space.flatten(b.p)])))


def _one_way(system: System, places: State) -> str:
    """What keeps a system from being reversible; empty where nothing does."""
    if not system.moves:
        return "without a Lagrangian nobody can say whether the system is reversible"
    if system.time_dependent:
        return "the system depends on time"

    def odd(state: State):
        both = [_felt(system, state, sign) for sign in (1.0, -1.0)]
        return jnp.max(jnp.abs(both[0] - both[1]) / (jnp.abs(both[0]) + jnp.abs(both[1]) + jnp.finfo(system.dtype).tiny))

    limit = 1e-10 if system.dtype == np.float64 else 1e-4
    worst = float(np.nanmax(np.asarray(evaluate(jax.vmap(odd), places))))
    return "" if worst <= limit else f"the system is not reversible: its laws change with the sign of the velocity ({worst:.1g})"


def _felt(system: System, state: State, sign: float):
    """All that acts, at q and with the velocity or the momentum turned around or not."""
    q, flat = state.q, system.space.flatten
    if system.in_phase_space:
        p = scale(sign, state.p)
        noises = [system.noise_hamiltonian(q, p)] if system.noise_hamiltonians else []
        return jnp.concatenate([system.hamiltonian(q, p)[None], *noises])
    v = scale(sign, system.velocity(q, state.p))
    forces = [flat(system.force(q, v))] if system.pushed else []
    forces += [jnp.ravel(jax.vmap(flat)(system.random_force(q, v)))] if system.random_forces else []
    return jnp.concatenate([system.lagrangian(q, v)[None], *forces])
