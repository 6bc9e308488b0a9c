"""asin, acos, atan and atan2.

atan2(y, x) = k π/4 ± atan t,     t = a / b or (a − b) / (a + b) with a ≤ b the sizes of x and y, |t| ≤ √2 − 1,     atan t = t + t³ T(t²)

asin x = x + x³ A(x²) for |x| ≤ ½,     asin x = π/2 − 2 asin √((1 − x) / 2) above,     acos x = π/2 − asin x
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.double_double import exact_sum, ordered_sum, quotient
from bismut.programs.codegen.elementary.formula import Mask, RealVector, fma, polynomial, where

_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)  # to 50 bits, so that small multiples are exact, and 53 more

# (atan √z / √z − 1) / z, interpolated in the twelve Chebyshev points of [0, 1.001 (√2 − 1)²] with 70 digits.
_ATAN = (
    -0.3333333333333333,
    0.199999999999998,
    -0.14285714285659326,
    0.11111111105106705,
    -0.09090908751076636,
    0.0769229630497447,
    -0.06666423628069258,
    0.058789145444006215,
    -0.052303478730160745,
    0.04551108126325172,
    -0.034558092551413795,
    0.01627194475162406,
)

# (asin √z / √z − 1) / z, interpolated in the thirteen Chebyshev points of [0, 1/4] with 70 digits.
_ASIN = (
    0.16666666666666669,
    0.07499999999998433,
    0.04464285714635543,
    0.030381944138531247,
    0.02237217294214989,
    0.017352392720869973,
    0.013971212973552933,
    0.011479177415184906,
    0.01032281435018578,
    0.005457506718640358,
    0.01740087944269402,
    -0.014851887071247204,
    0.028757851367421566,
)


def atan(x: RealVector) -> RealVector:
    size = abs(x).at_most(2.0**60)  # within a rounding of π/2 from there on
    steep = size > 1.0
    angle = _angle(where(steep, 1.0, size), where(steep, size, 1.0), steep, None)
    return where(abs(x) < 2.0**-28, x, angle.signed_as(x))


def atan2(y: RealVector, x: RealVector) -> RealVector:
    up, right = abs(y), abs(x)
    steep = up > right
    a, b = where(steep, right, up), where(steep, up, right)
    a = where(b.equals(math.inf), where(a.equals(math.inf), 1.0, 0.0), a)
    b = where(b.equals(math.inf) | b.equals(0.0), 1.0, b)
    # b near 1, by a power of two: sums and reciprocals stay numbers. A number above 2^1000 has no such power that is one, hence the first factor.
    first = where(b > 2.0**1000, 2.0**-100, 1.0)
    a, b = a * first, b * first
    scale = ((2046 << 52) - (b.bits() & (0x7FF << 52))).real()
    angle = _angle(a * scale, b * scale, steep, x.negative())
    return where(x.is_nan() | y.is_nan(), x + y, angle.signed_as(y))


def _angle(a: RealVector, b: RealVector, steep: Mask, left: Mask | None) -> RealVector:
    """The angle above the axis whose sides are a ≤ b, exchanged if `steep` and mirrored if `left`."""
    middle = a > b * 0.4142135623730951
    above, below = exact_sum(a, -b), exact_sum(b, a)
    t, rest = quotient(
        (where(middle, above[0], a), where(middle, above[1], 0.0)),
        (where(middle, below[0], b), where(middle, below[1], 0.0)),
    )
    eighths = where(middle, 1.0, 0.0)
    eighths = where(steep, 2.0 - eighths, eighths)
    backward = steep
    if left is not None:
        eighths = where(left, 4.0 - eighths, eighths)
        backward = steep ^ left
    z = t * t
    rest = fma(t * z, polynomial(z, _ATAN), rest)
    t, rest = where(backward, -t, t), where(backward, -rest, rest)
    main, lost = ordered_sum(eighths * _QUARTER_PI[0], t)
    return main + (lost + fma(eighths, _QUARTER_PI[1], rest))


def asin(x: RealVector) -> RealVector:
    outside, w, rest = _arc(x)
    total = where(outside, _difference(2.0, w + w, rest + rest), w + rest)
    return where(abs(x) < 2.0**-28, x, total.signed_as(x))


def acos(x: RealVector) -> RealVector:
    outside, w, rest = _arc(x)
    negative = x < 0.0
    near = _difference(2.0, where(negative, -w, w), where(negative, -rest, rest))
    far = where(negative, _difference(4.0, w + w, rest + rest), (w + rest) * 2.0)
    return where(outside, far, near)


def _arc(x: RealVector) -> tuple[Mask, RealVector, RealVector]:
    """Whether |x| > ½, and asin of |x| or of √((1 − |x|) / 2) as w + rest."""
    size = abs(x)
    outside = size > 0.5
    z = where(outside, (1.0 - size) * 0.5, size * size)
    w = where(outside, z.sqrt(), size)
    return outside, w, (w * z) * polynomial(z, _ASIN)


def _difference(eighths: float, w: RealVector, rest: RealVector) -> RealVector:
    """eighths π/4 − (w + rest)."""
    main, lost = ordered_sum(w.lift(eighths * _QUARTER_PI[0]), -w)
    return main + (lost + (eighths * _QUARTER_PI[1] - rest))
