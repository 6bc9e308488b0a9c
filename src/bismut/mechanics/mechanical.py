"""Systems of the form L = ½⟨v, M v⟩ − U(q).

What is gained over a bare Lagrangian: the kinetic energy is known to decouple into cells (single coordinates, single bodies), so explicit and
per-body solves follow, and the mass is at hand for heat baths.

Masses and frictions are numbers that belong to the components of a velocity, for each of its arrays

    a number,   an array that broadcasts to the velocity's shape,   or symmetric matrices of its shape with the last axis repeated: (n, n), (K, n, n)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.arguments import float_array
from bismut.errors import DomainError, ShapeError
from bismut.mechanics import validation
from bismut.mechanics.function import Adapter, UserFunction, required_function
from bismut.mechanics.subsystems import QuadraticKinetic
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system import System
from bismut.precision import real_type
from bismut.spaces import Euclidean, Power, Space
from bismut.user_errors import reason_of


def mechanical(
    space: Space,
    *,
    mass: Any = 1.0,
    potential: Callable | None = None,
    noise: Callable | None = None,
    force: Callable | None = None,
    random_force: Callable | None = None,
    constraint: Callable | None = None,
    box: Any = None,
    symmetries: Mapping[str, Symmetry] | None = None,
    parameters: Any = None,
    precision: str = "float64",
    contact: Any = None,
) -> System:
    """L = ½⟨v, M v⟩ − U(q), optionally with constraints g(q) = 0.

    mass: for each array of the velocity (a tuple on a product) a number, an array of the velocity's shape (or one that broadcasts to it), or
    symmetric matrices, of the velocity's shape with its last axis repeated: (n, n) for one body, (K, n, n) for K; or a function mass(q) that returns
    the whole matrix.
    potential: U(q), one number. noise, force, random_force, constraint, symmetries, parameters, precision: as for System.
    contact: not available, and refused with advice.
    box: a periodic Box for points, Euclidean(d) ** K, in which pair terms of potential and noise see nearest images (a number: a cube).
    """
    validation.check_space(space)
    validation.check_contact(contact)
    if box is not None:
        from bismut.mechanics.bodies.terms import in_box  # bodies are mechanical systems themselves

        axes = jax.eval_shape(space.zero).shape[-1:] if isinstance(space, Power) and isinstance(space.base, Euclidean) else ()
        if not axes:
            raise DomainError(f"box= is for many points, Euclidean(d) ** K, got {space}. rigid_bodies(..., box=) is for bodies.")
        potential, noise = (in_box(name, given, box, *axes) for name, given in (("potential", potential), ("noise", noise)))
    dtype = real_type(precision)
    bare = potential if potential is not None else _ZeroPotential(dtype)
    cells = None
    if callable(mass):
        inertia = required_function("mass", mass, ("q",))
        _check_matrix(space, inertia, parameters, dtype)
        kinetic: Callable = _MatrixKinetic(inertia, space)
    else:
        kinetic = _constant_mass_kinetic(space, mass, dtype)
        cells = kinetic.cells()
    return System(
        space,
        _KineticMinusPotential(required_function("kinetic", kinetic, ("q", "v")), required_function("potential", bare, ("q",))),
        noise,
        force,
        symmetries,
        random_force=random_force,
        constraint=constraint,
        parameters=parameters,
        potential=bare,
        kinetic=kinetic,
        cells=cells,
        precision=precision,
    )


def with_masses(system: System, mass: Any) -> System:
    """The same potential, force and constraints with T = ½⟨v, M v⟩ of other masses, given as for `mechanical`."""
    kinetic, potential = _constant_mass_kinetic(system.space, mass, system.dtype), system._potential
    if potential is None:
        assert system._lagrangian is not None
        potential = required_function("potential", _MinusAtRest(system._lagrangian, system.space, system.dtype), ("q",))
    T = required_function("kinetic", kinetic, ("q", "v"))
    L = required_function("lagrangian", _KineticMinusPotential(T, potential), ("q", "v"))
    return system.replace(_lagrangian=L, _kinetic=T, _potential=potential, _cells=kinetic.cells())


def with_potential(system: System, potential: UserFunction) -> System:
    """The same kinetic energy with another U(q)."""
    assert system._kinetic is not None
    L = required_function("lagrangian", _KineticMinusPotential(system._kinetic, potential), ("q", "v"))
    return system.replace(_lagrangian=L, _potential=potential)


def _constant_mass_kinetic(space: Space, mass: Any, dtype) -> QuadraticKinetic:
    return QuadraticKinetic.broadcast(space, [one.value for one in coefficients(space, mass, "mass", dtype, positive=True)])


@dataclass(frozen=True, eq=False)
class _ZeroPotential:
    """U = 0, a zero of the dtype, not of Python, so that a system without a potential still has a derivative of the right type."""

    dtype: Any

    def __call__(self, q):
        return jnp.zeros((), self.dtype)


@dataclass(frozen=True, eq=False)
class _MatrixKinetic(Adapter):
    """T = ½ v·M(q)v."""

    mass: UserFunction
    space: Space

    def __call__(self, q, v, t=None, parameters=None):
        x = self.space.flatten(v)
        return 0.5 * x @ self.mass(q, t=t, parameters=parameters) @ x


@dataclass(frozen=True, eq=False)
class _MinusAtRest(Adapter):
    """U(q) = −L(q, 0)."""

    lagrangian: UserFunction
    space: Space
    dtype: Any

    def __call__(self, q, t=None, parameters=None):
        return -self.lagrangian(q, self.space.zero(self.dtype), t=t, parameters=parameters)


@dataclass(frozen=True, eq=False)
class _KineticMinusPotential(Adapter):
    """L = T − U."""

    kinetic: UserFunction
    potential: UserFunction

    def __call__(self, q, v, t=None, parameters=None):
        return self.kinetic(q, v, t=t, parameters=parameters) - self.potential(q, t=t, parameters=parameters)


def _check_matrix(space: Space, mass: UserFunction, parameters: Any, dtype) -> None:
    """Refuse a mass(q) that fails or is not a matrix."""
    n, one = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(space.zero))), jnp.ones((), dtype)
    try:
        matrix = jax.eval_shape(lambda q: mass(q, t=one, parameters=parameters), space.origin(dtype))
    except Exception as problem:
        raise ShapeError(f"mass(q) fails on {space}: {reason_of(problem)}.") from problem
    if getattr(matrix, "shape", None) != (n, n):
        got = f"shape {matrix.shape}" if hasattr(matrix, "shape") else f"a {type(matrix).__name__}"
        raise ShapeError(f"mass(q) must return the matrix ({n}, {n}) of the kinetic energy on {space}, got {got}.")


class Coefficient(NamedTuple):
    """The numbers of one array of the velocity; `matrix` if they are matrices on its last axis."""

    value: Float[Array, "..."]
    matrix: bool


def coefficients(space: Space, value: Any, name: str, dtype, *, positive: bool) -> list[Coefficient]:
    """The numbers for each array of the velocity, checked: finite, symmetric, and positive (definite) or at least not negative."""
    leaves = jax.tree.leaves(jax.eval_shape(space.zero))
    parts = list(value) if isinstance(value, tuple | list) and len(leaves) > 1 else [value] * len(leaves)
    if len(parts) != len(leaves):
        raise ShapeError(f"{name} must have {len(leaves)} entries on {space}, got {len(parts)}.")
    return [_coefficient(part, leaf.shape, name, dtype, positive) for part, leaf in zip(parts, leaves, strict=True)]


def _coefficient(part, shape, name: str, dtype, positive: bool) -> Coefficient:
    value = part if isinstance(part, Tracer) else float_array(part, name)
    matrix = value.ndim == len(shape) + 1 and value.shape == (*shape, *shape[-1:])
    if not matrix and not _broadcasts(value.shape, shape):
        per_body = len(shape) > 1 and value.shape == shape[:1]
        advice = f" One number per body is written with shape {(shape[0], *[1] * (len(shape) - 1))}." if per_body else ""
        raise ShapeError(f"{name} has shape {value.shape}, but the velocity it belongs to has shape {shape}.{advice}")
    if isinstance(value, np.ndarray):
        check_coefficient(value, matrix, name, positive)
    return Coefficient(jnp.asarray(value, dtype), matrix)


def check_coefficient(value: np.ndarray, matrix: bool, name: str, positive: bool) -> None:
    """Refuse numbers that are not finite, matrices that are not symmetric, and what has the wrong sign."""
    if not np.isfinite(value).all():
        raise DomainError(f"{name} must be finite, got {value}.")
    smallest = np.linalg.eigvalsh(value).min() if matrix else value.min()
    largest = np.abs(value).max()
    wrong = smallest <= 0 if positive else smallest < -1e-12 * largest
    if wrong or (matrix and not np.allclose(value, np.swapaxes(value, -1, -2))):
        wanted = "positive" if positive else "positive or zero"
        wanted += " definite and symmetric" if matrix and positive else "; a matrix must be symmetric and positive semidefinite" if matrix else ""
        raise DomainError(f"{name} must be {wanted}, got {value.tolist()}{f', with smallest eigenvalue {smallest:.3g}' if matrix else ''}.")


def _broadcasts(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape without changing it."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))
