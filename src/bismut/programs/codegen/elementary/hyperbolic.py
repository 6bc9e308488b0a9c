"""sinh, cosh and tanh.

|x| = n ln 2 + r,     a = 2ⁿ, b = 2⁻ⁿ:     2 sinh |x| = (a − b) cosh r + (a + b) sinh r,     2 cosh |x| = (a + b) cosh r + (a − b) sinh r

cosh r = 1 + r² C(r²),     sinh r = r + r³ S(r²)     on |r| ≤ ½ ln 2
"""

from __future__ import annotations

from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, ordered_sum, quotient
from bismut.programs.codegen.elementary.exponential import LOG2_E, nearest, power_of_two, reduced
from bismut.programs.codegen.elementary.formula import RealVector, fma, polynomial, where

# (cosh √z − 1) / z and (sinh √z / √z − 1) / z, interpolated in the six and five Chebyshev points of [0, 1.001² (½ ln 2)²] with 70 digits.
_COSH = (0.5, 0.04166666666666668, 0.0013888888888879004, 2.480158733663095e-05, 2.755726307730941e-07, 2.091821231913398e-09)
_SINH = (0.16666666666666669, 0.008333333333330039, 0.00019841269863171557, 2.7557268276905696e-06, 2.5100472505694996e-08)


def sinh(x: RealVector) -> RealVector:
    main, rest = _scaled_down(x)[0]
    total = main + rest
    return where(abs(x) < 2.0**-28, x, (total * 2.0**31).signed_as(x))


def cosh(x: RealVector) -> RealVector:
    main, rest = _scaled_down(x)[1]
    return (main + rest) * 2.0**31


def tanh(x: RealVector) -> RealVector:
    """sinh / cosh; from 22 on it is 1 to the last bit."""
    above, below = _scaled_down(x.at_most(22.0).at_least(-22.0))
    return where(abs(x) < 2.0**-28, x, quotient(above, below)[0].signed_as(x))


def _scaled_down(x: RealVector) -> tuple[DoubleDouble, DoubleDouble]:
    """2^-31 sinh |x| and 2^-31 cosh |x|, which are far from the largest number where sinh and cosh pass it."""
    size = abs(x).at_most(711.0)
    raised, n = nearest(size * LOG2_E)
    r, rest = reduced(n, (size, x.lift(0.0)))
    z = r * r
    even = z * polynomial(z, _COSH)
    odd = fma(r * z, polynomial(z, _SINH), rest)
    a = power_of_two(raised - 32)
    b = where(n > 64.0, 0.0, (((2046 - 64) << 52) - a.bits()).real())  # 2^-64 / a
    plus, minus = ordered_sum(a, b), ordered_sum(a, -b)
    return _combined(minus, plus, r, even, odd), _combined(plus, minus, r, even, odd)


def _combined(outer: DoubleDouble, inner: DoubleDouble, r: RealVector, even: RealVector, odd: RealVector) -> DoubleDouble:
    """outer (1 + even) + inner (r + odd)."""
    p, e = exact_product(inner[0], r)
    main, lost = ordered_sum(outer[0], p)
    small = fma(outer[0], even, inner[0] * odd) + fma(inner[1], r, outer[1])
    return ordered_sum(main, (lost + e) + small)
