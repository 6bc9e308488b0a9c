"""A mechanical system: what nature does.

    S = ∫ L(q, v) dt + Σ γ_i(q) ∘ dW_i + ⟨p, dq/dt − v⟩ dt + ⟨dΛ, g(q, t)⟩ ,       plus the virtual work of F(q, v) dt + Σ F_j(q, v) ∘ dW_j
    S = ∫ ⟨p, dq⟩ − H(q, p) dt + Σ γ_i(q) ∘ dW_i − Σ H_j(q, p) ∘ dW_j          where noise sees the momentum, or H is given instead of L

A space, a Lagrangian, stochastic potentials and perhaps forces, steady and random, and constraints g(q) = 0; energy, momentum, the Legendre transform
both ways and the momentum maps of its symmetries are derived. Wrong shapes, a Lagrangian that is NaN and a degenerate one are refused here,
before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import BismutError, ShapeError, nearest
from bismut.host import at_once
from bismut.mechanics import constraint as holonomic
from bismut.mechanics import newton, refusals, small
from bismut.mechanics.balance import Balance
from bismut.mechanics.dependence import affine, depends
from bismut.mechanics.function import UserFunction, user_function, wanted
from bismut.mechanics.hamiltonian import of_velocity
from bismut.mechanics.kicks import kick
from bismut.mechanics.kinetic import Quadratic
from bismut.mechanics.newton import Cells
from bismut.mechanics.saddle import Touches
from bismut.mechanics.state import State
from bismut.mechanics.symmetry import Symmetry
from bismut.precision import cast, real_type
from bismut.repetition import each
from bismut.showing import brief, counted, table
from bismut.spaces import Dual, Point, Power, Product, Space, Velocity, add, pair
from bismut.tracing import without_numbers

Scalar = Float[Array, ""]
# A system without noise.
_QUIET = {"_noise": None, "_random_force": None, "_noise_hamiltonian": None, "channels": 0, "random_forces": 0, "noise_hamiltonians": 0}


class System(eqx.Module):
    """Space, Lagrangian, stochastic potentials, force and symmetries.

    lagrangian  L(q, v), one number
    noise       γ(q), one value per Wiener process, as one array
    force       F(q, v), a covector with the structure of a velocity; on a group a torque in the body (`in_space` takes torques in space)
    random_force  F_j(q, v), such covectors with an extra leading axis, one per Wiener process; these come after those of the noise
    hamiltonian   H(q, p), one number, in place of a Lagrangian; it may be degenerate
    noise_hamiltonian  H_j(q, p), one value per Wiener process, as one array; these come last
    constraint  g(q), one value per constraint, as one array; the motion keeps g = 0. The constraint moves if it names t
    symmetries  names and actions whose momentum maps are of interest
    invariants  names and functions I(q, p) that every path should conserve, whatever the noise; `verify` checks them
    parameters  numbers (any tree of arrays) passed to the functions that name an argument `parameters`
    cells       sizes of the blocks into which ∂L/∂v decomposes, one per array of the velocity; known for `mechanical` systems
    """

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

    def __init__(
        self,
        space: Space,
        lagrangian: Callable | None = None,
        noise: Callable | None = None,
        force: Callable | None = None,
        symmetries: Mapping[str, Symmetry] | None = None,
        *,
        random_force: Callable | None = None,
        hamiltonian: Callable | None = None,
        noise_hamiltonian: Callable | None = None,
        constraint: Callable | None = None,
        invariants: Mapping[str, Callable] | None = None,
        parameters: Any = None,
        potential: Callable | None = None,
        kinetic: Callable | None = None,
        cells: tuple[int, ...] | None = None,
        channels: int | None = None,
        precision: str = "float64",
    ):
        if not isinstance(space, Space):
            raise ShapeError(f"space must be a configuration space such as SO3() or Euclidean(2), got {type(space).__name__}.")
        dtype = real_type(precision)
        self.space = space
        self.precision = precision
        self.parameters = cast(parameters, dtype)
        self.dissipation = None
        self._lagrangian = user_function("lagrangian", lagrangian, ("q", "v"))
        self._noise = user_function("noise", noise, ("q",))
        self._force = user_function("force", force, ("q", "v"))
        self._random_force = user_function("random_force", random_force, ("q", "v"))
        self._hamiltonian = user_function("hamiltonian", hamiltonian, ("q", "p"))
        self._noise_hamiltonian = user_function("noise_hamiltonian", noise_hamiltonian, ("q", "p"))
        self._constraint = user_function("constraint", constraint, ("q",))
        self._potential = user_function("potential", potential, ("q",))
        self._kinetic = user_function("kinetic", kinetic, ("q", "v"))
        if not isinstance(symmetries, Mapping | None):
            raise ShapeError(f'symmetries must be a dictionary such as {{"vertical": bm.left_rotation((0, 0, 1))}}, got {type(symmetries).__name__}.')
        self._symmetries = tuple((symmetries or {}).items())
        self._invariants = tuple((name, wanted(f"invariants[{name!r}]", function, ("q", "p"))) for name, function in (invariants or {}).items())
        self._cells = cells
        self.random_forces = refusals.count_forces(self)
        self.noise_hamiltonians = refusals.count_hamiltonians(self)
        self.channels = refusals.count(self, "noise", self._noise, channels or 0, channels) + self.random_forces + self.noise_hamiltonians
        self.constraints = refusals.count(self, "constraint", self._constraint, 0, None)
        self.touches = ()
        if self.constraints:
            self.touches = holonomic.touches(self)
        refusals.check(self)

    # What the user wrote.

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
    def has_lagrangian(self) -> bool:
        return self._lagrangian is not None

    @property
    def moves(self) -> bool:
        """Whether it is known how it moves: by a Lagrangian or a Hamiltonian."""
        return self.has_lagrangian or self._hamiltonian is not None

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

    def kick(self, q: Point, v: Velocity, dW: Float[Array, " m"], t=0.0) -> Velocity:
        """Σ dγ_i(q) ΔW_i + Σ F_j(q, v) ΔW_j."""
        return kick(self, q, v, dW, t)

    def _call(self, function: UserFunction, *arguments, t):
        return function(*arguments, t=t, parameters=self.parameters)

    # What follows.

    @at_once
    def momentum(self, q: Point, v: Velocity, t=0.0) -> Velocity:
        """p = ∂L/∂v. Of L = T − U only T is evaluated: a many-body potential takes long to trace, and longer without compilation."""
        if self._hamiltonian is not None:
            return of_velocity(self, q, v, t)
        if self._kinetic is not None:
            kinetic = self._kinetic
            return jax.grad(lambda w: self._call(kinetic, q, w, t=t))(v)
        return jax.grad(lambda w: self.lagrangian(q, w, t))(v)

    @at_once
    def velocity(self, q: Point, p: Velocity, t=0.0) -> Velocity:
        """v with ∂L/∂v (q, v) = p, or ∂H/∂p; NaN where there is none."""
        if self._hamiltonian is not None:
            return jax.grad(lambda p: self.hamiltonian(q, p, t))(p)
        if self.falls_apart:
            return self.apart(lambda piece, q, p: (piece.velocity(q, p, t),), q, p)[0]
        space = self.space
        target = space.flatten(p)

        def residual(x):
            return space.flatten(self.momentum(q, space.unflatten(x), t)) - target

        root = newton.solve(residual, jnp.zeros_like(target), self.cells, linear=self.quadratic)
        return space.unflatten(jnp.where(root.converged, root.x, jnp.nan))

    @at_once
    def energy(self, state: State, t=0.0) -> Scalar:
        """H = ⟨p, v⟩ − L(q, v)."""
        if self._hamiltonian is not None:
            return self.hamiltonian(state.q, state.p, t)
        v = self.velocity(state.q, state.p, t)
        return pair(state.p, v) - self.lagrangian(state.q, v, t)

    @at_once
    def hamiltonian(self, q: Point, p: Velocity, t=0.0) -> Scalar:
        """H(q, p), as it was given or from the Lagrangian; of a quadratic one ½⟨p − a, M⁻¹(p − a)⟩ − L(q, 0), which has short derivatives."""
        if self._hamiltonian is not None:
            return self._call(self._hamiltonian, q, p, t=t)
        if self.quadratic and self.space.dim <= small.UNROLLED:
            rest = self.space.zero(self.dtype)
            relative = self.space.flatten(p) - self.space.flatten(self.momentum(q, rest, t))
            return 0.5 * relative @ small.solve(self.mass(q, t=t), relative) - self.lagrangian(q, rest, t)
        v = self.velocity(q, p, t)
        return pair(p, v) - self.lagrangian(q, v, t)

    @at_once
    def noise_hamiltonian(self, q: Point, p: Velocity, t=0.0) -> Float[Array, " m"]:
        """−γ_i(q), and after them H_j(q, p): what every Wiener process moves the system by; 0 for those of random forces."""
        potentials = -self.noise(q, t)[: self.potentials + self.random_forces]
        if self._noise_hamiltonian is None:
            return potentials
        return jnp.concatenate([potentials, self._call(self._noise_hamiltonian, q, p, t=t)])

    @at_once
    def kinetic_energy(self, state: State, t=0.0) -> Scalar:
        """½⟨p − a, v⟩ with a = ∂L/∂v at v = 0: the part of a quadratic Hamiltonian that measures temperature."""
        v = self.velocity(state.q, state.p, t)
        at_rest = self.momentum(state.q, jax.tree.map(jnp.zeros_like, v), t)
        return 0.5 * (pair(state.p, v) - pair(at_rest, v))

    @at_once
    def mass(self, q: Point, v: Velocity | None = None, t=0.0) -> Float[Array, "n n"]:
        """The matrix ∂²L/∂v²."""
        space = self.space
        v = space.zero(self.dtype) if v is None else v
        return jax.jacfwd(lambda x: space.flatten(self.momentum(q, space.unflatten(x), t)))(space.flatten(v))

    def mass_cells(self, q: Point, t=0.0) -> list[Float[Array, "count size size"]]:
        """The blocks of ∂²L/∂v² at rest, for each run of cells."""
        space, zero = self.space, self.space.zero(self.dtype)
        push = lambda x: space.flatten(jax.jvp(lambda v: self.momentum(q, v, t), (zero,), (space.unflatten(x),))[1])
        return newton.blocks(push, self.cells, self.dtype)

    @at_once
    def momentum_map(self, name: str, state: State) -> Float[Array, ...]:
        """J(q, p) of a named symmetry."""
        if name not in self.symmetries:
            raise BismutError(f"This system has no symmetry {name!r}. {nearest(name, self.symmetries)}")
        return self.symmetries[name].momentum(self.space, state.q, state.p)

    @property
    def freedom(self) -> int:
        """Degrees of freedom left by the constraints."""
        return self.space.dim - self.constraints

    @property
    def cells(self) -> Cells:
        """Blocks of the Legendre transform, for the solver."""
        leaves = jax.tree.leaves(jax.eval_shape(self.space.zero))
        if self._cells is None:
            return newton.dense(sum(leaf.size for leaf in leaves))
        return Cells(tuple((leaf.size // size, size) for leaf, size in zip(leaves, self._cells, strict=True)))

    @property
    @without_numbers
    def quadratic(self) -> bool:
        """Whether ∂²L/∂v² evidently does not depend on v, so that the Legendre transform is linear."""
        if not self.has_lagrangian:
            return False
        space = self.space
        zero = jax.eval_shape(lambda: space.zero(self.dtype))
        return affine(lambda v: self.momentum(space.origin(self.dtype), v, 0.0), zero)

    @property
    def inert(self) -> bool:
        """Whether T = ½⟨v, M v⟩ with constant masses that fall into cells."""
        return self._kinetic is not None and isinstance(self._kinetic.function, Quadratic)

    @property
    def falls_apart(self) -> bool:
        """Whether T is the sum of those of several pieces: factors of a product, bodies of a power."""
        return self.inert and isinstance(self.space, Power | Product)

    def apart(self, function: Callable[..., tuple], *trees: Any) -> tuple:
        """function(piece, *parts), a tuple of trees, for every piece of the free system; each entry as the space holds its pieces."""
        if not self.falls_apart:
            return function(self, *trees)
        assert self._kinetic is not None
        space, kinetic = self.space, self._kinetic.function
        assert isinstance(kinetic, Quadratic)
        if isinstance(space, Power):
            return each(lambda masses, *parts: self._piece(kinetic.one(masses)).apart(function, *parts), kinetic.masses, *trees)
        found = [self._piece(factor).apart(function, *parts) for factor, *parts in zip(kinetic.factors(), *trees, strict=True)]
        return tuple(zip(*found, strict=True))

    def _piece(self, kinetic: Quadratic) -> System:
        """Free motion with a kinetic energy of fewer bodies."""
        T, cells = UserFunction("kinetic", kinetic, ()), _cells_of(kinetic)
        nothing = UserFunction("potential", lambda q: jnp.zeros((), self.dtype), ())
        changed = {"_lagrangian": T, "_kinetic": T, "_potential": nothing, "_force": None, "dissipation": None, **_QUIET}
        return self._changed(space=kinetic.space, _cells=cells, parameters=None, _symmetries=(), **changed)

    def with_parameters(self, parameters: Any) -> System:
        """The same system with other numbers; nothing is recompiled."""
        new = cast(parameters, self.dtype)
        if jax.tree.structure(new) != jax.tree.structure(self.parameters):
            raise ShapeError(f"The parameters must keep their structure {jax.tree.structure(self.parameters)}, got {jax.tree.structure(new)}.")
        return self._changed(parameters=new)

    def without_kinetic_energy(self) -> System:
        """The same potentials with L = −U: what couples the cells of a separable system."""
        potential = self._potential
        assert potential is not None
        minus = UserFunction("lagrangian", lambda q, v, t, parameters: -potential(q, t=t, parameters=parameters), ("t", "parameters"))
        return self._changed(_lagrangian=minus, _kinetic=None)

    def without_potential(self) -> System:
        """The same constraints with L = T alone, and neither noise nor force: free motion."""
        if self._kinetic is None:
            whole = self._lagrangian
            assert whole is not None

            def kinetic(q, v, t, parameters):
                at_rest = self.space.zero(self.dtype)
                return whole(q, v, t=t, parameters=parameters) - whole(q, at_rest, t=t, parameters=parameters)

            free = UserFunction("kinetic", kinetic, ("t", "parameters"))
        else:
            free = self._kinetic
        nothing = UserFunction("potential", lambda q: jnp.zeros((), self.dtype), ())
        return self._changed(_lagrangian=free, _potential=nothing, _force=None, dissipation=None, **_QUIET)

    def using(self, retraction: str) -> System:
        """The same system on its space with another retraction."""
        return self._changed(space=self.space.using(retraction))

    def without_noise(self) -> System:
        return self._changed(**_QUIET)

    def with_dissipation(self, dissipation: Any) -> System:
        """The same system with a force (system, q, v, t) ↦ covector that balances heat, beside its own."""
        return self._changed(dissipation=dissipation)

    def __repr__(self) -> str:
        what = [counted(self.channels, "Wiener process", "Wiener processes")] if self.channels else []
        what += ["forced"] if self.pushed else []
        what += [counted(self.random_forces, "random force")] if self.random_forces else []
        what += [counted(self.noise_hamiltonians, "noise Hamiltonian")] if self.noise_hamiltonians else []
        what += [counted(self.constraints, "constraint")] if self.constraints else []
        what += [f"symmetries {', '.join(self.symmetries)}"] if self.symmetries else []
        what += [f"invariants {', '.join(self.invariants)}"] if self.invariants else []
        what += [f"parameters {brief(self.parameters)}"] if jax.tree.leaves(self.parameters) else []
        return f"System({'; '.join([str(self.space), *what])})"

    def shown(self) -> list[tuple[str, str]]:
        """What is known of the system, line by line, for a table."""
        form = "T(v) − U(q)" if self.separable else "L(q, v)" if self.has_lagrangian else "none"
        form = ("Lagrangian", form) if self._hamiltonian is None else ("Hamiltonian", "H(a, μ)" if self.reduced else "H(q, p)")
        rows = [("degrees of freedom", str(self.freedom)), form, ("Wiener processes", str(self.channels))]
        rows += [("noise Hamiltonians", str(self.noise_hamiltonians))] if self.noise_hamiltonians else []
        rows += [("force", "friction that balances the noise" if self._force is None else "F(q, v)")] if self.pushed else []
        rows += [("random forces", str(self.random_forces))] if self.random_forces else []
        rows += [("constraints", str(self.constraints))] if self.constraints else []
        rows += [(f"symmetry {name}", symmetry.words) for name, symmetry in self._symmetries]
        rows += [("invariants", ", ".join(self.invariants))] if self.invariants else []
        rows += [("parameters", brief(self.parameters))] if jax.tree.leaves(self.parameters) else []
        return rows if self.precision == "float64" else [*rows, ("precision", self.precision)]

    def _repr_html_(self) -> str:
        return table(f"System on {self.space}", self.shown())

    def _changed(self, **fields) -> System:
        """A copy with other fields, not checked again."""
        new = object.__new__(System)
        for name in System.__dataclass_fields__:
            object.__setattr__(new, name, fields.get(name, getattr(self, name)))
        return new


def _cells_of(kinetic: Quadratic) -> tuple[int, ...]:
    """The sizes of the cells that a kinetic energy and the ends of a step couple, one for each array of the velocity."""
    leaves = jax.tree.leaves(jax.eval_shape(kinetic.space.zero))
    masses = jax.tree.leaves(kinetic.masses)
    return tuple(v.shape[-1] if m.ndim > v.ndim else cell for m, v, cell in zip(masses, leaves, kinetic.space.cells(), strict=True))
