"""Double-double arithmetic: one number as the sum of two.

    a + b = s + e exactly,     a b = p + e exactly,     |e| ≤ half a unit in the last place of s or p

What a formula would lose by rounding is carried along in a second number; 106 bits suffice where the result is to be right in its last of 53.
"""

from __future__ import annotations

from bismut.programs.codegen.elementary.formula import RealVector, fma, where

DoubleDouble = tuple[RealVector, RealVector]

_SPLIT = 134217729.0  # 2^27 + 1: cuts a number in two halves of 26 bits


def ordered_sum(a: RealVector, b: RealVector) -> DoubleDouble:
    """a + b, exact where |a| ≥ |b|, a = 0 or a is a multiple of the last place of b."""
    s = a + b
    return s, b - (s - a)


def exact_sum(a: RealVector, b: RealVector) -> DoubleDouble:
    s = a + b
    b_seen = s - a
    return s, (a - (s - b_seen)) + (b - b_seen)


def exact_product(a: RealVector, b: RealVector) -> DoubleDouble:
    """a b; without a fused instruction from the products of halves, which asks for |a|, |b| < 2^996."""
    p = a * b
    if a.code.fused:
        return p, fma(a, b, -p)
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: RealVector) -> DoubleDouble:
    wide = a * _SPLIT
    upper = wide - (wide - a)
    return upper, a - upper


def product(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    p, e = exact_product(a[0], b[0])
    return ordered_sum(p, fma(a[0], b[1], fma(a[1], b[0], e)))


def sum_of(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    s, e = exact_sum(a[0], b[0])
    return ordered_sum(s, e + (a[1] + b[1]))


def quotient(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """a / b by one division: the rest a − q b is exact and divided to a few bits."""
    inverse = 1.0 / b[0]
    q = a[0] * inverse
    p, e = exact_product(q, b[0])
    rest = ((a[0] - p) - e) + (a[1] - q * b[1])
    return ordered_sum(q, rest * inverse)


def root(a: DoubleDouble) -> DoubleDouble:
    """√a: s = √a₀, then (a − s²) / 2s."""
    s = a[0].sqrt()
    p, e = exact_product(s, s)
    return ordered_sum(s, (((a[0] - p) - e) + a[1]) * 0.5 / where(s.equals(0.0), 1.0, s))
