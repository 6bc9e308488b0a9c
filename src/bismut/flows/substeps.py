"""The substeps of Langevin dynamics, which a splitting composes.

    A  drift       free motion: the variational flow of the kinetic energy, on any space and under constraints
    B  kick        p ← p + h (−dU + F), along the constraints
    N  noise_kick  p ← p + Σ dγ_i ΔW_i + Σ F_j ΔW_j, along the constraints
    O  bath        exact relaxation at fixed q (`mechanics.friction`)
    V  variational the step of an action

Each is a program of its own, so that one which occurs several times in a step is traced once.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.compile_cache import compiled
from bismut.errors import BismutError
from bismut.flows import ledger
from bismut.flows.flow import BathFlow
from bismut.flows.metropolised import drift_action
from bismut.flows.splitting import Splitting
from bismut.flows.variational import Solve, VariationalFlow
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.constraint import project, work
from bismut.mechanics.friction import Friction
from bismut.mechanics.friction.attenuation import Loss
from bismut.mechanics.function import UserFunction
from bismut.mechanics.heat import Temperature
from bismut.spaces import Point, Space, Velocity, add, scale


class Substeps(BathFlow):
    """A system and a bath, and what each does to a state by itself."""

    temperature: Temperature
    friction: Friction
    splitting: Splitting = eqx.field(static=True)
    schedule: UserFunction | None = eqx.field(static=True)
    retraction: str | None = eqx.field(static=True)
    balanced: bool = eqx.field(static=True)  # the system's own γ_i are the bath

    @property
    def space(self) -> Space:
        return self.system.space if self.retraction is None else self.system.space.using(self.retraction)

    @property
    def moving(self) -> System:
        """The system without the bath."""
        return self.system.without_noise() if self.balanced else self.system

    @property
    def time_dependent(self) -> bool:
        return self.temperature.time_dependent or self.schedule is not None or super().time_dependent

    def strength(self, t) -> Float[Array, ""] | float:
        """The factor on the friction."""
        return 1.0 if self.schedule is None else self.schedule(t=t, parameters=self.system.parameters)

    @compiled
    def energy(self, state: State, t) -> Float[Array, ""]:
        return self.system.energy(state, t)

    @compiled
    def drift(self, state: State, h, t) -> tuple[State, Solve]:
        """A: free motion."""
        return self.free_flow().advance(state, h, jnp.zeros(0, self.system.dtype), t)

    def free_flow(self) -> VariationalFlow:
        return VariationalFlow(drift_action(self.moving, self.retraction))

    @compiled
    def force(self, q: Point, t) -> Velocity:
        """−dU + F."""
        system, space, zero = self.moving, self.system.space, self.system.space.zero(self.system.dtype)
        slope = space.differential(lambda q: -system.potential(q, t), q)
        return add(slope, system.force(q, zero, t)) if system.pushed else slope

    def kick(self, state: State, force: Velocity, h, t) -> tuple[State, Solve]:
        """B: p ← p + h (−dU + F), along the constraints."""
        return self._push(state, scale(h, force), t)

    def noise_kick(self, state: State, dW: Float[Array, " m"], t) -> tuple[State, Solve, Float[Array, ""]]:
        """N: p ← p + Σ dγ_i ΔW_i + Σ F_j ΔW_j, along the constraints; and the work done."""
        space, system = self.system.space, self.moving
        if system.random_forces:
            impulse = system.kick(state.q, space.zero(system.dtype), dW, t)
        else:
            impulse = space.differential(lambda q: system.noise(q, t) @ dW, state.q)
        new, solve = self._push(state, impulse, t)
        return new, solve, self._kinetic_gain(state, new, t)

    def _push(self, state: State, impulse: Velocity, t) -> tuple[State, Solve]:
        system, p, entries = self.moving, add(state.p, impulse), state.ledger
        solve = Solve.explicit(system.dtype)
        if system.constraints:
            p, root = project(system, state.q, p, t)
            solve = solve._replace(converged=root.converged)
            if system.moving_constraint and entries is not None:
                done = work(system, state.q, root.x[system.space.dim :], t)
                entries = eqx.tree_at(lambda entries: entries.work, entries, entries.work + done)
        return State(state.q, p, entries), solve

    @compiled
    def bath(self, state: State, h, z: Float[Array, " r"], t, loss: Loss | None = None) -> tuple[State, Float[Array, ""]]:
        """O: contact with the bath at fixed q, exact or as φ says, and the heat that came in."""
        system = self.system
        new = State(state.q, self.friction.relax(system, state.q, state.p, self.strength(t) * h, t, self.kT(t), z, loss), state.ledger)
        return new, self._kinetic_gain(state, new, t)

    @compiled
    def variational(
        self, action: Callable[[System], Action], state: State, h, dW, t, fixed_time: bool = False, with_ledger: bool = False
    ) -> tuple[State, Solve]:
        """V: the step of an action; with the clock fixed at t if `fixed_time`, and with its own entries in the ledger if `with_ledger`."""
        scheme = self.scheme_of(action)
        scheme = scheme.on(scheme.system.at(t)) if fixed_time else scheme
        return VariationalFlow(scheme, with_ledger=with_ledger).advance(state, h, dW, t)

    def scheme_of(self, action: Callable[[System], Action]) -> Action:
        """The scheme of an action for the system without the bath; it moves by the retraction given here, if one was."""
        system = self.moving if self.retraction is None else self.moving.using(self.retraction)
        if isinstance(action, Scheme):
            raise BismutError(f"{self.splitting} needs an action such as bm.Verlet, not yet given a system, got the scheme {action.title}.")
        scheme = action(system)
        if not isinstance(scheme, Action):
            raise BismutError(f"{self.splitting} needs an action such as bm.Verlet, but it made a {type(scheme).__name__}.")
        if self.retraction is not None and scheme.space != self.space:
            raise BismutError(
                f"retraction={self.retraction!r} does not belong to {scheme.title}, which moves on {scheme.space}. Omit one of the two."
            )
        return scheme

    # Entries of the ledger: 0 where there is none.

    def _kinetic_gain(self, old: State, new: State, t) -> Float[Array, ""]:
        if old.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return self.system.kinetic_energy(new, t) - self.system.kinetic_energy(old, t)

    def work(self, old: State, new: State, h, t) -> Float[Array, ""]:
        """Work of a potential that changes in time, and of forces, over a step."""
        if old.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return ledger.work_of_time(self.moving, old, new, h, t) + ledger.work_of_force(self.moving, old, new, h, t)

    def work_of_time(self, state: State, h, t) -> Float[Array, ""]:
        """H(q, p, t + h) − H(q, p, t): the work of a clock that moves on while the state stands still."""
        if state.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return self.energy(state, t + h) - self.energy(state, t)

    def check_kicks(self) -> None:
        """Kick and drift need L = T(q, v) − U(q) and forces that do not depend on the velocity."""
        if self.moving.force_sees_velocity:
            raise BismutError(
                f"The force depends on the velocity, which is not known in a kick at fixed q, so {self.splitting} cannot include it: "
                "use splitting=GLA(bm.Midpoint), or friction= if the force is a friction."
            )
