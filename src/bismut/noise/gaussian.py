"""Standard normals from random words, by Box and Muller.

    r = √(−2 ln u),    (r cos 2πf, r sin 2πf)

One word a gives the radius, one word b the angle f = b/2³². The radius needs more than 32 bits for its tail: the low half of u is b, scrambled
by an odd multiplier. It matters only where a is small, and takes the largest possible |z| from 6.7 to 9.4 (chance 1e−20).

In float64 logarithm, sine and cosine are polynomials: the library calls are scalar on a CPU and cost ten times as much as all the rest. Their
arguments lie in known short ranges, which keeps the polynomials short and their error below 2e−15.
"""

from math import factorial, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from bismut.precision import real_type

_LN2 = 0.6931471805599453
_GOLDEN = np.uint32(0x9E3779B9)
_UNIT = 2.0**-32


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
