"""Numbers that belong to bodies: given once for all of them or one by one, and always in the precision of the system.

Numbers may be traced (parameters of a system, or something one differentiates by); what cannot be looked at is not checked.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.body_loops import each
from bismut.errors import DomainError, ShapeError


def numbers(name: str, value: Any, *, positive: bool = False) -> Any:
    """The user's numbers, refused where they are not finite, or not positive."""
    if isinstance(value, Tracer):
        return value
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be a number or an array of numbers, got {type(value).__name__}.") from None
    if not np.isfinite(array).all():
        raise DomainError(f"{name} must be finite, got {array.tolist()}.")
    if positive and not (array > 0).all():
        raise DomainError(f"{name} must be positive, got {array.tolist()}.")
    return array


def vectors(name: str, value: Any, *, positive: bool = False) -> Any:
    """Numbers that are one vector (3,) for all bodies, or one for each, (K, 3)."""
    array = numbers(name, value, positive=positive)
    if np.ndim(array) not in (1, 2) or np.shape(array)[-1] != 3:
        raise ShapeError(f"{name} must be a vector (3,) for all bodies or vectors (K, 3), one for each, got shape {np.shape(array)}.")
    return array


def per_body(name: str, value: Any, x, tail: tuple[int, ...] = ()):
    """Numbers as an array (K, *tail) for the bodies at x, in their precision; known ones stay known."""
    known, want = not isinstance(value, Tracer), (x.shape[0], *tail)
    array = np.asarray(value, x.dtype) if known else jnp.asarray(value, x.dtype)
    if array.ndim > len(want) or any(a not in (1, b) for a, b in zip(reversed(array.shape), reversed(want), strict=False)):
        raise ShapeError(f"{name} has shape {array.shape}, but there are {x.shape[0]} bodies: it must be {want}, or one for all of them.")
    return np.broadcast_to(array, want) if known else jnp.broadcast_to(array, want)


def turned(name: str, vector: Any, x, R):
    """R_i d_i: body-fixed vectors d_i as they lie in space."""
    if R is None:
        raise ShapeError(f"{name} are fixed in bodies that turn, but there are only positions. Use rigid_bodies, whose bodies have orientations.")
    return each(lambda R, d: R @ d, R, per_body(name, vector, x, (3,)))
