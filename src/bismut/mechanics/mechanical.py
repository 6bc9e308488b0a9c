"""Systems of the form L = ½⟨v, M v⟩ − U(q).

What is gained over a bare Lagrangian: the kinetic energy is known to fall into cells (single coordinates, single bodies), so explicit and per-body
solves follow, and the mass is at hand for heat baths.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.law import law
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
    symmetries: Mapping[str, Symmetry] | None = None,
    parameters: Any = None,
    precision: str = "float64",
) -> System:
    """L = ½⟨v, M v⟩ − U(q).

    mass: for each array of the velocity (a tuple on a product) a number, an array of the velocity's shape (or one that broadcasts to it), or
    symmetric matrices, of the velocity's shape with its last axis repeated: (n, n) for one body, (K, n, n) for K; or a function mass(q) that returns
    the whole matrix.
    """
    dtype = real_type(precision)
    # A zero of the dtype, not of Python, so that a system without a potential still has a derivative of the right type.
    bare = potential if potential is not None else (lambda q: jnp.zeros((), dtype))
    U = law("potential", bare, ("q",))
    assert U is not None
    if callable(mass):
        inertia = law("mass", mass, ("q",))
        assert inertia is not None

        def of_matrix(q, v, t, parameters):
            x = space.flatten(v)
            return 0.5 * x @ inertia(q, t=t, parameters=parameters) @ x - U(q, t=t, parameters=parameters)

        return System(space, of_matrix, noise, force, symmetries, parameters=parameters, potential=bare, precision=precision)

    masses, cells = _masses(space, mass, dtype)

    def of_cells(q, v, t, parameters):
        kinetic = sum(_kinetic(m, w) for m, w in zip(masses, jax.tree.leaves(v), strict=True))
        return kinetic - U(q, t=t, parameters=parameters)

    return System(space, of_cells, noise, force, symmetries, parameters=parameters, potential=bare, cells=cells, precision=precision)


def _kinetic(mass, v):
    if mass.ndim == v.ndim + 1:
        return 0.5 * jnp.sum(v * jnp.einsum("...ij,...j->...i", mass, v))
    return 0.5 * jnp.sum(mass * v * v)


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape without changing it."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))


def _masses(space: Space, mass, dtype) -> tuple[list, tuple[int, ...]]:
    """The mass of each array of the velocity, and the sizes of the cells it couples."""
    leaves = jax.tree.leaves(jax.eval_shape(space.zero))
    given = list(mass) if isinstance(mass, tuple | list) and len(leaves) > 1 else [mass] * len(leaves)
    if len(given) != len(leaves):
        raise ShapeError(f"mass must have {len(leaves)} entries on {space}, but {len(given)} came.")
    masses, cells = [], []
    for one, leaf, cell in zip(given, leaves, space.cells(), strict=True):
        value = np.asarray(one, float)
        matrix = value.ndim == len(leaf.shape) + 1 and value.shape == (*leaf.shape, *leaf.shape[-1:])
        if not matrix and not _fits(value.shape, leaf.shape):
            raise ShapeError(f"mass has shape {value.shape}, but the velocity it belongs to has shape {leaf.shape}.")
        if not np.isfinite(value).all():
            raise DomainError(f"mass must be finite, but {value} came.")
        smallest = np.linalg.eigvalsh(value).min() if matrix else value.min()
        if smallest <= 0 or (matrix and not np.allclose(value, np.swapaxes(value, -1, -2))):
            raise DomainError(f"mass must be positive{' definite and symmetric' if matrix else ''}, but {value.tolist()} came.")
        masses.append(jnp.asarray(value, dtype))
        cells.append(leaf.shape[-1] if matrix else cell)
    return masses, tuple(cells)
