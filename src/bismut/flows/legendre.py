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

from bismut.actions.action import Action
from bismut.spaces import Point, Velocity, add, pair, scale


def discrete_lagrangian(action: Action, q0: Point, q1: Point, v: Velocity, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
    """S_d, with v = (q1 ⊖ q0)/h given."""
    return action(action.system.lagrangian, action.system.noise, q0, q1, v, h, dW, t)


def momenta(action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, v_force: Velocity | None = None) -> tuple[Velocity, Velocity]:
    """(p0, p1) of a step from q0 to q1. `v_force` is the velocity that an explicit force sees."""
    space, system = action.space, action.system
    L = with_force(action, q0, q1, v, h, dW, t, v_force) if system.forced else system.lagrangian

    def S(e0, e1, u):
        return action(L, system.noise, space.nudge(q0, e0), space.nudge(q1, e1), u, h, dW, t)

    zero = jax.tree.map(jnp.zeros_like, v)
    at0, at1, a = jax.grad(S, (0, 1, 2))(zero, zero, v)
    a0, a1 = space.ends(q0, q1, scale(h, v), scale(1 / h, a))
    return scale(-1.0, add(at0, a0)), add(at1, a1)


def with_force(action: Action, q0: Point, q1: Point, v: Velocity, h, dW, t, v_force: Velocity | None):
    """The Lagrangian that does the force's virtual work as well."""
    space, system = action.space, action.system
    seen = []

    def look(q, u, time):
        seen.append((q, system.force(q, u if v_force is None else v_force, time)))
        return system.lagrangian(q, u, time)

    action(look, system.noise, q0, q1, v, h, dW, t)

    def forced():
        places = iter(seen)

        def L(q, u, time):
            place, force = next(places)
            return system.lagrangian(q, u, time) + pair(force, space.subtract(q, place))

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
