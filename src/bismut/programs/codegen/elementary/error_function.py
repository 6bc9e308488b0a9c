"""erf and erfc, and the inverse of erf.

erfc x = e^(−x²) g(t) / (1 + 2 x) for x ≥ 0,     t = (x − 3) / (x + 3),     g one smooth function from 1 at x = 0 to 2/√π at infinity

erf x = x + x Q(x²) for |x| ≤ ¾,     erf x = 1 − erfc x above

The inverse:

    erf y = x:     y₀ to 17 bits from w = −log(1 − x²),     d = (x − erf y₀) (√π/2) e^(y₀²),     y = y₀ + d + y₀ d² + (1 + 4 y₀²) d³ / 3 + …

The difference x − erf y₀ is that of 1 − x and erfc y₀ where x is near 1.
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, exact_sum, ordered_sum, product, quotient
from bismut.programs.codegen.elementary.exponential import exp, exp_parts, scaled
from bismut.programs.codegen.elementary.formula import Bits, RealVector, fma, polynomial, where
from bismut.programs.codegen.elementary.logarithm import log_corrected

_MIDDLE = (1.2530080582697296, 4.5276203702746546e-17)  # g(0)

# (g(t) − g(0)) / t, interpolated in the 24 Chebyshev points of [−1, 25/31], x from 0 to 28, with 60 digits.
_TAIL = (
    -0.1356211061245812,
    -0.047562294353451134,
    0.1296451587027614,
    -0.11927366341528091,
    0.0683080273439955,
    -0.02377051491941141,
    0.002529391815054923,
    0.0018886903693583308,
    -0.0007798322562265031,
    -0.00010515987359425264,
    0.0001250992265736615,
    4.949799109463986e-06,
    -2.0099982110010638e-05,
    -7.323165002381201e-07,
    3.4707120010029056e-06,
    3.5803314707000486e-07,
    -6.135197426680664e-07,
    -1.4241546533370614e-07,
    9.83281053230266e-08,
    4.1645455242012595e-08,
    -1.1071999606205203e-08,
    -7.897826974015509e-09,
    3.704526319685188e-10,
    6.190149549646183e-10,
)

_SLOPE = 0.1283791670955126  # 2/√π − 1

# (erf √z / √z − 2/√π) / z, interpolated in the twelve Chebyshev points of [0, 1] with 60 digits.
_NEAR = (
    -0.37612638903183754,
    0.11283791670955111,
    -0.026866170645123838,
    0.005223977625303518,
    -0.0008548327010033328,
    0.00012055332214716276,
    -1.4925622504489842e-05,
    1.6461446656928561e-06,
    -1.6355118610877705e-07,
    1.4692484859133263e-08,
    -1.1500357159785296e-09,
    6.174097221305255e-11,
)


def erf(x: RealVector) -> RealVector:
    size = abs(x)
    raised, tail = complement(size)
    far = 1.0 - scaled(raised, tail[0])
    return where(size > 0.75, far, size + small_part(size)).signed_as(x)


def erfc(x: RealVector) -> RealVector:
    raised, tail = complement(abs(x))
    value, rest = scaled(raised, tail[0]), scaled(raised, tail[1])
    main, lost = ordered_sum(x.lift(2.0), -value)
    far = where(x < 0.0, main + (lost - rest), value)
    main, lost = ordered_sum(x.lift(1.0), -x)
    return where(abs(x) < 0.5, main + (lost - small_part(x)), far)


def small_part(x: RealVector) -> RealVector:
    """erf x − x for |x| ≤ 1."""
    z = x * x
    return x * fma(z, polynomial(z, _NEAR), _SLOPE)


def complement(size: RealVector) -> tuple[Bits, DoubleDouble]:
    """erfc of a number that is not negative, up to a power of two: n + 2046 in the lowest bits, and 2⁻ⁿ erfc as a sum of two numbers."""
    size = size.at_most(28.0)  # erfc(27.3) is 0 in float64
    t, rest = quotient(exact_sum(size, size.lift(-3.0)), exact_sum(size, size.lift(3.0)))
    g, lost = ordered_sum(size.lift(_MIDDLE[0]), t * polynomial(t, _TAIL))
    g = g, lost + fma(rest, _TAIL[0], _MIDDLE[1])
    square, error = exact_product(size, size)
    raised, main, lost = exp_parts((-square, -error))
    return raised, product(quotient(g, exact_sum(size + size, size.lift(1.0))), ordered_sum(main, lost))


# The inverse.

_HALF_ROOT_PI = 0.886226925452758

# y / x as a function of w − 5/2 for w ≤ 5 and of √w − 4 above (up to 6.2), interpolated in nine Chebyshev points each.
_CENTRE = (
    1.501409351110792,
    0.2466407662672499,
    -0.004177346517287056,
    -0.001253758884835318,
    0.00021831297984101024,
    -4.38034671412375e-06,
    -3.454779514269784e-06,
    3.4222470899345687e-07,
    2.2605977741170975e-08,
)
_OUTSIDE = (
    3.839777580382146,
    1.009512221321777,
    0.0013237087122123753,
    -0.0009433336766889268,
    0.00021802116668184722,
    -2.7886630738945093e-05,
    0.00010576293130230591,
    -7.876299566045265e-05,
    1.5924086555934602e-05,
)


def erf_inv(x: RealVector) -> RealVector:
    size = abs(x)
    inside = size.at_most(1.0 - 2.0**-53)
    w = -log_corrected((1.0 - inside) * (1.0 + inside), None)
    ratio = where(w > 5.0, polynomial(w.at_least(0.0).sqrt() - 4.0, _OUTSIDE), polynomial(w - 2.5, _CENTRE))
    start = inside * ratio
    raised, tail = complement(start)
    far = (scaled(raised, tail[0]) - (1.0 - inside)) + scaled(raised, tail[1])
    near = (inside - start) - small_part(start)
    d = where(inside > 0.5, far, near) * exp(start * start) * _HALF_ROOT_PI
    third = fma(start * start, 4.0, 1.0) * (1.0 / 3.0)
    result = start + d * fma(d, fma(d, third, start), 1.0)
    result = where(size >= 1.0, where(size > 1.0, math.nan, math.inf), result)
    return result.signed_as(x)
