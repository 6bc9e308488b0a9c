"""sin, cos, exp and log in float32, for processors that fuse: the formulas of float64 with shorter polynomials, twice as many numbers in a register.

    x = n π/2 + r,   |r| ≤ π/4          x = n ln 2 + r,   |r| ≤ ½ ln 2          x = 2ᵏ m,   √½ ≤ m < √2

Right to 1.5 units in the last place; all other functions, and angles above 2^15, are computed in float64 and rounded once.
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary import trigonometric
from bismut.programs.codegen.elementary.formula import Bits, RealVector, fma, polynomial, rarely, where
from bismut.programs.codegen.elementary.outline import outlined

_MAGIC = 1.5 * 2.0**23  # a sum with it rounds to a whole number and leaves it in the lowest bits
_TWO_OVER_PI = 0.6366197466850281
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)  # to 24 bits each
_LARGE = 2.0**15
_LOG2_E = 1.4426950216293335
_LN2 = (0.693145751953125, 1.428606765330187e-06)  # to 15 bits, so that n times it is exact, and 24 more
_ROOT_HALF = 0x3F3504F3  # the bits of √½

# The functions of the float64 formulas, on the same intervals: 3, 3, 5 (behind ½) and 4 Chebyshev points.
_SINE = (-0.16666664, 0.008332747, -0.00019587639)
_COSINE = (0.041666664, -0.0013888301, 2.454769e-05)
_EXPONENTIAL = (0.5, 0.16666667, 0.041666552, 0.008333321, 0.001392625, 0.00019882774)
_AREA = (0.6666667, 0.40000123, 0.2855078, 0.23331614)


def sin(x: RealVector) -> RealVector:
    n, r = _quarter_turns(x)
    usual = where(x.equals(0.0), x, _sine_of(n, r))  # −0 stays −0
    return rarely(abs(x) > _LARGE, [usual], lambda: [_in_double("sin", x)])[0]


def cos(x: RealVector) -> RealVector:
    n, r = _quarter_turns(x)
    return rarely(abs(x) > _LARGE, [_sine_of(n + 1, r)], lambda: [_in_double("cos", x)])[0]


def exp(x: RealVector) -> RealVector:
    inside = x.at_most(100.0).at_least(-120.0)
    shifted = inside * _LOG2_E + (_MAGIC + 254.0)
    n = shifted - (_MAGIC + 254.0)
    r = fma(n, -_LN2[1], fma(n, -_LN2[0], inside))
    size = 1.0 + fma(r * r, polynomial(r, _EXPONENTIAL), r)
    half = shifted.bits() >> 1
    return (size * (half << 23).real()) * ((shifted.bits() - half) << 23).real()


def log(x: RealVector) -> RealVector:
    small = x < 2.0**-126
    bits = where(small, x * 2.0**25, x).bits() - (_ROOT_HALF - (128 << 23))
    k = ((bits >> 23) | (150 << 23)).real() - where(small, x.lift(2.0**23 + 128.0 + 25.0), 2.0**23 + 128.0)
    f = ((bits & (2**23 - 1)) + _ROOT_HALF).real() - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = (f * 0.5) * f
    tail = fma(s, fma(z, polynomial(z, _AREA), half), k * _LN2[1])
    size = where(x < math.inf, fma(k, _LN2[0], f - (half - tail)), x)
    return where(x < 0.0, math.nan, where(x.equals(0.0), -math.inf, size))


def _quarter_turns(x: RealVector) -> tuple[Bits, RealVector]:
    """n modulo 4 in the lowest bits, and r, of which only one sum is rounded."""
    turns = fma(x, _TWO_OVER_PI, _MAGIC)
    n = turns - _MAGIC
    return turns.bits(), fma(n, -_HALF_PI[2], fma(n, -_HALF_PI[1], fma(n, -_HALF_PI[0], x)))


def _sine_of(n: Bits, r: RealVector) -> RealVector:
    """sin(n π/2 + r)."""
    z = r * r
    sine = fma(r * z, polynomial(z, _SINE), r)
    half = r * -0.5
    main = fma(half, r, 1.0)
    cosine = main + fma(z * z, polynomial(z, _COSINE), fma(half, r, 1.0 - main))
    return (where(n.odd(), cosine, sine).bits() ^ ((n & 2) << 30)).real()


def _in_double(name: str, x: RealVector) -> RealVector:
    formula = getattr(trigonometric, name)
    return outlined(f"{name}_in_double", lambda y: [formula(y)], 1, x.widened(), keep=True)[0].narrowed()
