"""Numbers that belong to the components of a velocity: masses and frictions.

For each array of the velocity (a tuple of them on a product)

    a number,   an array that broadcasts to the velocity's shape,   or symmetric matrices of its shape with the last axis repeated: (n, n), (K, n, n)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError
from bismut.spaces import Space


class Coefficient(NamedTuple):
    """The numbers of one array of the velocity; `matrix` if they are matrices on its last axis."""

    value: Float[Array, "..."]
    matrix: bool


def coefficients(space: Space, given: Any, name: str, dtype, *, positive: bool) -> list[Coefficient]:
    """The numbers for each array of the velocity, checked: finite, symmetric, and positive (definite) or at least not negative."""
    leaves = jax.tree.leaves(jax.eval_shape(space.zero))
    parts = list(given) if isinstance(given, tuple | list) and len(leaves) > 1 else [given] * len(leaves)
    if len(parts) != len(leaves):
        raise ShapeError(f"{name} must have {len(leaves)} entries on {space}, got {len(parts)}.")
    return [_one(part, leaf.shape, name, dtype, positive) for part, leaf in zip(parts, leaves, strict=True)]


def _one(part, shape, name: str, dtype, positive: bool) -> Coefficient:
    value = part if isinstance(part, Tracer) else np.asarray(part, float)
    matrix = value.ndim == len(shape) + 1 and value.shape == (*shape, *shape[-1:])
    if not matrix and not _fits(value.shape, shape):
        per_body = len(shape) > 1 and value.shape == shape[:1]
        advice = f" One number per body is written with shape {(shape[0], *[1] * (len(shape) - 1))}." if per_body else ""
        raise ShapeError(f"{name} has shape {value.shape}, but the velocity it belongs to has shape {shape}.{advice}")
    if isinstance(value, np.ndarray):
        check(value, matrix, name, positive)
    return Coefficient(jnp.asarray(value, dtype), matrix)


def check(value: np.ndarray, matrix: bool, name: str, positive: bool) -> None:
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


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape without changing it."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))
