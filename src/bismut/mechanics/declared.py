"""What a user declares of a system, and what can be read off it without deriving anything.

L(q, v) or H(q, p),   γ(q),   F(q, v),   F_j(q, v),   H_j(q, p),   g(q, t),   all of them with t and parameters if they name them
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import BismutError, nearest
from bismut.host import at_once
from bismut.mechanics.balance import Balance
from bismut.mechanics.dependence import depends, holds_infinity, infinite
from bismut.mechanics.function import UserFunction
from bismut.mechanics.saddle import Touches
from bismut.mechanics.state import State
from bismut.mechanics.symmetry import Symmetry
from bismut.spaces import Dual, Point, Space, Velocity, add
from bismut.tracing import without_numbers

Scalar = Float[Array, ""]


class Declared(eqx.Module):
    """The fields of a system, and its functions as they were given."""

    space: Space = eqx.field(static=True)
    parameters: Any
    dissipation: Any  # None, or (system, q, v, t) ↦ the force that balances heat
    _lagrangian: UserFunction | None = eqx.field(static=True)
    _noise: UserFunction | None = eqx.field(static=True)
    _force: UserFunction | None = eqx.field(static=True)
    _random_force: UserFunction | None = eqx.field(static=True)
    _hamiltonian: UserFunction | None = eqx.field(static=True)
    _noise_hamiltonian: UserFunction | None = eqx.field(static=True)
    _constraint: UserFunction | None = eqx.field(static=True)
    _symmetries: tuple[tuple[str, Symmetry], ...] = eqx.field(static=True)
    _invariants: tuple[tuple[str, UserFunction], ...] = eqx.field(static=True)
    _potential: UserFunction | None = eqx.field(static=True)
    _kinetic: UserFunction | None = eqx.field(static=True)
    _cells: tuple[int, ...] | None = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    random_forces: int = eqx.field(static=True)
    noise_hamiltonians: int = eqx.field(static=True)
    constraints: int = eqx.field(static=True)
    touches: Touches = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.precision)

    @property
    def symmetries(self) -> dict[str, Symmetry]:
        """Names and actions, as they were given."""
        return dict(self._symmetries)

    @property
    def invariants(self) -> dict[str, UserFunction]:
        """Names and functions that every path should keep."""
        return dict(self._invariants)

    def invariant(self, name: str, state: State, t=0.0) -> Float[Array, ...]:
        """The value of a named invariant."""
        if name not in self.invariants:
            raise BismutError(f"This system has no invariant {name!r}. {nearest(name, self.invariants)}")
        return jnp.asarray(self._call(self.invariants[name], state.q, state.p, t=t))

    @property
    def reduced(self) -> bool:
        """Whether states are (a, μ) on the dual of an algebra, after reduction by symmetry, and no pairs of a cotangent bundle."""
        return isinstance(self.space, Dual)

    @property
    def forced(self) -> bool:
        """Whether anything acts that has no potential, be it steady or random."""
        return self.pushed or self._random_force is not None

    @property
    def pushed(self) -> bool:
        """Whether a force acts that is not random."""
        return self._force is not None or self.dissipation is not None

    @property
    def has_impulses(self) -> bool:
        """Whether forces act that a scheme of phase space places at its nodes."""
        return (
            self._random_force is not None or self._force is not None or (self.dissipation is not None and not isinstance(self.dissipation, Balance))
        )

    @property
    def potentials(self) -> int:
        """How many of the Wiener processes, the first, belong to stochastic potentials."""
        return self.channels - self.random_forces - self.noise_hamiltonians

    @property
    @without_numbers
    def force_sees_velocity(self) -> bool:
        """Whether a force, steady or random, depends on the velocity."""
        q, zero = self.space.origin(self.dtype), self.space.zero(self.dtype)
        steady = self.pushed and depends(lambda v: self.force(q, v), zero)
        return steady or self.kick_sees_velocity

    @property
    @without_numbers
    def kick_sees_velocity(self) -> bool:
        """Whether a random force depends on the velocity, so that Itô and Stratonovich differ."""
        q = self.space.origin(self.dtype)
        return self._random_force is not None and depends(lambda v: self.random_force(q, v), self.space.zero(self.dtype))

    @property
    @without_numbers
    def time_dependent(self) -> bool:
        """Whether anything that was declared can change with t: L or H, noise, forces or constraints."""
        q, v = self.space.origin(self.dtype), self.space.zero(self.dtype)
        of_point, of_both = (
            (self._noise, self._constraint),
            (self._lagrangian, self._hamiltonian, self._force, self._random_force, self._noise_hamiltonian),
        )
        named = [(one, (q,)) for one in of_point] + [(one, (q, v)) for one in of_both]
        functions = [(one, at) for one, at in named if one is not None and "t" in one.wants]
        return depends(lambda t: [self._call(one, *at, t=t) for one, at in functions], jnp.zeros((), self.dtype))

    @property
    def has_lagrangian(self) -> bool:
        return self._lagrangian is not None

    @property
    def moves(self) -> bool:
        """Whether it is known how it moves: by a Lagrangian or a Hamiltonian."""
        return self.has_lagrangian or self._hamiltonian is not None

    @property
    @without_numbers
    def energy_depends_on_time(self) -> bool:
        """Whether L, or the H in place of it, can change with t."""
        q, v, t = self.space.origin(self.dtype), self.space.zero(self.dtype), jnp.zeros((), self.dtype)
        function = self._lagrangian if self._hamiltonian is None else self._hamiltonian
        return function is not None and depends(lambda t: self._call(function, q, v, t=t), t)

    @property
    def names_infinity(self) -> bool:
        """Whether L or H holds an infinite number, as a hard wall does, or a parameter is one: then it may be infinite somewhere, which no derivative
        shows."""
        return self._written_with_infinity or any(map(infinite, jax.tree.leaves(self.parameters)))

    @property
    @without_numbers
    def _written_with_infinity(self) -> bool:
        q, v, t = self.space.origin(self.dtype), self.space.zero(self.dtype), jnp.zeros((), self.dtype)
        function = self._lagrangian if self._hamiltonian is None else self._hamiltonian
        return function is not None and holds_infinity(lambda q: self._call(function, q, v, t=t), q)

    @property
    def in_phase_space(self) -> bool:
        """Whether only a scheme of phase space can step it, because noise sees the momentum or H stands for L."""
        return self._hamiltonian is not None or self._noise_hamiltonian is not None

    @property
    def separable(self) -> bool:
        """Whether L = T(v) − U(q) with a T that falls into cells, so that U alone couples them."""
        return self._cells is not None

    @at_once
    def lagrangian(self, q: Point, v: Velocity, t=0.0) -> Scalar:
        """L(q, v)."""
        if self._lagrangian is None:
            raise BismutError("This system has no Lagrangian. Give Discrete(..., system=System(space, lagrangian)) to have energy and velocities.")
        return self._call(self._lagrangian, q, v, t=t)

    @at_once
    def potential(self, q: Point, t=0.0) -> Scalar:
        """U(q) of a system written as L = T − U; of any other, −L at rest."""
        if self._potential is None:
            return -self.lagrangian(q, self.space.zero(self.dtype), t)
        return self._call(self._potential, q, t=t)

    def constraint(self, q: Point, t: Any = 0.0) -> Float[Array, " k"]:
        """g(q, t), zero all along the motion."""
        return jnp.zeros(0, self.dtype) if self._constraint is None else self._call(self._constraint, q, t=t)

    @property
    def moving_constraint(self) -> bool:
        """Whether the surface g(q, t) = 0 moves, because g names t: then it does work."""
        return self._constraint is not None and "t" in self._constraint.wants

    @at_once
    def noise(self, q: Point, t=0.0) -> Float[Array, " m"]:
        """γ(q), one value per Wiener process; 0 for those of random forces and of noise Hamiltonians, which have none."""
        if self._noise is None:
            return jnp.zeros(self.channels, self.dtype)
        values = self._call(self._noise, q, t=t)
        others = self.random_forces + self.noise_hamiltonians
        return jnp.concatenate([values, jnp.zeros(others, self.dtype)]) if others else values

    @at_once
    def force(self, q: Point, v: Velocity, t=0.0) -> Velocity:
        """F(q, v), with the dissipation that balances heat, if any."""
        force = self.space.zero(self.dtype) if self._force is None else self._call(self._force, q, v, t=t)
        return force if self.dissipation is None else add(force, self.dissipation(self, q, v, t))

    @at_once
    def random_force(self, q: Point, v: Velocity, t=0.0) -> Velocity:
        """F_j(q, v), the Wiener process as the first axis of each array."""
        assert self._random_force is not None
        return self._call(self._random_force, q, v, t=t)

    def _call(self, function: UserFunction, *arguments, t):
        return function(*arguments, t=t, parameters=self.parameters)
