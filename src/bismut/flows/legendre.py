"""The discrete Legendre transforms of an action, by differentiation.

    p0 = −D₁S_d(q0, q1) − f⁻,        p1 = D₂S_d(q0, q1) + f⁺

With S_d written as a function of both ends and of v = (q1 ⊖ q0)/h, and a0, a1 the covectors that a = ∂S/∂v exerts on the ends,

    D₁S_d = ∂S/∂q0 + a0/h,           D₂S_d = ∂S/∂q1 + a1/h.

Forces act as impulses: the virtual work of F along the same curve, at the very points where the action looks at the Lagrangian. So the action is
evaluated once to see where it looks, and then differentiated with L(q, v) replaced by L(q, v) + ⟨F, q ⊖ q̃⟩, F and q̃ held fixed.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action, Lagrangian
from bismut.mechanics.dependence import depends
from bismut.spaces import Point, Velocity, add, pair, scale


def discrete_lagrangian(action: Action, q0: Point, q1: Point, v: Velocity, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
    """S_d, with v = (q1 ⊖ q0)/h given."""
    return action(action.system.lagrangian, action.system.noise, q0, q1, v, h, dW, t)


def momenta(action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, v_force: Velocity | None = None) -> tuple[Velocity, Velocity]:
    """(p0, p1) of a step from q0 to q1. `v_force` is the velocity that an explicit force sees."""
    space, system = action.space, action.system
    L = with_force(action, q0, q1, v, h, dW, t, v_force, system.lagrangian) if system.forced else system.lagrangian

    def S(e0, e1, u):
        return action(L, system.noise, space.nudge(q0, e0), space.nudge(q1, e1), u, h, dW, t)

    zero = jax.tree.map(jnp.zeros_like, v)
    at0, at1, a = jax.grad(S, (0, 1, 2))(zero, zero, v)
    a0, a1 = space.ends(q0, q1, scale(h, v), scale(1 / h, a))
    return scale(-1.0, add(at0, a0)), add(at1, a1)


def free_momenta(action: Action, q0: Point, v: Velocity, h, t) -> tuple[Velocity, Velocity]:
    """(p0, p1) where L = T(v) looks at no point: only a = ∂S/∂v is there."""
    space, system = action.space, action.system
    a = jax.grad(lambda u: action(system.lagrangian, system.noise, q0, q0, u, h, jnp.zeros(0, system.dtype), t))(v)
    a0, a1 = space.ends(q0, q0, scale(h, v), scale(1 / h, a))
    return scale(-1.0, a0), a1


class Impulses:
    """D₁S_U and D₂S_U of the part S_U of an action that holds potential, noise and force, where it looks at no velocity."""

    def __init__(self, action: Action, q: Point, h, dW: Float[Array, " m"], t, v_force: Velocity | None = None):
        self._action, self._L, self._rest = action, action.system.without_kinetic_energy().lagrangian, (h, dW, t)
        self._q, self._v, self._v_force = q, action.space.zero(action.system.dtype), v_force

    def scalar(self, q0: Point, q1: Point) -> Float[Array, ""]:
        """S_U(q0, q1)."""
        action, (h, dW, t) = self._action, self._rest
        v, L = self._v, self._L
        if action.system.forced:
            here, there = jax.lax.stop_gradient((q0, q1))
            L = with_force(action, here, there, v, h, dW, t, self._v_force, L)
        return action(L, action.system.noise, q0, q1, v, h, dW, t)

    def at_start(self) -> Velocity | None:
        """D₁S_U, None where it vanishes. It does not know of q1."""
        q = self._q
        return self._of(lambda here: self.scalar(here, q), q)

    def at_end(self, q1: Point) -> Velocity | None:
        """D₂S_U, None where it vanishes."""
        q = self._q
        return self._of(lambda here: self.scalar(q, here), q1)

    def _of(self, function, q: Point) -> Velocity | None:
        return self._action.space.differential(function, q) if depends(function, q) else None


def with_force(action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, v_force: Velocity | None, lagrangian: Lagrangian):
    """A Lagrangian that does the force's virtual work as well."""
    space, system = action.space, action.system
    seen = []

    def look(q, u, time):
        seen.append((q, system.force(q, u if v_force is None else v_force, time)))
        return lagrangian(q, u, time)

    action(look, system.noise, q0, q1, v, h, dW, t)

    def forced():
        places = iter(seen)

        def L(q, u, time):
            place, force = next(places)
            return lagrangian(q, u, time) + pair(force, space.subtract(q, place))

        return L

    # Each evaluation of the action walks through the same places in the same order.
    return _Restarting(forced, len(seen))


class _Restarting:
    """A Lagrangian that starts over after as many calls as one evaluation of the action makes."""

    def __init__(self, make, calls: int):
        self._make, self._calls, self._count, self._L = make, calls, 0, None

    def __call__(self, q, v, t):
        if self._count % self._calls == 0:
            self._L = self._make()
        self._count += 1
        assert self._L is not None
        return self._L(q, v, t)
