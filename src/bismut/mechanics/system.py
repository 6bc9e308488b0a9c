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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import BismutError, ShapeError, nearest
from bismut.formatting import brief, counted, table
from bismut.mechanics import constraint as holonomic
from bismut.mechanics import newton, small_linalg, validation
from bismut.mechanics.covectors import noise_kick
from bismut.mechanics.function import BoxedParameters, required_function, user_function
from bismut.mechanics.hamiltonian import momentum_of_velocity
from bismut.mechanics.newton import Cells
from bismut.mechanics.state import State, check_drawn
from bismut.mechanics.subsystems import NO_NOISE, QuadraticKinetic, map_subsystems
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system_fields import Scalar, SystemFields, replaced
from bismut.precision import cast_parameters, real_type
from bismut.process import check_process
from bismut.programs.dependence import affine
from bismut.programs.evaluation import numpy_eager
from bismut.spaces import Point, Power, Product, Space, Velocity, pair
from bismut.tracing import structural_query


class System(SystemFields):
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
    parameters  numbers (any tree of arrays) passed to the functions that name an argument `parameters`; arrays of integers stay integers
    contact     not available, and refused with advice
    cells       sizes of the blocks into which ∂L/∂v decomposes, one per array of the velocity; known for `mechanical` systems
    """

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
        contact: Any = None,
    ):
        validation.check_space(space)
        validation.check_constraint(constraint)
        validation.check_contact(contact)
        dtype = real_type(precision)
        self.space = space
        self.precision = precision
        self.parameters = cast_parameters(parameters, dtype)
        self.dissipation = self.clock = None
        self._lagrangian = user_function("lagrangian", lagrangian, ("q", "v"))
        self._noise = user_function("noise", noise, ("q",))
        self._force = user_function("force", force, ("q", "v"))
        self._random_force = user_function("random_force", random_force, ("q", "v"))
        check_process()
        self._hamiltonian = user_function("hamiltonian", hamiltonian, ("q", "p"))
        self._noise_hamiltonian = user_function("noise_hamiltonian", noise_hamiltonian, ("q", "p"))
        self._constraint = user_function("constraint", constraint, ("q",))
        self._potential = user_function("potential", potential, ("q",))
        self._kinetic = user_function("kinetic", kinetic, ("q", "v"))
        if not isinstance(symmetries, Mapping | None):
            raise ShapeError(f'symmetries must be a dictionary such as {{"vertical": bm.left_rotation((0, 0, 1))}}, got {type(symmetries).__name__}.')
        self._symmetries = tuple((symmetries or {}).items())
        self._invariants = tuple(
            (name, required_function(f"invariants[{name!r}]", function, ("q", "p"))) for name, function in (invariants or {}).items()
        )
        self._cells = cells
        self.random_forces = validation.count_forces(self)
        self.noise_hamiltonians = validation.count_hamiltonians(self)
        self.channels = validation.count_values(self, "noise", self._noise, channels or 0, channels) + self.random_forces + self.noise_hamiltonians
        self.constraints = validation.count_values(self, "constraint", self._constraint, 0, None)
        self.constraint_sparsity = ()
        if self.constraints:
            self.constraint_sparsity = holonomic.sparsity(self)
        validation.check(self)

    def kick(self, q: Point, v: Velocity, dW: Float[Array, " m"], t: Any = None) -> Velocity:
        """Σ dγ_i(q) ΔW_i + Σ F_j(q, v) ΔW_j."""
        return noise_kick(self, q, v, dW, t)

    # What follows.

    @numpy_eager
    def momentum(self, q: Point, v: Velocity, t: Any = None) -> Velocity:
        """p = ∂L/∂v. Of L = T − U only T is evaluated: a many-body potential takes long to trace, and longer without compilation."""
        if self._hamiltonian is not None:
            return momentum_of_velocity(self, q, v, t)
        if self._kinetic is not None:
            kinetic = self._kinetic
            return jax.grad(lambda w: self._call(kinetic, q, w, t=t))(v)
        return jax.grad(lambda w: self.lagrangian(q, w, t))(v)

    @numpy_eager
    def velocity(self, q: Point, p: Velocity, t: Any = None) -> Velocity:
        """v with ∂L/∂v (q, v) = p, or ∂H/∂p; NaN where there is none."""
        if self._hamiltonian is not None:
            return jax.grad(lambda p: self.hamiltonian(q, p, t))(p)
        if self.decouples:
            return map_subsystems(self, lambda one, q, p: (one.velocity(q, p, t),), q, p)[0]
        space = self.space
        target = space.flatten(p)

        def residual(x):
            return space.flatten(self.momentum(q, space.unflatten(x), t)) - target

        root = newton.solve(residual, jnp.zeros_like(target), self.cells, linear=self.quadratic)
        return space.unflatten(jnp.where(root.converged, root.x, jnp.nan))

    @numpy_eager
    def energy(self, state: State, t: Any = None) -> Scalar:
        """H = ⟨p, v⟩ − L(q, v)."""
        check_drawn(state)
        if state.box is not None:
            return self.in_box_of(state).energy(State(state.q, state.p), t)
        if self._hamiltonian is not None:
            return self.hamiltonian(state.q, state.p, t)
        v = self.velocity(state.q, state.p, t)
        return pair(state.p, v) - self.lagrangian(state.q, v, t)

    @numpy_eager
    def hamiltonian(self, q: Point, p: Velocity, t: Any = None) -> Scalar:
        """H(q, p), as it was given or from the Lagrangian; of a quadratic one ½⟨p − a, M⁻¹(p − a)⟩ − L(q, 0), which has short derivatives."""
        if self._hamiltonian is not None:
            return self._call(self._hamiltonian, q, p, t=t)
        if self.quadratic and self.space.dim <= small_linalg.UNROLLED:
            rest = self.space.zero(self.dtype)
            relative = self.space.flatten(p) - self.space.flatten(self.momentum(q, rest, t))
            return 0.5 * relative @ small_linalg.solve(self.mass(q, t=t), relative) - self.lagrangian(q, rest, t)
        v = self.velocity(q, p, t)
        return pair(p, v) - self.lagrangian(q, v, t)

    @numpy_eager
    def noise_hamiltonian(self, q: Point, p: Velocity, t: Any = None) -> Float[Array, " m"]:
        """−γ_i(q), and after them H_j(q, p): what every Wiener process moves the system by; 0 for those of random forces."""
        potentials = -self.noise(q, t)[: self.potentials + self.random_forces]
        if self._noise_hamiltonian is None:
            return potentials
        return jnp.concatenate([potentials, self._call(self._noise_hamiltonian, q, p, t=t)])

    def in_box_of(self, state: State) -> System:
        """The system with its box as large as that of a state at constant pressure; itself for any other state."""
        check_drawn(state)
        lengths = state.box
        if lengths is None:
            return self
        acting: Any = None if self._potential is None else self._potential.function
        while hasattr(acting, "inner"):
            acting = acting.inner.function
        if not getattr(acting, "follows_box", False):
            raise BismutError("This state has a box whose sides changed, which this system does not follow. Use that of the scheme, Isobaric(...).")
        return self.replace(parameters=BoxedParameters(self.parameters, lengths))

    @numpy_eager
    def kinetic_energy(self, state: State, t: Any = None) -> Scalar:
        """½⟨p − a, v⟩ with a = ∂L/∂v at v = 0: the part of a quadratic Hamiltonian that measures temperature."""
        check_drawn(state)
        v = self.velocity(state.q, state.p, t)
        at_rest = self.momentum(state.q, jax.tree.map(jnp.zeros_like, v), t)
        return 0.5 * (pair(state.p, v) - pair(at_rest, v))

    @numpy_eager
    def mass(self, q: Point, v: Velocity | None = None, t: Any = None) -> Float[Array, "n n"]:
        """The matrix ∂²L/∂v²."""
        space = self.space
        v = space.zero(self.dtype) if v is None else v
        return jax.jacfwd(lambda x: space.flatten(self.momentum(q, space.unflatten(x), t)))(space.flatten(v))

    def mass_cells(self, q: Point, t: Any) -> list[Float[Array, "count size size"]]:
        """The blocks of ∂²L/∂v² at rest, for each run of cells."""
        space, zero = self.space, self.space.zero(self.dtype)
        push = lambda x: space.flatten(jax.jvp(lambda v: self.momentum(q, v, t), (zero,), (space.unflatten(x),))[1])
        return newton.diagonal_blocks(push, self.cells, self.dtype)

    @numpy_eager
    def momentum_map(self, name: str, state: State) -> Float[Array, ...]:
        """J(q, p) of a named symmetry."""
        check_drawn(state)
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
    def step_cells(self) -> Cells:
        """Blocks of the equation of a step, which couples what the ends of a step couple as well."""
        return newton.dense(self.space.dim) if self.space.mixes_arrays else self.cells

    @property
    @structural_query
    def quadratic(self) -> bool:
        """Whether ∂²L/∂v² evidently does not depend on v, so that the Legendre transform is linear."""
        if not self.has_lagrangian:
            return False
        space = self.space
        zero = jax.eval_shape(lambda: space.zero(self.dtype))
        return affine(lambda v: self.momentum(space.origin(self.dtype), v, jnp.ones((), self.dtype)), zero)

    @property
    def constant_mass(self) -> bool:
        """Whether T = ½⟨v, M v⟩ with constant masses that decouple into cells."""
        return self._kinetic is not None and isinstance(self._kinetic.function, QuadraticKinetic)

    @property
    def decouples(self) -> bool:
        """Whether T is the sum of those of several subsystems: factors of a product, bodies of a power."""
        return self.constant_mass and isinstance(self.space, Power | Product)

    def at(self, t: Any) -> System:
        """The same system with its clock fixed at t: whatever names t is evaluated there."""
        return self.replace(clock=t)

    def with_parameters(self, parameters: Any) -> System:
        """The same system with other numbers; nothing is recompiled."""
        new = cast_parameters(parameters, self.dtype)
        if jax.tree.structure(new) != jax.tree.structure(self.parameters):
            raise ShapeError(f"The parameters must keep their structure {jax.tree.structure(self.parameters)}, got {jax.tree.structure(new)}.")
        return self.replace(parameters=new)

    def using(self, retraction: str) -> System:
        """The same system on its space with another retraction."""
        return self.replace(space=self.space.using(retraction))

    def without_noise(self) -> System:
        return self.replace(**NO_NOISE)

    def with_dissipation(self, dissipation: Any) -> System:
        """The same system with a force (system, q, v, t) ↦ covector that balances heat, beside its own."""
        return self.replace(dissipation=dissipation)

    def replace(self, **fields) -> System:
        """A copy with other fields, not checked again."""
        return replaced(self, **fields)

    def describe(self) -> list[tuple[str, str]]:
        """What is known of the system, line by line."""
        form = "T(v) − U(q)" if self.separable else "L(q, v)" if self.has_lagrangian else "none"
        optional = {
            "noise Hamiltonians": self.noise_hamiltonians,
            "force": self.pushed and ("friction that balances the noise" if self._force is None else "F(q, v)"),
            "random forces": self.random_forces,
            "constraints": self.constraints,
            **{f"symmetry {name}": symmetry.description for name, symmetry in self.symmetries.items()},
            "invariants": ", ".join(self.invariants),
            "parameters": brief(self.parameters) if jax.tree.leaves(self.parameters) else "",
            "precision": self.precision if self.precision != "float64" else "",
        }
        return [
            ("degrees of freedom", str(self.freedom)),
            ("Lagrangian", form) if self._hamiltonian is None else ("Hamiltonian", "H(a, μ)" if self.reduced else "H(q, p)"),
            ("Wiener processes", str(self.channels)),
            *((name, str(value)) for name, value in optional.items() if value),
        ]

    def __repr__(self) -> str:
        parts = [
            str(self.space),
            self.channels and counted(self.channels, "Wiener process", "Wiener processes"),
            self.pushed and "forced",
            self.random_forces and counted(self.random_forces, "random force"),
            self.noise_hamiltonians and counted(self.noise_hamiltonians, "noise Hamiltonian"),
            self.constraints and counted(self.constraints, "constraint"),
            self.symmetries and f"symmetries {', '.join(self.symmetries)}",
            self.invariants and f"invariants {', '.join(self.invariants)}",
            jax.tree.leaves(self.parameters) and f"parameters {brief(self.parameters)}",
        ]
        return f"System({'; '.join(str(part) for part in parts if part)})"

    def _repr_html_(self) -> str:
        return table(f"System on {self.space}", self.describe())
