"""Γ and its logarithmic derivatives, by Lanczos' series (g = 7, nine terms), with which XLA computes them too.

    Γ(z + 1) = √(2π) t^(z + ½) e^(−t) A(z),     t = z + 7½,     A(z) = c_0 + Σ c_i / (z + i)
    Γ(x) Γ(1 − x) = π / sin πx     for x < ½

    ζ(s, q) = Σ_k (q + k)^(−s),   by Euler and Maclaurin from k = 10 on;      ψ⁽ⁿ⁾(x) = (−1)^(n+1) n! ζ(n + 1, x)

Errors are a few 1e−15 of max(1, |value|).
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from bismut.programs.operation import decomposition

_G = 7.0
_FIRST = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
# B_2j / (2j)! for j = 1 … 12.
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)
_DIRECT = 10  # terms of ζ that are added one by one


def _series(x):
    """z, log t, A(z) and A'(z), z being the larger of x − 1 and −x."""
    z = jnp.where(x < 0.5, -x, x - 1)
    total, slope = jnp.full_like(z, _FIRST), jnp.zeros_like(z)
    for i, c in enumerate(_LANCZOS, 1):
        total, slope = total + c / (z + i), slope - c / (z + i) ** 2
    return z, math.log(_G + 0.5) + jnp.log1p(z / (_G + 0.5)), total, slope


@decomposition("lgamma")
def lgamma(x):
    z, log_t, total, _ = _series(x)
    t = z + (_G + 0.5)
    # (z + ½) log t − t as one product: less is lost where the two nearly cancel.
    value = 0.5 * math.log(2 * math.pi) + (z + 0.5 - t / log_t) * log_t + jnp.log(total)
    rest = jnp.abs(x) - jnp.floor(jnp.abs(x))
    rest = jnp.where(rest > 0.5, 1 - rest, rest)
    sine = jnp.log(jnp.sin(math.pi * rest))  # −∞ at the poles
    reflected = jnp.where(jnp.isfinite(sine), math.log(math.pi) - sine - value, -sine)
    return jnp.where(jnp.isinf(x), jnp.inf, jnp.where(x < 0.5, reflected, value))


@decomposition("digamma")
def digamma(x):
    z, log_t, total, slope = _series(x)
    value = log_t + slope / total - _G / (z + (_G + 0.5))
    near = x + jnp.abs(jnp.floor(x + 0.5))  # cot has period π
    reflected = value - math.pi / jnp.tan(math.pi * near)
    value = jnp.where(x < 0.5, reflected, value)
    return jnp.where((x <= 0) & (x == jnp.floor(x)), jnp.nan, value)


@decomposition("zeta")
def zeta(s, q):
    """Hurwitz' ζ, for s > 1."""
    total = jnp.zeros_like(q)
    for k in range(_DIRECT):
        total = total + (q + k) ** -s
    a = q + _DIRECT
    power = a**-s
    factor, tail = s / a, jnp.zeros_like(q)  # s (s + 1) … (s + 2j − 2) / a^(2j − 1)
    for j, b in enumerate(_BERNOULLI, 1):
        tail = tail + b * factor
        factor = factor * (s + (2 * j - 1)) * (s + 2 * j) / (a * a)
    value = total + power * (a / (s - 1) + 0.5 + tail)
    value = jnp.where(jnp.isinf(total), jnp.inf, value)
    integral = q == jnp.floor(q)
    outside = (s < 1) | ((q < 0) & ~integral & (s != jnp.floor(s))) | jnp.isnan(s) | jnp.isnan(q)
    return jnp.where(outside, jnp.nan, jnp.where((s == 1) | ((q <= 0) & integral), jnp.inf, value))


@decomposition("polygamma")
def polygamma(n, x):
    value = jnp.where(n % 2 == 0, -1.0, 1.0) * jnp.exp(lgamma(n + 1)) * zeta(n + 1, x)
    value = jnp.where(n == 0, digamma(x), value)
    return jnp.where((n < 0) | (n != jnp.floor(n)), jnp.nan, value)
