"""Energy over one step, for the ledger.

    ΔH = heat + work + error

Of an action. Whatever acts beside L, be it noise γ(q) ∘ dW, a force or a random force, does so by impulses at the ends of a step: −D₁S_d and D₂S_d
with it and without it differ by f⁻ and f⁺. So a step is a kick at q0, a step of the same action with L alone, and a kick at q1,

    p0 → p0' = p0 + f⁻ ,     (q0, p0') → (q1, p1') ,     p1' → p1 = p1' + f⁺

and at a fixed place the work of a kick is the change of H, which is ⟨f, ½(v + v')⟩: the Stratonovich value, with the velocity half way through the
kick. What the step in the middle changes beside ∫ ∂H/∂t dt is the error of the integrator: that of the same scheme without noise and forces. (Where
an action is one-sided, the velocity of the step, (q1 ⊖ q0)/h, already holds the whole kick at q0: ⟨f, (q1 ⊖ q0)/h⟩ is twice the mean work.)

Of any other step. By the trapezoidal rule between its ends, which is Stratonovich's as well:

    ½ Σ_ends [⟨F, v⟩ h + Σ ⟨F_j, v⟩ ΔW_j + Σ {H, H_i} ΔW_i] + ∫ ∂H/∂t dt

The work of surfaces that move is known from their multipliers (`mechanics.constraint`).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.flows.legendre import ExplicitVelocities, momenta
from bismut.mechanics import Ledger, State, System
from bismut.mechanics import constraint as holonomic
from bismut.mechanics.covectors import pair_each
from bismut.mechanics.fluctuation_dissipation import BracketDissipation, energy_brackets
from bismut.spaces import Point, Velocity, add, pair, scale


def add_entry(old: Ledger, heat, work, error, accepted) -> Ledger:
    """The ledger after a step."""
    return Ledger(old.heat + heat, old.work + work, old.error + error, old.accepted + accepted, old.steps + 1)


def record_action_step(action: Action, old: State, new: State, h, dW: Float[Array, " m"], t, explicit: ExplicitVelocities | None) -> State:
    """The state with its ledger: `new.ledger` holds, of this step, the work of moving surfaces, and nothing else."""
    assert old.ledger is not None
    assert new.ledger is not None
    system, surfaces = action.system, new.ledger.work - old.ledger.work
    p0, p1 = old.p, new.p
    if system.channels or action.forced:
        v = scale(1 / h, action.space.subtract(new.q, old.q))
        driven = momenta(action, old.q, new.q, v, h, dW, t, explicit)
        alone = momenta(action, old.q, new.q, v, h, dW, t, conservative=True)
        (p0, done), (p1, undone) = _kicked(system, old.q, p0, alone[0], driven[0], t), _kicked(system, new.q, p1, alone[1], driven[1], t + h)
        surfaces = surfaces - (done - undone)
    error = _mean_energy(system, State(new.q, p1), h, t) - _mean_energy(system, State(old.q, p0), h, t) - surfaces
    work = system.energy(new, t + h) - system.energy(old, t) - error
    return State(new.q, new.p, add_entry(old.ledger, jnp.zeros_like(work), work, error, jnp.ones_like(work)))


def _kicked(system: System, q: Point, p: Velocity, alone: Velocity, driven: Velocity, t) -> tuple[Velocity, Float[Array, ""]]:
    """A momentum with the kick at one end of a step undone or done in advance, along the constraints, and the work of a moving surface in it."""
    p = add(p, jax.tree.map(jnp.subtract, alone, driven))
    if not system.constraints:
        return p, jnp.zeros((), system.dtype)
    p, root = holonomic.project(system, q, p, t)
    reaction = root.x[system.space.dim :]
    return p, holonomic.work(system, q, reaction, t) if system.moving_constraint else jnp.zeros((), system.dtype)


def _mean_energy(system: System, state: State, h, t) -> Float[Array, ""]:
    """½[H(t) + H(t + h)] at one state: its change is ΔH − ∫ ∂H/∂t dt by the trapezoidal rule."""
    now = system.energy(state, t)
    return 0.5 * (now + system.energy(state, t + h)) if system.energy_depends_on_time else now


def record_between_states(system: System, old: State, new: State, h, dW: Float[Array, " m"], t) -> State:
    """The state with its ledger, if any, after a step of which nothing but its ends is known."""
    if old.ledger is None:
        return new
    gained = system.energy(new, t + h) - system.energy(old, t)
    work = work_of_time(system, old, new, h, t) + 0.5 * (_power(system, old, h, dW, t) + _power(system, new, h, dW, t + h))
    return State(new.q, new.p, add_entry(old.ledger, jnp.zeros_like(work), work, gained - work, jnp.ones_like(work)))


def _power(system: System, state: State, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
    """The work that forces and noises would do over a step from the velocity at one state."""
    q, p = state.q, state.p
    done = jnp.zeros((), system.dtype)
    if system.has_impulses:
        v = system.velocity(q, p, t)
        done = done + h * pair(system.force(q, v, t), v) if system.pushed else done
        if system.random_forces:
            weights = dW[system.potentials : system.potentials + system.random_forces]
            done = done + pair_each(system.random_force(q, v, t), v) @ weights
    if system.potentials or system.noise_hamiltonians:
        if isinstance(system.dissipation, BracketDissipation):
            dW = dW + h * system.dissipation.rates(system, q, p, t)
        done = done + energy_brackets(system, q, p, t) @ dW
    return done


def work_of_time(system: System, old: State, new: State, h, t) -> Float[Array, ""]:
    """∫ ∂H/∂t dt."""
    if not system.energy_depends_on_time:
        return jnp.zeros((), system.dtype)
    H = system.energy
    return 0.5 * (H(old, t + h) - H(old, t) + H(new, t + h) - H(new, t))


def work_of_force(system: System, old: State, new: State, h, t) -> Float[Array, ""]:
    """∫⟨F, dq⟩ of a force that sees no velocity."""
    if not system.pushed:
        return jnp.zeros((), system.dtype)
    rest = system.space.zero(system.dtype)
    return pair(scale(0.5, add(system.force(old.q, rest, t), system.force(new.q, rest, t + h))), system.space.subtract(new.q, old.q))
