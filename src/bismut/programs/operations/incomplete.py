"""Incomplete Γ and B functions.

    P(a, x) = x^a e^(−x) / Γ(a + 1) · (1 + x/(a+1) + x²/(a+1)(a+2) + …),     Q = 1 − P = x^a e^(−x) / Γ(a) · 1/(x+1−a − 1(1−a)/(x+3−a − …))
    ∂P/∂a      term by term, and level by level along the fraction
    I_x(a, b) = x^a (1−x)^b / (a B(a, b)) · 1/(1 + d_1/(1 + d_2/(1 + …)))

Series where they converge fast, continued fractions (modified Lentz) elsewhere. What is in front is an exponential of logarithms, so that its error
grows with a log x, as XLA's does.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bismut.programs.operation import decomposition
from bismut.programs.operations.gamma import digamma, lgamma

_MOST = 2000  # terms

_converging = lambda change, value: jnp.abs(change) > jnp.finfo(value.dtype).eps * jnp.abs(value)


def _front(a, x):
    """x^a e^(−x) / Γ(a)."""
    return jnp.exp(a * jnp.log(x) - x - lgamma(a))


def _lower(a, x, active):
    """P(a, x) by its series."""

    def step(now):
        n, term, total, on = now
        term = term * x / (a + n)
        total = jnp.where(on, total + term, total)
        return n + 1, term, total, on & _converging(term, total)

    start = jnp.asarray(1, x.dtype), jnp.ones_like(x), jnp.ones_like(x), active
    _, _, total, _ = jax.lax.while_loop(lambda now: jnp.any(now[3]) & (now[0] < _MOST), step, start)
    return total * _front(a, x) / a


def _fraction(first, coefficient, active):
    """1/(b_0 + a_1/(b_1 + …)), with b_0 = first and coefficient(n) = (a_n, b_n)."""
    tiny = jnp.finfo(first.dtype).tiny * 1e10
    away = lambda x: jnp.where(jnp.abs(x) < tiny, tiny, x)

    def step(now):
        n, c, d, value, on = now
        a, b = coefficient(n)
        d = 1 / away(b + a * d)
        c = away(b + a / c)
        return n + 1, c, d, jnp.where(on, value * c * d, value), on & _converging(c * d - 1, jnp.ones_like(d))

    d = 1 / away(first)
    start = jnp.asarray(1, first.dtype), jnp.full_like(first, 1 / tiny), d, d, active
    return jax.lax.while_loop(lambda now: jnp.any(now[4]) & (now[0] < _MOST), step, start)[3]


def _upper(a, x, active):
    """Q(a, x) by its continued fraction."""
    return _front(a, x) * _fraction(x + 1 - a, lambda n: (-n * (n - a), x + (2 * n + 1) - a), active)


def _both(a, x):
    """P, Q, where both are known directly from a and x; and whether there is no value."""
    nan = jnp.isnan(a) | jnp.isnan(x) | (x < 0) | (a < 0) | ((a == 0) & (x == 0))
    usual = ~nan & (x > 0) & jnp.isfinite(x) & (a > 0)
    fraction = (x >= 1) & (x > a)
    one = jnp.ones_like(x)
    low = _lower(jnp.where(usual & ~fraction, a, one), jnp.where(usual & ~fraction, x, one), usual & ~fraction)
    high = _upper(jnp.where(usual & fraction, a, one), jnp.where(usual & fraction, x, 2 * one), usual & fraction)
    p, q = jnp.where(fraction, 1 - high, low), jnp.where(fraction, high, 1 - low)
    at_zero, at_end = x == 0, (a == 0) | jnp.isinf(x)
    p, q = jnp.where(at_zero, 0.0, jnp.where(at_end, 1.0, p)), jnp.where(at_zero, 1.0, jnp.where(at_end, 0.0, q))
    return jnp.where(nan, jnp.nan, p), jnp.where(nan, jnp.nan, q)


@decomposition("igamma")
def igamma(a, x):
    return _both(a, x)[0]


@decomposition("igammac")
def igammac(a, x):
    return _both(a, x)[1]


def _lower_slope(a, x, active):
    """∂P/∂a by the series, whose terms are differentiated along with it."""

    def step(now):
        n, term, bend, total, slope, on = now
        term = term * x / (a + n)
        bend = (bend * x - term) / (a + n)
        total, slope = jnp.where(on, total + term, total), jnp.where(on, slope + bend, slope)
        return n + 1, term, bend, total, slope, on & (_converging(term, total) | _converging(bend, slope))

    start = jnp.asarray(1, x.dtype), jnp.ones_like(x), jnp.zeros_like(x), jnp.ones_like(x), jnp.zeros_like(x), active
    *_, total, slope, _ = jax.lax.while_loop(lambda now: jnp.any(now[5]) & (now[0] < _MOST), step, start)
    return _front(a, x) / a * (slope + (jnp.log(x) - digamma(a + 1)) * total)


def _upper_slope(a, x, active):
    """∂P/∂a = −∂Q/∂a by the fraction f:  ∂Q = Q (log x − ψ(a) + ∂f/f),  ∂f/f = Σ ∂c_n/c_n + ∂d_n/d_n  of Lentz' factors."""

    def step(now):
        n, c, d, value, bend_c, bend_d, slope, on = now
        top, below = -n * (n - a), x + (2 * n + 1) - a  # with derivatives n and −1
        from_c, from_d = below + top / c, below + top * d
        bend_c, bend_d = ((n - top * bend_c) / c - 1) / from_c, -((n + top * bend_d) * d - 1) / from_d
        c, d, change = from_c, 1 / from_d, bend_c + bend_d
        value, slope = jnp.where(on, value * c * d, value), jnp.where(on, slope + change, slope)
        on &= _converging(c * d - 1, jnp.ones_like(d)) | _converging(change, 4 * (1 + jnp.abs(slope)))
        return n + 1, c, d, value, bend_c, bend_d, slope, on

    d, none = 1 / (x + 1 - a), jnp.zeros_like(x)
    start = jnp.asarray(1, x.dtype), jnp.full_like(x, 1 / (jnp.finfo(x.dtype).tiny * 1e10)), d, d, none, d, d, active
    _, _, _, value, _, _, slope, _ = jax.lax.while_loop(lambda now: jnp.any(now[7]) & (now[0] < _MOST), step, start)
    return -_front(a, x) * value * (jnp.log(x) - digamma(a + 1) + 1 / a + slope)


