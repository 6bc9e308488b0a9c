"""sin, cos and tan.

x = n π/2 + r:     sin x = ± sin r or ± cos r,     tan x = tan r or −1 / tan r

sin r = r + r³ S(r²),     cos r = 1 − r²/2 + r⁴ C(r²)     on |r| ≤ π/4
"""

from __future__ import annotations

from bismut.programs.codegen.elementary.argument_reduction import with_turns
from bismut.programs.codegen.elementary.double_double import DoubleDouble, exact_product, ordered_sum, quotient
from bismut.programs.codegen.elementary.formula import Bits, RealVector, fma, polynomial, where

# (sin √z / √z − 1) / z and (cos √z − 1 + z/2) / z², interpolated in the six Chebyshev points of [0, 1.001 (π/4)²] with 70 digits.
_SINE = (-0.16666666666666666, 0.008333333333330936, -0.00019841269836740532, 2.7557316093198404e-06, -2.5051129896450185e-08, 1.5917988979397435e-10)
_COSINE = (0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05, -2.755731726587808e-07, 2.087614504941318e-09, -1.138254464534925e-11)


def sin(x: RealVector) -> RealVector:
    return where(x.equals(0.0), x, with_turns("sin", x, _sine_of, fine=False))  # −0 stays −0


def cos(x: RealVector) -> RealVector:
    return with_turns("cos", x, lambda n, r, rest: _sine_of(n + 1, r, rest), fine=False)


def tan(x: RealVector) -> RealVector:
    # The rest of a subnormal quotient is lost; −0 stays −0.
    return where(abs(x) < 2.0**-500, x, with_turns("tan", x, _tangent_of, fine=True))


def _tangent_of(n: Bits, r: RealVector, rest: RealVector | None) -> RealVector:
    s, c = _sine(r, rest), _cosine(r, rest)
    odd = n.odd()
    above = where(odd, c[0], s[0]), where(odd, c[1], s[1])
    below = where(odd, -s[0], c[0]), where(odd, -s[1], c[1])
    return quotient(above, below)[0]


def _sine_of(n: Bits, r: RealVector, rest: RealVector | None) -> RealVector:
    """sin(n π/2 + r)."""
    s, s_rest = _sine(r, rest)
    c, c_rest = _cosine(r, rest)
    size = where(n.odd(), c + c_rest, s + s_rest)
    return (size.bits() ^ ((n & 2) << 62)).real()


def _sine(r: RealVector, rest: RealVector | None) -> DoubleDouble:
    z = r * r
    tail = polynomial(z, _SINE)
    return (r, (r * z) * tail) if rest is None else ordered_sum(r, fma(r * z, tail, rest))


def _cosine(r: RealVector, rest: RealVector | None) -> DoubleDouble:
    """1 − r²/2 first, its rounding carried along, so that cos 0 is 1 and no cosine exceeds it."""
    if rest is None:
        half = r * -0.5
        main = fma(half, r, 1.0)
        z = r * r
        return main, fma(z * z, polynomial(z, _COSINE), fma(half, r, 1.0 - main))
    z, e = exact_product(r, r)
    main, lost = ordered_sum(z.lift(1.0), z * -0.5)
    return ordered_sum(main, fma(z * z, polynomial(z, _COSINE), lost) - fma(r, rest, e * 0.5))
