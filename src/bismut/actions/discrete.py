"""The user's own discrete Lagrangian.

    S_d(q0, q1; h, ΔW) on Q × Q

Any scalar that approximates the action over one step gives an integrator. With a `system` beside it, energy, velocities and symmetries are known
too; a force in that system is not: a scalar on Q × Q does not say where along the step the force acts.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.actions.action import Action
from bismut.blame import why
from bismut.errors import BismutError, ShapeError
from bismut.mechanics import Claims, System
from bismut.mechanics.law import Law, law
from bismut.spaces import Space


class Discrete(Action):
    """S_d(q0, q1, h, dW) as a scheme; it may name `t` and `parameters` too. `channels` is the number of Wiener increments in dW.

    With a system, channels and precision are the system's.
    """

    scalar: Law = eqx.field(static=True)
    claims = Claims(order=None, strong_order=None, weak_order=None, symplectic=True, momentum_maps=True)

    def __init__(
        self,
        space: Space,
        S_d: Callable,
        *,
        channels: int | None = None,
        system: System | None = None,
        retraction: str | None = None,
        precision: str | None = None,
    ):
        if system is not None and channels not in (None, system.channels):
            raise ShapeError(f"S_d has channels = {channels}, but its system has {system.channels} Wiener processes.")
        if system is not None and precision not in (None, system.precision):
            raise BismutError(f"precision={precision!r} came, but precision belongs to the system, which has {system.precision!r}.")
        system = system if system is not None else System(space, None, channels=channels or 0, precision=precision or "float64")
        if system.space != space:
            raise ShapeError(f"S_d lives on {space}, but its system lives on {system.space}.")
        if system.forced:
            raise BismutError(
                "A discrete Lagrangian on Q × Q does not say where a force acts. Use VariationalEuler, Midpoint or Verlet for a forced system."
            )
        self.system = system
        self.retraction = retraction
        scalar = law("S_d", S_d, ("q0", "q1", "h", "dW"))
        assert scalar is not None
        self.scalar = scalar
        q, dW, one = space.origin(system.dtype), jnp.zeros(system.channels, system.dtype), jnp.ones((), system.dtype)
        try:
            out = jax.eval_shape(lambda: scalar(q, q, one, dW, t=one, parameters=system.parameters))
        except Exception as problem:
            raise ShapeError(f"S_d(q0, q1, h, dW) fails on {space} with {dW.shape[0]} channels: {why(problem)}.") from problem
        if getattr(out, "shape", None) != ():
            raise ShapeError(f"S_d must return one number, but {getattr(out, 'shape', type(out).__name__)} came.")

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        return self.scalar(q0, q1, h, dW, t=t, parameters=self.system.parameters)
