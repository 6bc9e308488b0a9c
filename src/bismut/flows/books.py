"""Work over one step, for the ledger.

    ∫ ∂U/∂t dt + ∫⟨F, dq⟩ + Σ ∫(∂γ_i/∂q · dq) dW_i/dt + Σ ∫⟨F_j, dq⟩ dW_j/dt        by the trapezoidal rule

What is left of ΔH is the error of the integrator. The work of surfaces that move is known from their multipliers (`mechanics.constraint`).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.mechanics import Ledger, State, System
from bismut.mechanics.kicks import felt
from bismut.spaces import add, pair, scale


def work(system: System, old: State, new: State, h, t, *, seeing: bool = False) -> Float[Array, ""]:
    """Of a potential that changes in time, and of forces; those see the velocity of the step if `seeing`, else none."""
    U, space = system.potential, system.space
    done = 0.5 * (U(old.q, t + h) - U(old.q, t) + U(new.q, t + h) - U(new.q, t))
    if system.pushed:
        x = space.subtract(new.q, old.q)
        v = scale(1 / h, x) if seeing else space.zero(system.dtype)
        done = done + pair(scale(0.5, add(system.force(old.q, v, t), system.force(new.q, v, t + h))), x)
    return done


def work_of_noise(system: System, old: State, new: State, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
    """Of stochastic potentials and random forces that drive a step all the way. Only the change of γ with q does work."""
    gamma, space = system.noise, system.space
    done = 0.5 * (gamma(new.q, t) - gamma(old.q, t) + gamma(new.q, t + h) - gamma(old.q, t + h)) @ dW / h
    if system.random_forces:
        x, force = space.subtract(new.q, old.q), system.random_force
        v, weights = scale(1 / h, x), dW[system.potentials :] / h
        done = done + 0.5 * (felt(force(old.q, v, t), x) + felt(force(new.q, v, t + h), x)) @ weights
    return done


def entered(old: Ledger, heat, work, error, accepted) -> Ledger:
    """The ledger after a step."""
    return Ledger(old.heat + heat, old.work + work, old.error + error, old.accepted + accepted, old.steps + 1)


def of_action(system: System, old: State, new: State, h, dW: Float[Array, " m"], t) -> State:
    """The state with its books: `new.ledger` holds, of this step, the work of surfaces that move, and nothing else."""
    assert old.ledger is not None
    assert new.ledger is not None
    surfaces = new.ledger.work - old.ledger.work
    done = surfaces + work(system, old, new, h, t, seeing=True)
    done = done + work_of_noise(system, old, new, h, dW, t) if system.channels else done
    gained = system.energy(new, t + h) - system.energy(old, t)
    return State(new.q, new.p, entered(old.ledger, jnp.zeros_like(done), done, gained - done, jnp.ones_like(done)))
