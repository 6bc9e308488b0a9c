"""log and log1p, and the logarithm as a sum of two numbers for powers.

    x = 2ᵏ m,  √½ ≤ m < √2,     s = (m − 1) / (m + 1),     log x = k ln 2 + 2 artanh s,     2 artanh s = 2 s + s³ A(s²)

With f = m − 1, exact, 2 s = f − s f, so that only small terms are rounded before the last sum.
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, exact_sum, ordered_sum, product, quotient
from bismut.programs.codegen.elementary.exponential import LN2
from bismut.programs.codegen.elementary.formula import RealVector, fma, polynomial, where

_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½
_MANTISSA = 2**52 - 1
_LN2_THIRD = 1.94704509238075e-31  # what the two parts of ln 2 leave
_THIRD = (0.3333333333333333, 1.850371707708594e-17)

# (2 artanh √t / √t − 2) / t, interpolated in the eight Chebyshev points of [0, 1.001 (3 − √8)²] with 70 digits.
_AREA = (
    0.6666666666666666,
    0.40000000000000885,
    0.28571428570799784,
    0.22222222392581045,
    0.18181795547521137,
    0.15386244737621665,
    0.13268638369266825,
    0.13088034850927555,
)

# (artanh √t / √t − 1 − t/3) / t², interpolated in the nine Chebyshev points of the same interval.
_AREA_FAR = (
    0.2,
    0.14285714285714282,
    0.11111111111114234,
    0.09090909089822495,
    0.07692307881454075,
    0.06666648198981917,
    0.05883409510814777,
    0.05228097555200746,
    0.0538181075750563,
)


def log(x: RealVector) -> RealVector:
    return _at_the_ends(x, log_corrected(x, None))


def log1p(x: RealVector) -> RealVector:
    """log(u + c) with u = 1 + x rounded and c what was lost."""
    u, c = exact_sum(x.lift(1.0), x)
    return where(abs(x) < 2.0**-54, x, _at_the_ends(u, log_corrected(u, c / u)))


def log_corrected(x: RealVector, correction: RealVector | None, doublings: RealVector | None = None) -> RealVector:
    """log(2ʲ x) + correction for a positive, finite x and a number j of doublings."""
    k, m = split(x)
    if doublings is not None:
        k = k + doublings
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = (f * 0.5) * f
    tail = fma(s, fma(z, polynomial(z, _AREA), half), k * LN2[1])
    if correction is not None:
        tail = tail + correction
    return fma(k, LN2[0], f - (half - tail))


def log_twofold(x: RealVector) -> DoubleDouble:
    """log x for a positive, finite x, right to 66 bits or more."""
    k, m = split(x)
    s = quotient((m - 1.0, m.lift(0.0)), exact_sum(m, m.lift(1.0)))
    t = product(s, s)
    far = t[0] * polynomial(t[0], _AREA_FAR)
    near, lost = ordered_sum(t[0].lift(_THIRD[0]), far)
    cube = product(product(s, t), (near, lost + _THIRD[1]))
    artanh, lost = ordered_sum(s[0], cube[0])
    lost = lost + (s[1] + cube[1])
    main, carried = ordered_sum(k * LN2[0], artanh + artanh)
    p, e = exact_product(k, k.lift(LN2[1]))
    main, second = exact_sum(main, p)
    return ordered_sum(main, second + (carried + fma(k, _LN2_THIRD, e) + (lost + lost)))


def split(x: RealVector) -> tuple[RealVector, RealVector]:
    """k and m; a subnormal x is first multiplied by 2^54. The sum of exponents is kept positive, so that shifts need no sign."""
    small = x < 2.0**-1022
    bits = where(small, x * 2.0**54, x).bits() - (_ROOT_HALF - (1024 << 52))
    exponent = ((bits >> 52) | (1075 << 52)).real()  # 2^52 + k + 1024
    m = ((bits & _MANTISSA) + _ROOT_HALF).real()
    return exponent - where(small, 2.0**52 + 1024.0 + 54.0, 2.0**52 + 1024.0), m


def _at_the_ends(x: RealVector, size: RealVector) -> RealVector:
    """log 0 = −∞, log ∞ = ∞, no logarithm of what is negative, NaN stays."""
    size = where(x < math.inf, size, x)
    size = where(x.equals(0.0), -math.inf, size)
    return where(x < 0.0, math.nan, size)
