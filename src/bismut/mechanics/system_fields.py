"""What a user declares of a system, and what can be read off it without deriving anything.

    L(q, v) or H(q, p),   γ(q),   F(q, v),   F_j(q, v),   H_j(q, p),   g(q, t),   all of them with t and parameters if they name them

Time is an argument of whatever can depend on it. `system.at(t)` is the system with its clock fixed; without either, functions of t are refused.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import BismutError, nearest
from bismut.mechanics.fluctuation_dissipation import BracketDissipation
from bismut.mechanics.function import UserFunction
from bismut.mechanics.kkt import Sparsity
from bismut.mechanics.state import State, check_drawn
from bismut.mechanics.symmetry import Symmetry
from bismut.programs import custom_gradients
from bismut.programs.dependence import depends, holds_infinity, infinite
from bismut.programs.evaluation import numpy_eager
from bismut.spaces import Dual, Point, Space, Velocity, add
from bismut.tracing import structural_query

Scalar = Float[Array, ""]


class SystemFields(eqx.Module):
    """The fields of a system, and its functions as they were given."""

    space: Space = eqx.field(static=True)
    parameters: Any
    clock: Any  # None, or the time at which everything is evaluated, whatever t is given
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
    constraint_sparsity: Sparsity = eqx.field(static=True)
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

    def invariant(self, name: str, state: State, t: Any = None) -> Float[Array, ...]:
        """The value of a named invariant."""
        check_drawn(state)
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
        steady = self._force is not None or (self.dissipation is not None and not isinstance(self.dissipation, BracketDissipation))
        return steady or self._random_force is not None

    @property
    def potentials(self) -> int:
        """How many of the Wiener processes, the first, belong to stochastic potentials."""
        return self.channels - self.random_forces - self.noise_hamiltonians

    def _anywhere(self) -> tuple[Point, Velocity, Scalar]:
        """A point, a velocity and a time, for questions about structure."""
        return self.space.origin(self.dtype), self.space.zero(self.dtype), jnp.ones((), self.dtype)

    @property
    @structural_query
    def force_sees_velocity(self) -> bool:
        """Whether a force, steady or random, depends on the velocity."""
        q, v, t = self._anywhere()
        return (self.pushed and depends(lambda v: self.force(q, v, t), v)) or self.kick_sees_velocity

    @property
    @structural_query
    def kick_sees_velocity(self) -> bool:
        """Whether a random force depends on the velocity, so that Itô and Stratonovich differ."""
        q, v, t = self._anywhere()
        return self._random_force is not None and depends(lambda v: self.random_force(q, v, t), v)

    @property
    @structural_query
    def constraint_has_jvp(self) -> bool:
        """Whether g has derivatives along a direction. With a jax.custom_vjp in it, it has only gradients."""
        q, _, t = self._anywhere()
        return not custom_gradients(lambda q: self.constraint(q, t), q)

    @property
    @structural_query
    def noise_has_jvp(self) -> bool:
        """The same of noise: γ and H_j."""
        q, p, t = self._anywhere()
        functions = [(one, at) for one, at in ((self._noise, (q,)), (self._noise_hamiltonian, (q, p))) if one is not None]
        return not any(custom_gradients(lambda *at, one=one: self._call(one, *at, t=t), *at) for one, at in functions)

    @property
    @structural_query
    def time_dependent(self) -> bool:
        """Whether anything can change with t: L or H, noise, forces, constraints, or the temperature of a balancing friction."""
        q, v, t = self._anywhere()
        of_point, of_both = [self._noise, self._constraint], [self._lagrangian, self._hamiltonian, self._force, self._random_force]
        named = [(one, (q,)) for one in of_point] + [(one, (q, v)) for one in (*of_both, self._noise_hamiltonian)]
        functions = [(one, at) for one, at in named if one is not None and "t" in one.wants]
        heated = getattr(getattr(self.dissipation, "temperature", None), "time_dependent", False) and self.clock is None
        return heated or depends(lambda t: [self._call(one, *at, t=t) for one, at in functions], t)

    @property
    def has_lagrangian(self) -> bool:
        return self._lagrangian is not None

    @property
    def moves(self) -> bool:
        """Whether it is known how it moves: by a Lagrangian or a Hamiltonian."""
        return self.has_lagrangian or self._hamiltonian is not None

    @property
    @structural_query
    def energy_depends_on_time(self) -> bool:
        """Whether L, or the H in place of it, can change with t."""
        q, v, t = self._anywhere()
        function = self._lagrangian if self._hamiltonian is None else self._hamiltonian
        return function is not None and depends(lambda t: self._call(function, q, v, t=t), t)

    @property
    def names_infinity(self) -> bool:
        """Whether L or H holds an infinite number, as a hard wall does, or a parameter is one: then it may be infinite somewhere, which no derivative
        shows."""
        return self._written_with_infinity or any(map(infinite, jax.tree.leaves(self.parameters)))

    @property
    @structural_query
    def _written_with_infinity(self) -> bool:
        q, v, t = self._anywhere()
        function = self._lagrangian if self._hamiltonian is None else self._hamiltonian
        return function is not None and holds_infinity(lambda q: self._call(function, q, v, t=t), q)

    @property
    def in_phase_space(self) -> bool:
        """Whether only a scheme of phase space can step it, because noise sees the momentum or H stands for L."""
        return self._hamiltonian is not None or self._noise_hamiltonian is not None

    @property
    def separable(self) -> bool:
        """Whether L = T(v) − U(q) with a T that decouples into cells, so that U alone couples them."""
        return self._cells is not None

    @numpy_eager
    def lagrangian(self, q: Point, v: Velocity, t: Any = None) -> Scalar:
        """L(q, v)."""
        if self._lagrangian is None:
            raise BismutError("This system has no Lagrangian. Give Discrete(..., system=System(space, lagrangian)) to have energy and velocities.")
        return self._call(self._lagrangian, q, v, t=t)

    @numpy_eager
    def potential(self, q: Point, t: Any = None) -> Scalar:
        """U(q) of a system written as L = T − U; of any other, −L at rest."""
        if self._potential is None:
            return -self.lagrangian(q, self.space.zero(self.dtype), t)
        return self._call(self._potential, q, t=t)

    @numpy_eager
    def constraint(self, q: Point, t: Any = None) -> Float[Array, " k"]:
        """g(q, t), zero all along the motion."""
        return jnp.zeros(0, self.dtype) if self._constraint is None else self._call(self._constraint, q, t=t)

    @property
    def moving_constraint(self) -> bool:
        """Whether the surface g(q, t) = 0 moves, because g names t: then it does work."""
        return self._constraint is not None and "t" in self._constraint.wants and self.clock is None

    @numpy_eager
    def noise(self, q: Point, t: Any = None) -> Float[Array, " m"]:
        """γ(q), one value per Wiener process; 0 for those of random forces and of noise Hamiltonians, which have none."""
        if self._noise is None:
            return jnp.zeros(self.channels, self.dtype)
        values = self._call(self._noise, q, t=t)
        others = self.random_forces + self.noise_hamiltonians
        return jnp.concatenate([values, jnp.zeros(others, self.dtype)]) if others else values

    @numpy_eager
    def force(self, q: Point, v: Velocity, t: Any = None) -> Velocity:
        """F(q, v), with the dissipation that balances heat, if any."""
        force = self.space.zero(self.dtype) if self._force is None else self._call(self._force, q, v, t=t)
        return force if self.dissipation is None else add(force, self.dissipation(self, q, v, self.time(t)))

    @numpy_eager
    def random_force(self, q: Point, v: Velocity, t: Any = None) -> Velocity:
        """F_j(q, v), the Wiener process as the first axis of each array."""
        assert self._random_force is not None
        return self._call(self._random_force, q, v, t=t)

    def time(self, t: Any) -> Any:
        """The time at which functions are evaluated: t, or that of a fixed clock."""
        return t if self.clock is None else self.clock

    def _call(self, function: UserFunction, *arguments, t):
        return function(*arguments, t=self.time(t), parameters=self.parameters)


def replaced(module: Any, **changes: Any) -> Any:
    """A copy of a module with other fields, not checked again."""
    new = object.__new__(type(module))
    for name in (field.name for field in fields(module)):  # class variables, such as claims, are no fields
        object.__setattr__(new, name, changes.get(name, getattr(module, name)))  # fields are frozen once `__init__` is over
    return new
