"""sinh, cosh and tanh, and their inverses.

|x| = n ln 2 + r,     a = 2ⁿ, b = 2⁻ⁿ:     2 sinh |x| = (a − b) cosh r + (a + b) sinh r,     2 cosh |x| = (a + b) cosh r + (a − b) sinh r

cosh r = 1 + r² C(r²),     sinh r = r + r³ S(r²)     on |r| ≤ ½ ln 2

The inverses:

    asinh x = log(x + √(x² + 1)),     acosh x = log(1 + v), v = x − 1 + √((x − 1)(x + 1)),     atanh x = ½ log((1 + x) / (1 − x))

The argument of the logarithm is a sum u + c of two numbers: log(u + c) = log u + c / u. Below ½ asinh and atanh are polynomials x + x³ P(x²), since
the logarithm of a number near 1 does not have the digits.
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, exact_sum, ordered_sum, quotient, root, sum_of
from bismut.programs.codegen.elementary.exponential import LOG2_E, nearest, power_of_two, reduced
from bismut.programs.codegen.elementary.formula import RealVector, fma, polynomial, where
from bismut.programs.codegen.elementary.logarithm import log_corrected

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


# The inverses.

_LARGE = 2.0**30  # √(x² ± 1) = |x| from here on, in the sense of the last place of the logarithm

# (asinh √z / √z − 1) / z, interpolated in the twelve Chebyshev points of [0, 1/4] with 70 digits.
_ASINH = (
    -0.16666666666666666,
    0.0749999999999864,
    -0.044642857140252436,
    0.030381944248546365,
    -0.022372151449922602,
    0.01735258771519257,
    -0.013962235682232349,
    0.011526210169675569,
    -0.009591452221673173,
    0.007622309427481728,
    -0.004992717198142511,
    0.0018854117655039003,
)

# (atanh √z / √z − 1) / z, interpolated in the fourteen Chebyshev points of [0, 1/4] with 70 digits.
_ATANH = (
    0.3333333333333333,
    0.20000000000000864,
    0.14285714285490106,
    0.11111111133938968,
    0.09090907881509189,
    0.07692345940270638,
    0.06665886352701884,
    0.05893099692590042,
    0.05160769881147162,
    0.05441915418234587,
    0.012292448728540531,
    0.13557903913692299,
    -0.14450491183414468,
    0.21098097885975797,
)


def asinh(x: RealVector) -> RealVector:
    size = abs(x)
    middle = size.at_most(_LARGE)
    square, rest = exact_product(middle, middle)
    main, lost = exact_sum(square, x.lift(1.0))
    total = sum_of((middle, x.lift(0.0)), root((main, lost + rest)))
    far = _log_of(total, size)
    z = size * size
    near = fma(size * z, polynomial(z, _ASINH), size)
    result = where(size > 0.5, far, near).signed_as(x)
    return where((size > 2.0**-28) & (size < math.inf), result, x)


def acosh(x: RealVector) -> RealVector:
    above = x.at_most(_LARGE) - 1.0
    main, lost = exact_sum(above, x.lift(2.0))
    product, rest = exact_product(above, main)
    v, tail = sum_of(root((product, fma(above, lost, rest))), (above, x.lift(0.0)))
    main, lost = exact_sum(x.lift(1.0), v)
    return where(x < 1.0, math.nan, where(x < math.inf, _log_of((main, lost + tail), x), x))


def atanh(x: RealVector) -> RealVector:
    size = abs(x)
    inside = size.at_most(1.0 - 2.0**-53)
    u, c = quotient(ordered_sum(x.lift(1.0), inside), (1.0 - inside, x.lift(0.0)))
    far = log_corrected(u, c / u) * 0.5
    z = size * size
    near = fma(size * z, polynomial(z, _ATANH), size)
    result = where(size > 0.5, far, near)
    result = where(size >= 1.0, where(size > 1.0, math.nan, math.inf), result)
    return where(size < 2.0**-28, x, result.signed_as(x))


def _log_of(total: DoubleDouble, size: RealVector) -> RealVector:
    """log(u + c), or log(2 size) where size is large."""
    large = size > _LARGE
    u = where(large, size, total[0])
    return log_corrected(u, where(large, 0.0, total[1] / total[0]), where(large, 1.0, 0.0))
