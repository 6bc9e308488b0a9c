"""Pieces of a step, each traced once.

A splitting drifts twice and meets the bath twice, and a run traces its step several times over. A piece is a program of its own, known by the scheme
and the shapes it is given: wherever it occurs again, its jaxpr is used again (a second trace of BAOAB for a rigid body takes 0.006 s instead of 1.2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax

_KEPT = 16  # programs of one piece; a rigid body in a bath takes 5 MB for all of its pieces, and a fresh lambda makes a fresh system

F = TypeVar("F", bound=Callable[..., Any])


def piece(method: F) -> F:
    """The method of a scheme as a piece: it must return arrays, or trees of them."""

    @lru_cache(maxsize=_KEPT)
    def program(leaves, structure):
        rest = structure.unflatten(leaves)
        run = lambda arrays: method(*eqx.combine(arrays, rest))
        run.__name__ = method.__name__  # by which a jaxpr calls it
        return jax.jit(run)

    @wraps(method)
    def call(*arguments):
        arrays, rest = eqx.partition(arguments, eqx.is_array)
        leaves, structure = jax.tree.flatten(rest)
        return program(tuple(leaves), structure)(arrays)

    return cast(F, call)
