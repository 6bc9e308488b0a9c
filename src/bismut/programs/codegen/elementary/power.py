"""Powers and the cubic root.

xʸ = exp(y log x),     log x and y log x as sums of two numbers: 66 bits of the logarithm leave 56 of a power as large as 2^1024
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.double_double import exact_product
from bismut.programs.codegen.elementary.exponential import exp_twofold
from bismut.programs.codegen.elementary.formula import RealVector, fma, polynomial, where
from bismut.programs.codegen.elementary.logarithm import log_twofold

# ∛m, interpolated in the six Chebyshev points of [1, 2] with 90 digits: right to 19 bits.
_ROOT = (0.47514693623890253, 0.8317431442479309, -0.4602977267696209, 0.19665479701360078, -0.04831832068166114, 0.005072953325277491)


def pow(x: RealVector, y: RealVector) -> RealVector:
    size = abs(x)
    there = (size > 0.0) & (size < math.inf)
    log = log_twofold(where(there, size, 1.0))
    # Beyond 2^65 every power of a number other than ±1 is 0 or ∞ already.
    exponent = y.at_most(2.0**65).at_least(-(2.0**65))
    main, lost = exact_product(exponent, log[0])
    lost = where(abs(main) < 800.0, fma(exponent, log[1], lost), 0.0)
    result = exp_twofold((main.at_most(800.0).at_least(-800.0), lost))
    ends = where((size > 1.0) ^ (y < 0.0), math.inf, 0.0)
    return _with_sign(x, y, where(there, result, ends))


def _with_sign(x: RealVector, y: RealVector, result: RealVector) -> RealVector:
    """Signs and exceptions, as C has them: x^0 = 1^y = 1 even for NaN, no broken power of a negative number."""
    size = abs(y)
    integral = y.rint().equals(y)
    half = y * 0.5
    odd = integral & (size < 2.0**53) & ~half.rint().equals(half)
    result = where(x.negative() & odd, -result, result)
    result = where((x < 0.0) & (x > -math.inf) & ~integral, math.nan, result)
    result = where(x.is_nan() | y.is_nan(), x + y, result)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, result)


def cbrt(x: RealVector) -> RealVector:
    """|x| = 2^(3k + j) m with 1 ≤ m < 2 and j = 0, 1, 2: 2ᵏ ∛(2ʲ m), a polynomial and one step of Halley's from 19 bits to all."""
    size = abs(x)
    small = size < 2.0**-1022
    bits = where(small, size * 2.0**54, size).bits()
    exponent = ((bits >> 52) | (1075 << 52)).real() - (2.0**52 + 1023.0)
    k = fma(exponent, 1.0 / 3.0, -1.0 / 3.0).rint()  # ⌊exponent / 3⌋
    j = exponent - k * 3.0
    m = ((bits & (2**52 - 1)) | (1023 << 52)).real()
    start = polynomial(m, _ROOT)
    start = where(j.equals(0.0), start, where(j.equals(1.0), start * 1.2599210498948732, start * 1.5874010519681996))
    start = (start.bits() & -(2**28)).real()  # 25 bits: its square is exact
    cube = where(j.equals(0.0), m, where(j.equals(1.0), m * 2.0, m * 4.0))
    over = cube / (start * start)
    root = fma(start, (over - start) / (start + start + over), start)
    power = k - where(small, 18.0, 0.0) + (1.5 * 2.0**52 + 1023.0)
    root = (root * (power.bits() << 52).real()).signed_as(x)
    return where(size.equals(0.0) | ~(size < math.inf), x + x, root)
