"""The discrete Legendre transforms of an action, by differentiation.

    p0 = −D₁S_d(q0, q1) − f⁻,        p1 = D₂S_d(q0, q1) + f⁺

With S_d written as a function of both ends and of v = (q1 ⊖ q0)/h, and a0, a1 the covectors that a = ∂S/∂v exerts on the ends,

    D₁S_d = ∂S/∂q0 + a0/h,           D₂S_d = ∂S/∂q1 + a1/h.

Forces act as impulses: the virtual work of F along the same curve, at the very points where the action evaluates the Lagrangian. So the action is
evaluated once to record these points, and then differentiated with L(q, v) replaced by L(q, v) + ⟨F, q ⊖ q̃⟩, F and q̃ held fixed. Random forces
F_j ∘ dW_j do theirs where it evaluates the stochastic potentials: γ_j(q) is ⟨F_j, q ⊖ q̃⟩ for them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action, Lagrangian
from bismut.mechanics.covectors import pair_each
from bismut.mechanics.subsystems import potentials_only
from bismut.programs.dependence import depends
from bismut.spaces import Point, Velocity, add, pair, scale
from bismut.tracing import structural_query


def discrete_lagrangian(action: Action, q0: Point, q1: Point, v: Velocity, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
    """S_d, with v = (q1 ⊖ q0)/h given."""
    return action(action.system.lagrangian, action.system.noise, q0, q1, v, h, dW, t)


class ExplicitVelocities(NamedTuple):
    """The velocities that forces see where an action takes them explicitly: at the start of the step, and half way through the kick of the noise.

    The mean of the velocities before and after a kick makes F_j(q, v) ∘ dW_j a Stratonovich integral; the one before it would make it Itô's.
    """

    force: Velocity
    kick: Velocity


def explicit_velocities(action: Action, q: Point, p: Velocity, dW: Float[Array, " m"], t) -> ExplicitVelocities | None:
    """What forces see in a step from (q, p); None where they see no velocity, or that of the step."""
    system = action.system
    if not (action.explicit_force and system.force_sees_velocity):
        return None
    before = system.velocity(q, p, t)
    if not system.kick_sees_velocity:
        return ExplicitVelocities(before, before)
    return ExplicitVelocities(before, system.velocity(q, add(p, scale(0.5, system.kick(q, before, dW, t))), t))


def momenta(
    action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, explicit: ExplicitVelocities | None = None, conservative: bool = False
) -> tuple[Velocity, Velocity]:
    """(p0, p1) of a step from q0 to q1. `explicit` are the velocities that explicit forces see; `conservative` leaves forces and noise out."""
    space, system = action.space, action.system
    if conservative:
        L, gamma, dW = system.lagrangian, system.noise, jnp.zeros_like(dW)
    else:
        L, gamma = driven(action, q0, q1, v, h, dW, t, explicit, system.lagrangian)

    def S(e0, e1, u):
        return action(L, gamma, space.nudge(q0, e0), space.nudge(q1, e1), u, h, dW, t)

    zero = jax.tree.map(jnp.zeros_like, v)
    at0, at1, a = jax.grad(S, (0, 1, 2))(zero, zero, v)
    a0, a1 = space.ends(q0, q1, scale(h, v), scale(1 / h, a))
    p0, p1 = scale(-1.0, add(at0, a0)), add(at1, a1)
    impulses = None if conservative else action.impulses(q0, q1, h, dW, t)
    return (p0, p1) if impulses is None else (add(p0, scale(-1.0, impulses[0])), add(p1, impulses[1]))


def free_momenta(action: Action, q0: Point, v: Velocity, h, t) -> tuple[Velocity, Velocity]:
    """(p0, p1) where L = T(v) depends on no point: only a = ∂S/∂v is there. How it acts on the ends depends on both of them, if the frame turns."""
    space, system = action.space, action.system
    q1 = space.move(q0, v, h)
    a = jax.grad(lambda u: action(system.lagrangian, system.noise, q0, q1, u, h, jnp.zeros(0, system.dtype), t))(v)
    a0, a1 = space.ends(q0, q1, scale(h, v), scale(1 / h, a))
    return scale(-1.0, a0), a1


class Impulses:
    """D₁S_U and D₂S_U of the part S_U of an action that holds potential, noise and force, where it depends on no velocity."""

    def __init__(self, action: Action, q: Point, h, dW: Float[Array, " m"], t, explicit: ExplicitVelocities | None = None):
        self._action, self._L, self._rest = action, potentials_only(action.system).lagrangian, (h, dW, t)
        self._q, self._v, self._explicit = q, action.space.zero(action.system.dtype), explicit

    def scalar(self, q0: Point, q1: Point) -> Float[Array, ""]:
        """S_U(q0, q1)."""
        action, (h, dW, t) = self._action, self._rest
        v, here, there = self._v, *jax.lax.stop_gradient((q0, q1))
        L, gamma = driven(action, here, there, v, h, dW, t, self._explicit, self._L)
        return action(L, gamma, q0, q1, v, h, dW, t)

    def at_start(self) -> Velocity | None:
        """D₁S_U, None where it vanishes. It does not depend on q1."""
        q = self._q
        return self._action.space.differential(lambda here: self.scalar(here, q), q) if _sees_ends(self._action)[0] else None

    def at_end(self, q1: Point) -> Velocity | None:
        """D₂S_U, None where it vanishes."""
        q = self._q
        return self._action.space.differential(lambda here: self.scalar(q, here), q1) if _sees_ends(self._action)[1] else None


@structural_query
def _sees_ends(action: Action) -> tuple[bool, bool]:
    """Whether S_U depends on either end."""
    space, dtype = action.space, action.system.dtype
    q, one, dW = space.origin(dtype), jnp.ones((), dtype), jnp.zeros(action.channels, dtype)
    S = Impulses(action, q, one, dW, one, explicit_velocities(action, q, space.zero(dtype), dW, one)).scalar
    return depends(lambda q0: S(q0, q), q), depends(lambda q1: S(q, q1), q)


def driven(
    action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, explicit: ExplicitVelocities | None, lagrangian: Lagrangian
) -> tuple[Any, Any]:
    """A Lagrangian and potentials that do the virtual work of the forces as well; those of the system where there are none."""
    space, system = action.space, action.system
    if not system.forced:
        return lagrangian, system.noise
    pushes, kicks = [], []

    def recorded_lagrangian(q, u, time):
        if system.pushed:
            pushes.append((q, system.force(q, u if explicit is None else explicit.force, time)))
        return lagrangian(q, u, time)

    def recorded_noise(q, time):
        if system.random_forces:
            kicks.append((q, system.random_force(q, v if explicit is None else explicit.kick, time)))
        return system.noise(q, time)

    action(recorded_lagrangian, recorded_noise, q0, q1, v, h, dW, t)

    def working(place, force, q, u, time):
        return lagrangian(q, u, time) + pair(force, space.subtract(q, place))

    def shaking(place, forces, q, time):
        work = pair_each(forces, space.subtract(q, place))
        return jnp.concatenate([system.noise(q, time)[: system.potentials], work])

    return _InOrder(working, pushes) if pushes else lagrangian, _InOrder(shaking, kicks) if kicks else system.noise


class _InOrder:
    """A function that is given, call after call, what was recorded at the evaluations of the action, cyclically in the same order."""

    def __init__(self, function: Callable, places: list[tuple]):
        self._function, self._places, self._count = function, places, 0

    def __call__(self, *arguments):
        place = self._places[self._count % len(self._places)]
        self._count += 1
        return self._function(*place, *arguments)
