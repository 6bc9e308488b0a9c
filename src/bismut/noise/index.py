"""Counters of 64 bits, as pairs of 32-bit words, which exist without x64 too; and what random numbers are for."""

from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, UInt32

Index = tuple[UInt32[Array, "..."], UInt32[Array, "..."]]  # (low, high)


class Stream(IntEnum):
    """What a random number is for; streams never share a number."""

    increment = 0
    start = 1
    colour = 2
    jump = 3


def counter(index: Any) -> Index:
    """A 64-bit index (or an array of them) as a pair of 32-bit words; a negative one counts backwards from 2⁶⁴."""
    if isinstance(index, Tracer):
        if index.dtype.itemsize > 4:
            wide = jnp.asarray(index, jnp.uint64)
            return wide.astype(jnp.uint32), (wide >> np.uint64(32)).astype(jnp.uint32)
        low = jnp.asarray(index, jnp.uint32)
        return low, jnp.where(index < 0, np.uint32(0xFFFFFFFF), np.uint32(0))
    low, high = words(index)
    return jnp.asarray(low), jnp.asarray(high)


def words(index: Any) -> tuple[Any, Any]:
    """The same in NumPy, numbers or arrays."""
    value = np.asarray(index)
    value = value.astype(np.int64).view(np.uint64) if value.dtype.kind == "i" else np.asarray(index, np.uint64)
    return (value & np.uint64(0xFFFFFFFF)).astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32)


def advance(index: Index, by: int | UInt32[Array, ""]) -> Index:
    """index + by, with the carry into the high word; by is less than 2³²."""
    low = index[0] + jnp.asarray(by, jnp.uint32)
    return low, index[1] + (low < index[0]).astype(jnp.uint32)


def plus(a: Index, b: Index) -> Index:
    """a + b modulo 2⁶⁴."""
    low, high = advance(a, b[0])
    return low, high + b[1]


def number(index: Index) -> int:
    """A known index as the whole number nearest to 0 that it stands for modulo 2⁶⁴."""
    low, high = np.asarray(index[0]), np.asarray(index[1])  # to a number by way of NumPy, which is quicker than JAX
    value = (int(high) << 32) + int(low)
    return value - 2**64 if value >= 2**63 else value


def whole_number(steps: Any) -> bool:
    """Whether steps can be shifted by."""
    return isinstance(steps, Tracer) or (isinstance(steps, int | np.integer) and not isinstance(steps, bool))
