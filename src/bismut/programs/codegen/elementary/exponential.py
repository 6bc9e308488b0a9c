"""exp, exp2, expm1 and the logistic function.

    x = n ln 2 + r,     eˣ = 2ⁿ eʳ,     eʳ = 1 + r + r² E(r)     on |r| ≤ ½ ln 2

2ⁿ is applied in two factors, so that results near the ends of the range overflow and underflow once, by themselves.
"""

from __future__ import annotations

from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, exact_sum, ordered_sum, quotient
from bismut.programs.codegen.elementary.formula import Bits, RealVector, fma, polynomial, where

LOG2_E = 1.4426950408889634
LN2 = (0.6931471805598903, 5.497923018708371e-14)  # to 42 bits, so that n times it is exact, and 53 more
_LN2_FULL = (0.6931471805599453, 2.3190468138462996e-17)
_MAGIC = 1.5 * 2.0**52 + 2046.0  # leaves n + 2046 in the lowest bits

# 1/2 and (eʳ − 1 − r − r²/2) / r³, interpolated in the ten Chebyshev points of |r| ≤ 1.001 ½ ln 2 with 90 digits.
_EXPONENTIAL = (
    0.5,
    0.16666666666666669,
    0.041666666666666664,
    0.008333333333330039,
    0.0013888888888886537,
    0.00019841269863171557,
    2.4801587317228724e-05,
    2.7557268276905696e-06,
    2.7557282838800484e-07,
    2.5100472505694996e-08,
    2.09112987659402e-09,
)


def exp(x: RealVector) -> RealVector:
    inside = x.at_most(720.0).at_least(-760.0)
    raised, n = nearest(inside * LOG2_E)
    r = fma(n, -LN2[1], fma(n, -LN2[0], inside))
    return scaled(raised, 1.0 + fma(r * r, polynomial(r, _EXPONENTIAL), r))


def exp2(x: RealVector) -> RealVector:
    inside = x.at_most(1030.0).at_least(-1090.0)
    raised, n = nearest(inside)
    r, rest = exact_product(inside - n, x.lift(_LN2_FULL[0]))
    rest = fma(inside - n, _LN2_FULL[1], rest)
    return scaled(raised, 1.0 + (r + fma(r * r, polynomial(r, _EXPONENTIAL), rest)))


def exp_twofold(x: DoubleDouble) -> RealVector:
    """e to the x₀ + x₁, |x₁| ≪ 1."""
    raised, main, lost = exp_parts(x)
    return scaled(raised, main + lost)


def exp_parts(x: DoubleDouble) -> tuple[Bits, RealVector, RealVector]:
    """n + 2046 in the lowest bits, and eʳ as a sum of two numbers."""
    raised, n = nearest(x[0] * LOG2_E)
    r, rest = reduced(n, x)
    main, lost = ordered_sum(r.lift(1.0), r)
    return raised, main, lost + fma(r * r, polynomial(r, _EXPONENTIAL), rest)


def expm1(x: RealVector) -> RealVector:
    """eˣ − 1 = (2ⁿ − 1) + 2ⁿ (eʳ − 1); halves of both until the end, since 2^1024 overflows."""
    inside = x.at_most(710.0).at_least(-60.0)
    raised, n = nearest(inside * LOG2_E)
    r, rest = reduced(n, (inside, x.lift(0.0)))
    power = power_of_two(raised - 1)
    main, lost = ordered_sum(power - 0.5, power * r)
    total = main + fma(power, fma(r * r, polynomial(r, _EXPONENTIAL), rest), lost)
    return where(abs(x) < 2.0**-54, x, total + total)


def logistic(x: RealVector) -> RealVector:
    """1 / (1 + t) or t / (1 + t) with t = e^−|x|, a sum of two numbers."""
    inside = (-abs(x)).at_least(-760.0)
    raised, main, lost = exp_parts((inside, x.lift(0.0)))
    main, lost = ordered_sum(main, lost)
    t = scaled(raised, main), scaled(raised, lost)
    below, carried = ordered_sum(x.lift(1.0), t[0])
    negative = x < 0.0
    above = where(negative, t[0], 1.0), where(negative, t[1], 0.0)
    return where(inside < -708.0, above[0], quotient(above, (below, carried + t[1]))[0])


def nearest(x: RealVector) -> tuple[Bits, RealVector]:
    """The nearest whole number n: n + 2046 in the lowest 12 bits, and n as a real."""
    shifted = x + _MAGIC
    return shifted.bits(), shifted - _MAGIC


def reduced(n: RealVector, x: DoubleDouble) -> DoubleDouble:
    """x − n ln 2; the first difference is exact."""
    main, lost = exact_sum(fma(n, -LN2[0], x[0]), -(n * LN2[1]))
    return exact_sum(main, lost + x[1])


def power_of_two(raised: Bits) -> RealVector:
    """2ⁿ for a normal power, from n + 2046 in the lowest bits."""
    return ((raised - 1023) << 52).real()


def scaled(raised: Bits, x: RealVector) -> RealVector:
    """2ⁿ x, rounded once; exponents ⌊m/2⌋ and ⌈m/2⌉ of m = n + 2046 are those of two normal factors."""
    half = raised >> 1
    return (x * (half << 52).real()) * ((raised - half) << 52).real()
