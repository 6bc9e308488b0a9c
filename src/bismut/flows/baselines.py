"""Methods that are not variational, for comparison.

    dq = v dt,    dp = (ad*_v p + ∂L/∂q + F) dt + Σ dγ_i(q) dW_i + Σ F_j(q, v) ∘ dW_j,    p = ∂L/∂v        (ad* = 0 on ℝⁿ)

On a group all of them work in the algebra: positions are moved by the retraction and stay on the group, momenta are advanced in the body frame.
On ℝⁿ they are the textbook methods. They are here to be beaten, and so that a structure check can be seen to fail.
"""

import jax
import jax.numpy as jnp

from bismut.flows.flow import Flow
from bismut.flows.hamiltonian_step import impulse
from bismut.flows.ledger import record_between_states
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, State, System, newton
from bismut.mechanics.fluctuation_dissipation import BracketDissipation
from bismut.mechanics.hamiltonian import hamiltonian_field
from bismut.registry import SCHEMES
from bismut.spaces import Point, Velocity, add, scale


class Baseline(Flow):
    """A method that is not variational. Its ledger knows of a step nothing but its ends."""

    @property
    def keeps_ledger(self) -> bool:
        return True


@SCHEMES.register
class EulerMaruyama(Baseline):
    """z1 = z0 + h f(z0) + noise(z0), with z = (q, p). Explicit; for comparison, not variational."""

    claims = Claims(order=1)

    def advance(self, state, h, dW, t):
        v, rate = drift(self.system, state.q, state.p, t)
        kick = self.system.kick(state.q, _halfway(self.system, state, v, dW, t), dW, t)
        new = State(self.space.move(state.q, v, h), add(state.p, add(scale(h, rate), kick)))
        return record_between_states(self.system, state, new, h, dW, t), Solve.explicit(self.system.dtype)


@SCHEMES.register
class ImplicitEulerMaruyama(Baseline):
    """z1 = z0 + h f(z1) + noise(z0), with z = (q, p). For comparison, not variational. The unknown is the velocity at the end of the step."""

    claims = Claims(order=1)

    def advance(self, state, h, dW, t):
        system, space = self.system, self.space
        v = system.velocity(state.q, state.p, t) if system.kick_sees_velocity else space.zero(system.dtype)
        known = space.flatten(add(state.p, system.kick(state.q, _halfway(system, state, v, dW, t), dW, t)))

        def end(x):
            v = space.unflatten(x)
            q1 = space.move(state.q, v, h)
            return q1, v, system.momentum(q1, v, t + h)

        def residual(x):
            q1, v, p1 = end(x)
            return space.flatten(p1) - known - h * space.flatten(momentum_rate(system, q1, v, p1, t + h))

        root = newton.solve(residual, jnp.zeros_like(known), newton.dense(space.dim), linear=False)
        q1, _, p1 = end(root.x)
        size = jnp.max(jnp.abs(residual(root.x)))
        return record_between_states(system, state, State(q1, p1), h, dW, t), Solve(size, root.converged & jnp.isfinite(size), root.iterations)


@SCHEMES.register
class RungeKutta4(Baseline):
    """The classical Runge–Kutta method, on a group in the coordinates q0 ⊕ x of each step:  dx/dt = dτ⁻¹_{−x} v.

    Noise is held constant over a step, which gives the Stratonovich limit.
    """

    claims = Claims(order=4)
    phase_space = True

    def advance(self, state, h, dW, t):
        system, space = self.system, self.space

        def rate(x, p, time):
            q = space.move(state.q, x)
            if system.in_phase_space:
                rates = dW / h
                if isinstance(system.dissipation, BracketDissipation):
                    rates = rates + system.dissipation.rates(system, q, p, time)
                v, dp = hamiltonian_field(space, lambda q, p: system.hamiltonian(q, p, time) + system.noise_hamiltonian(q, p, time) @ rates, q, p)
                dp = add(dp, scale(2.0, impulse(system, q, p, jnp.ones_like(h), rates, time))) if system.has_impulses else dp
                return space.coordinate_rate(state.q, x, v), dp
            v, dp = drift(system, q, p, time)
            return space.coordinate_rate(state.q, x, v), add(dp, scale(1 / h, system.kick(q, v, dW, time)))

        zero = jax.tree.map(jnp.zeros_like, state.p)
        step = lambda k, c: (scale(c * h, k[0]), add(state.p, scale(c * h, k[1])))
        k1 = rate(zero, state.p, t)
        k2 = rate(*step(k1, 0.5), t + 0.5 * h)
        k3 = rate(*step(k2, 0.5), t + 0.5 * h)
        k4 = rate(*step(k3, 1.0), t + h)
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        new = State(space.move(state.q, mean[0], h), add(state.p, scale(h, mean[1])))
        return record_between_states(system, state, new, h, dW, t), Solve.explicit(system.dtype)


def drift(system: System, q: Point, p: Velocity, t) -> tuple[Velocity, Velocity]:
    """(v, dp/dt) without noise."""
    v = system.velocity(q, p, t)
    return v, momentum_rate(system, q, v, p, t)


def momentum_rate(system: System, q: Point, v: Velocity, p: Velocity, t) -> Velocity:
    """ad*_v p + ∂L/∂q + F."""
    space = system.space
    slope = jax.grad(lambda e: system.lagrangian(space.nudge(q, e), v, t))(jax.tree.map(jnp.zeros_like, p))
    return add(add(slope, space.turning(q, v, p)), system.force(q, v, t))


def _halfway(system: System, state: State, v: Velocity, dW, t) -> Velocity:
    """The velocity half way through a kick: with it a random force that sees velocities is a Stratonovich integral."""
    if not system.kick_sees_velocity:
        return v
    return system.velocity(state.q, add(state.p, scale(0.5, system.kick(state.q, v, dW, t))), t)
