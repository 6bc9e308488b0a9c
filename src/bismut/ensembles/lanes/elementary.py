"""Sine, cosine and tangent as vector code.

    x = n π/2 + r,   |r| ≤ π/4,        sin r = r + r³ S(r²),    cos r = 1 − r²/2 + r⁴ C(r²)

The library's functions are scalar calls on a CPU and cost as much as a hundred multiplications. Here π/2 is held in three parts of 33 bits and a
remainder (Cody & Waite), so that n times a part is exact for |x| ≤ 10⁶, and r is right to the last place also next to a multiple of π/2. Beyond
10⁶, in single precision and for shared numbers the library is called. S and C are the minimax polynomials of Sun's fdlibm, error below 2⁻⁵⁸.
"""

import jax
import jax.numpy as jnp
import numpy as np

LARGEST = 1e6

# π/2 = the first three numbers, 33 bits each, plus the fourth; so n < 2²⁰ times each of the three is exact.
_PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21, 8.47842766036889956997e-32)
_SINE = (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04)
_SINE += (2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10)
_COSINE = (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05)
_COSINE += (-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11)


def _polynomial(z, c):
    """Six coefficients by pairs: half the latency of Horner's rule."""
    w = z * z
    return (c[0] + z * c[1]) + w * ((c[2] + z * c[3]) + w * (c[4] + z * c[5]))


def _reduced(x):
    """(r, its rounding error, n) with x = n π/2 + r."""
    n = jnp.round(x * (2 / np.pi))
    a = x - n * _PARTS[0]  # exact
    b = n * _PARTS[1]
    first = a - b
    lost = ((a - first) - b) - (n * _PARTS[2] + n * _PARTS[3])  # what the subtraction rounded away, and the next parts
    r = first + lost
    return r, (first - r) + lost, n


def _both(x):
    """sin r and cos r of the reduced argument, and n."""
    r, low, n = _reduced(x)
    z = r * r
    s = r + (r * z * _polynomial(z, _SINE) + low * (1 - 0.5 * z))
    half = 0.5 * z
    c = 1 - half
    c = c + (((1 - c) - half) + (z * z * _polynomial(z, _COSINE) - r * low))
    return s, c, n


def _odd(n):
    """n mod 2 as a number. (All of this stays in floating point: masks of another width would double the cost.)"""
    return n - 2 * jnp.floor(0.5 * n)


def fast_sin(x):
    """sin x for float64 |x| ≤ 10⁶."""
    s, c, n = _both(x)
    return jnp.where(_odd(n) > 0.5, c, s) * (1 - 2 * _odd(jnp.floor(0.5 * n)))


def fast_cos(x):
    s, c, n = _both(x)
    return jnp.where(_odd(n) > 0.5, s, c) * (1 - 2 * _odd(jnp.floor(0.5 * (n + 1))))


def fast_tan(x):
    s, c, n = _both(x)
    odd = _odd(n) > 0.5
    return jnp.where(odd, -c, s) / jnp.where(odd, s, c)


def _guarded(fast, library):
    def function(x):
        if jnp.ndim(x) == 0 or jnp.result_type(x) != jnp.float64:
            return library(x)
        return jax.lax.cond(jnp.all(~(jnp.abs(x) > LARGEST)), fast, library, x)

    return function


sin = _guarded(fast_sin, jax.lax.sin)
cos = _guarded(fast_cos, jax.lax.cos)
tan = _guarded(fast_tan, jax.lax.tan)
