"""Systems of the form L = ½⟨v, M v⟩ − U(q).

What is gained over a bare Lagrangian: the kinetic energy is known to fall into cells (single coordinates, single bodies), so explicit and per-body
solves follow, and the mass is at hand for heat baths.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bismut.blame import why
from bismut.errors import ShapeError
from bismut.mechanics import refusals
from bismut.mechanics.coefficients import coefficients
from bismut.mechanics.function import UserFunction, user_function
from bismut.mechanics.kinetic import quadratic
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system import System
from bismut.precision import real_type
from bismut.spaces import Space


def mechanical(
    space: Space,
    *,
    mass: Any = 1.0,
    potential: Callable | None = None,
    noise: Callable | None = None,
    force: Callable | None = None,
    random_force: Callable | None = None,
    constraint: Callable | None = None,
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
    """
    refusals.check_space(space)
    refusals.check_contact(contact)
    dtype = real_type(precision)
    bare = potential if potential is not None else _Nothing(dtype)
    U = user_function("potential", bare, ("q",))
    assert U is not None
    cells = None
    if callable(mass):
        inertia = user_function("mass", mass, ("q",))
        assert inertia is not None
        _check_matrix(space, inertia, parameters, dtype)
        kinetic: Any = _OfMatrix(space, inertia)
    else:
        masses, cells = _masses(space, mass, dtype)
        kinetic = quadratic(space, masses)
    return System(
        space,
        _Difference(kinetic, U),
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


# Classes, not closures, so that a system can be pickled when the functions of its user can.


@dataclass(frozen=True, eq=False)
class _Nothing:
    """U = 0, a zero of the dtype, not of Python, so that a system without a potential still has a derivative of the right type."""

    dtype: Any

    def __call__(self, q):
        return jnp.zeros((), self.dtype)


@dataclass(frozen=True, eq=False)
class _OfMatrix:
    """T = ½ v·M(q)v."""

    space: Space
    mass: UserFunction

    def __call__(self, q, v, t, parameters):
        x = self.space.flatten(v)
        return 0.5 * x @ self.mass(q, t=t, parameters=parameters) @ x


@dataclass(frozen=True, eq=False)
class _Difference:
    """L = T − U."""

    kinetic: Any
    potential: UserFunction

    def __call__(self, q, v, t, parameters):
        return self.kinetic(q, v, t, parameters) - self.potential(q, t=t, parameters=parameters)


def _check_matrix(space: Space, mass: UserFunction, parameters: Any, dtype) -> None:
    """Refuse a mass(q) that fails or is not a matrix."""
    n, one = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(space.zero))), jnp.ones((), dtype)
    try:
        found = jax.eval_shape(lambda q: mass(q, t=one, parameters=parameters), space.origin(dtype))
    except Exception as problem:
        raise ShapeError(f"mass(q) fails on {space}: {why(problem)}.") from problem
    if getattr(found, "shape", None) != (n, n):
        got = f"shape {found.shape}" if hasattr(found, "shape") else f"a {type(found).__name__}"
        raise ShapeError(f"mass(q) must return the matrix ({n}, {n}) of the kinetic energy on {space}, got {got}.")


def _masses(space: Space, mass, dtype) -> tuple[list, tuple[int, ...]]:
    """The mass of each array of the velocity, and the sizes of the cells it couples."""
    leaves = jax.tree.leaves(jax.eval_shape(space.zero))
    masses = coefficients(space, mass, "mass", dtype, positive=True)
    cells = [max(cell, leaf.shape[-1]) if one.matrix else cell for one, leaf, cell in zip(masses, leaves, space.cells(), strict=True)]
    return [one.value for one in masses], tuple(cells)
