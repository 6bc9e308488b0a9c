"""The user's own discrete Lagrangian.

    S_d(q0, q1; h, ΔW) on Q × Q,      and perhaps impulses   f⁻(q0, q1; h, ΔW), f⁺(q0, q1; h, ΔW)   at the ends of a step

Any scalar that approximates the action over one step gives an integrator. With a `system` beside it, energy, velocities and symmetries are known
too; a force in that system is not: a scalar on Q × Q does not say where along the step the force acts. Its impulses do, p0 = −D₁S_d − f⁻ and
p1 = D₂S_d + f⁺, where f⁻·δq0 + f⁺·δq1 is the virtual work of all forces, steady and random, over the step.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.actions.action import Action
from bismut.errors import BismutError, ShapeError
from bismut.mechanics import Claims, System
from bismut.mechanics.function import UserFunction, required_function
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Space, Velocity
from bismut.user_errors import reason_of


class Discrete(Action):
    """S_d(q0, q1, h, dW) as a scheme; it may name `t` and `parameters` too. `channels` is the number of Wiener increments in dW.

    With a system, channels and precision are the system's. `forces` are the impulses (f_minus, f_plus), functions of the same arguments, each with
    the structure of a velocity; they account for all forces of the system.
    """

    scalar: UserFunction = eqx.field(static=True)
    pushes: tuple[UserFunction, UserFunction] | None = eqx.field(static=True)
    claims = Claims(order=None, strong_order=None, weak_order=None, symplectic=True, momentum_maps=True)

    def __init__(
        self,
        space: Space,
        S_d: Callable,
        *,
        channels: int | None = None,
        forces: Any = None,
        system: System | None = None,
        retraction: str | None = None,
        precision: str | None = None,
    ):
        if system is not None and channels not in (None, system.channels):
            raise ShapeError(f"S_d has channels = {channels}, but its system has {system.channels} Wiener processes.")
        if system is not None and precision not in (None, system.precision):
            raise BismutError(f"precision belongs to the system, which has {system.precision!r}, got precision={precision!r}.")
        system = system if system is not None else System(space, None, channels=channels or 0, precision=precision or "float64")
        if system.space != space:
            raise ShapeError(f"S_d lives on {space}, but its system lives on {system.space}.")
        if system.forced and forces is None:
            raise BismutError(
                "A discrete Lagrangian on Q × Q does not define where a force acts. Give its impulses, forces=(f_minus, f_plus), or use "
                "VariationalEuler, Midpoint or Verlet for a forced system."
            )
        self.system = system
        self.retraction = retraction
        self.scalar = scalar = required_function("S_d", S_d, ("q0", "q1", "h", "dW"))
        self.pushes = None if forces is None else _pair(forces)
        q, dW, one = evaluate(lambda: space.origin(system.dtype)), jnp.zeros(system.channels, system.dtype), jnp.ones((), system.dtype)
        try:
            out = jax.eval_shape(lambda: scalar(q, q, one, dW, t=one, parameters=system.parameters))
        except Exception as problem:
            raise ShapeError(f"S_d(q0, q1, h, dW) fails on {space} with {dW.shape[0]} channels: {reason_of(problem)}.") from problem
        if getattr(out, "shape", None) != ():
            raise ShapeError(f"S_d must return one number, got {getattr(out, 'shape', type(out).__name__)}.")
        self._check_impulses(q, one, dW)

    def _check_impulses(self, q: Point, one, dW) -> None:
        want = jax.tree.map(jnp.shape, self.space.zero(self.system.dtype))
        for push in self.pushes or ():
            try:
                got = jax.tree.map(jnp.shape, jax.eval_shape(lambda push=push: self._impulse(push, q, q, one, dW, one)))
            except Exception as problem:
                raise ShapeError(f"{push.name}(q0, q1, h, dW) fails on {self.space} with {dW.shape[0]} channels: {reason_of(problem)}.") from problem
            if got != want:
                raise ShapeError(f"{push.name} must return an impulse shaped like a velocity {want}, got {got}.")

    @property
    def time_dependent(self) -> bool:
        own = any("t" in function.wants for function in (self.scalar, *(self.pushes or ())))
        return (own and self.system.clock is None) or super().time_dependent

    @property
    def forced(self) -> bool:
        return self.pushes is not None

    def impulses(self, q0, q1, h, dW, t):
        return None if self.pushes is None else (self._impulse(self.pushes[0], q0, q1, h, dW, t), self._impulse(self.pushes[1], q0, q1, h, dW, t))

    def _impulse(self, push: UserFunction, q0, q1, h, dW, t) -> Velocity:
        return push(q0, q1, h, dW, t=self.system.time(t), parameters=self.system.parameters)

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        return self.scalar(q0, q1, h, dW, t=self.system.time(t), parameters=self.system.parameters)


def _pair(forces: Any) -> tuple[UserFunction, UserFunction]:
    """Both impulses, each a function."""
    if not isinstance(forces, tuple | list) or len(forces) != 2:
        raise ShapeError(f"forces must be two functions (f_minus, f_plus), the impulses at the ends of a step, got {type(forces).__name__}.")
    if None in forces:
        raise ShapeError("forces must be two functions (f_minus, f_plus), got None. For no impulse, give a function that returns zeros.")
    minus, plus = (required_function(name, one, ("q0", "q1", "h", "dW")) for name, one in zip(("f_minus", "f_plus"), forces, strict=True))
    return minus, plus