@decomposition("igamma_grad_a")
def igamma_grad_a(a, x):
    usual = (a > 0) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    fraction = (x >= 1) & (x > a)
    one = jnp.ones_like(x)
    low = _lower_slope(jnp.where(usual & ~fraction, a, one), jnp.where(usual & ~fraction, x, one), usual & ~fraction)
    high = _upper_slope(jnp.where(usual & fraction, a, one), jnp.where(usual & fraction, x, 2 * one), usual & fraction)
    return jnp.where(usual, jnp.where(fraction, high, low), jnp.where((x == 0) & (a > 0), 0.0, jnp.nan))


@decomposition("regularized_incomplete_beta")
def betainc(a, b, x):
    nan = jnp.isnan(a) | jnp.isnan(b) | jnp.isnan(x) | (a <= 0) | (b <= 0) | (x < 0) | (x > 1)
    usual = ~nan & (x > 0) & (x < 1)
    one = jnp.ones_like(x)
    a, b, y = jnp.where(usual, a, one), jnp.where(usual, b, one), jnp.where(usual, x, one / 2)
    turned = y > (a + 1) / (a + b + 2)  # I_x(a, b) = 1 − I_{1−x}(b, a), of which one converges fast
    front = jnp.exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * jnp.log(y) + b * jnp.log1p(-y))
    a, b, y = jnp.where(turned, b, a), jnp.where(turned, a, b), jnp.where(turned, 1 - y, y)

    def coefficient(n):
        m = jnp.floor(n / 2)
        even = m * (b - m) * y / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * y / ((a + 2 * m) * (a + 2 * m + 1))
        return jnp.where(n == 2 * m, even, odd), one

    value = front / a * _fraction(one, coefficient, usual)
    value = jnp.where(turned, 1 - value, value)
    return jnp.where(nan, jnp.nan, jnp.where(x == 0, 0.0, jnp.where(x == 1, 1.0, value)))
