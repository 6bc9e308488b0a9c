"""Standard normals as a function of counters: 64-bit counters, Threefry-4x32 with 20 rounds, and Box–Muller.

    four random words = threefry(key of four words, counter of four words)          (Salmon, Moraes, Dror & Shaw, SC'11)
    r = √(−2 ln u),    (r cos 2πf, r sin 2πf)

There is no state: any word of any stream is computed on its own, in any order, on any device. Threefry takes additions, rotations and exclusive ors
of 32-bit words only, so that a compiler turns it into one vector loop. Counters are pairs of 32-bit words, which exist without x64 too.

One word a gives the radius, one word b the angle f = b/2³². The radius needs more than 32 bits for its tail: the low half of u is b, scrambled
by an odd multiplier. It matters only where a is small, and takes the largest possible |z| from 6.7 to 9.4 (probability 1e−20).

Threefry-2x32 would be cheaper, but its four words of key and counter are too few: seeds, trajectories and steps have 64 bits each.

In float64 logarithm, sine and cosine are polynomials: the library calls are scalar on a CPU and cost ten times as much as all the rest. Their
arguments lie in known short ranges, which keeps the polynomials short and their error below 2e−15.
"""

from enum import IntEnum
from math import factorial, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, UInt32

from bismut.precision import real_type

Index = tuple[UInt32[Array, "..."], UInt32[Array, "..."]]  # (low, high)
Word = UInt32[Array, "..."]
Quad = tuple[Word, Word, Word, Word]

_ROTATIONS = np.array([(10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)], np.uint32)
_PARITY = np.uint32(0x1BD11BDA)
_STAGES = 5  # of four rounds each
_LN2 = 0.6931471805599453
_GOLDEN = np.uint32(0x9E3779B9)
_UNIT = 2.0**-32


class Stream(IntEnum):
    """The purpose of a random number; streams never share one."""

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
    low, high = map(np.asarray, numpy_counter(index))  # of a scalar of NumPy JAX would compile a conversion
    return jnp.asarray(low), jnp.asarray(high)


def numpy_counter(index: Any) -> tuple[Any, Any]:
    """The same in NumPy, for numbers or arrays."""
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
    """A known index as the integer nearest to 0 that it equals modulo 2⁶⁴."""
    low, high = np.asarray(index[0]), np.asarray(index[1])  # to a number by way of NumPy, which is quicker than JAX
    value = (int(high) << 32) + int(low)
    return value - 2**64 if value >= 2**63 else value


def _mix(a, b, k):
    a = a + b
    return a, ((b << k) | (b >> (np.uint32(32) - k))) ^ a


def threefry(key: Quad, counter: Quad) -> Quad:
    """The four words at a counter; arrays broadcast.

    The stages are a loop, which XLA compiles once; the native engine unrolls so short a one.
    """
    schedule = jnp.broadcast_arrays(*(jnp.asarray(k, jnp.uint32) for k in (*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ _PARITY)))
    start = jnp.broadcast_arrays(*(jnp.asarray(c, jnp.uint32) + k for c, k in zip(counter, key, strict=True)))
    added = jnp.stack([jnp.stack([schedule[(s + n) % 5] + np.uint32(s * (n == 3)) for n in range(4)]) for s in range(1, _STAGES + 1)])
    turned = np.stack([_ROTATIONS[4 * (s % 2) : 4 * (s % 2) + 4] for s in range(_STAGES)])

    def stage(x, row):
        keys, rotations = row
        x = list(x)
        for r in range(4):
            i, j = (1, 3) if r % 2 == 0 else (3, 1)
            x[0], x[i] = _mix(x[0], x[i], rotations[r, 0])
            x[2], x[j] = _mix(x[2], x[j], rotations[r, 1])
        return tuple(word + k for word, k in zip(x, keys, strict=True)), None

    (a, b, c, d), _ = jax.lax.scan(stage, tuple(start), (added, turned))
    return a, b, c, d


def _horner(z, coefficients):
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * z + c
    return value


def log_unit(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """ln u for float64 u in (0, 1]:  u = m 2^e with m in [√½, √2], and ln m = 2 artanh s, s = (m−1)/(m+1)."""
    bits = jax.lax.bitcast_convert_type(u, jnp.int64)
    e = (bits >> 52) - 1023
    m = jax.lax.bitcast_convert_type((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000, jnp.float64)
    high = m > 2**0.5
    m, e = jnp.where(high, 0.5 * m, m), jnp.where(high, e + 1, e)
    s = (m - 1) / (m + 1)
    return 2 * s * _horner(s * s, [1 / (2 * k + 1) for k in range(11)]) + e.astype(jnp.float64) * _LN2


def cos_sin_turn(f: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """cos 2πf and sin 2πf for f in [0, 1): Taylor polynomials in the nearest quarter turn."""
    quarter = jnp.floor(4 * f + 0.5)
    r = (f - 0.25 * quarter) * (2 * pi)
    z = r * r
    s = r * _horner(z, [(-1) ** k / factorial(2 * k + 1) for k in range(8)])
    c = _horner(z, [(-1) ** k / factorial(2 * k) for k in range(9)])
    n = jax.lax.bitcast_convert_type(quarter + 2.0**52, jnp.int64)  # its last bits are those of n
    swap = (n & 1) == 1
    c, s = jnp.where(swap, s, c), jnp.where(swap, c, s)
    return jnp.where(((n + 1) & 2) == 2, -c, c), jnp.where((n & 2) == 2, -s, s)


def two_normals(a: UInt32[Array, "..."], b: UInt32[Array, "..."], dtype) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Two independent standard normals from two random words."""
    dtype = real_type(np.dtype(dtype).name)
    real = lambda word: word.astype(dtype)
    if dtype == np.float64:
        u = (real(a) + (real(b * _GOLDEN) + 0.5) * _UNIT) * _UNIT
        cosine, sine = cos_sin_turn(real(b) * _UNIT)
        r = jnp.sqrt(-2 * log_unit(u))
    else:
        angle = 2 * pi * (real(b) * _UNIT)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        r = jnp.sqrt(-2 * jnp.log(jnp.minimum((real(a) + 0.5) * _UNIT, 1.0)))
    return r * cosine, r * sine
