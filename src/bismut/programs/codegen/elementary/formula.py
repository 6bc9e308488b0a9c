"""Formulas on vectors, written as formulas.

    a * b + c     means     code.add(code.mul(a, b), c),     each operation rounded by itself

Reals are float64, or float32 where a formula says so. A plain number in a formula stands for itself in every lane; `fma` is written where a product
is to be fused with a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Code, Value


class Mask:
    """Yes or no in every lane."""

    def __init__(self, code: Code, value: Value):
        self.code, self.value = code, value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.code, self.code.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.code, self.code.builder.or_(self.value, other.value))

    def __xor__(self, other: Mask) -> Mask:
        return Mask(self.code, self.code.builder.xor(self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self.code, self.code.builder.not_(self.value))

    def somewhere(self) -> Value:
        """One bit: whether any lane says yes."""
        mask = ir.IntType(self.code.width)
        return self.code.builder.icmp_unsigned("!=", self.code.builder.bitcast(self.value, mask), ir.Constant(mask, 0))


class Bits:
    """The 64 or 32 bits of every lane; sums and differences are modulo 2^64 or 2^32, shifts fill with zeros."""

    def __init__(self, code: Code, value: Value):
        self.code, self.value = code, value

    def _with(self, name: str, other: Bits | int) -> Bits:
        return Bits(self.code, getattr(self.code.builder, name)(self.value, self.lift(other).value))

    def lift(self, other: Bits | int) -> Bits:
        return other if isinstance(other, Bits) else Bits(self.code, self.code.like(other, self.value))

    def __add__(self, other: Bits | int) -> Bits:
        return self._with("add", other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._with("sub", other)

    def __rsub__(self, other: int) -> Bits:
        return self.lift(other) - self

    def __and__(self, other: Bits | int) -> Bits:
        return self._with("and_", other)

    def __or__(self, other: Bits | int) -> Bits:
        return self._with("or_", other)

    def __xor__(self, other: Bits | int) -> Bits:
        return self._with("xor", other)

    def __lshift__(self, other: Bits | int) -> Bits:
        return self._with("shl", other)

    def __rshift__(self, other: Bits | int) -> Bits:
        return self._with("lshr", other)

    def odd(self) -> Mask:
        return Mask(self.code, self.code.builder.icmp_unsigned("!=", (self & 1).value, self.lift(0).value))

    def real(self) -> RealVector:
        return RealVector(self.code, self.code.reals(self.value))


class RealVector:
    """A float64 or float32 in every lane."""

    def __init__(self, code: Code, value: Value):
        self.code, self.value = code, value

    def lift(self, other: RealVector | float) -> RealVector:
        return other if isinstance(other, RealVector) else RealVector(self.code, self.code.like(float(other), self.value))

    def __add__(self, other: RealVector | float) -> RealVector:
        return RealVector(self.code, self.code.add(self.value, self.lift(other).value))

    def __sub__(self, other: RealVector | float) -> RealVector:
        return RealVector(self.code, self.code.sub(self.value, self.lift(other).value))

    def __mul__(self, other: RealVector | float) -> RealVector:
        return RealVector(self.code, self.code.mul(self.value, self.lift(other).value))

    def __truediv__(self, other: RealVector | float) -> RealVector:
        return RealVector(self.code, self.code.div(self.value, self.lift(other).value))

    def __radd__(self, other: float) -> RealVector:
        return self.lift(other) + self

    def __rsub__(self, other: float) -> RealVector:
        return self.lift(other) - self

    def __rmul__(self, other: float) -> RealVector:
        return self.lift(other) * self

    def __rtruediv__(self, other: float) -> RealVector:
        return self.lift(other) / self

    def __neg__(self) -> RealVector:
        return RealVector(self.code, self.code.neg(self.value))

    def __abs__(self) -> RealVector:
        return RealVector(self.code, self.code.abs(self.value))

    def _compare(self, sign: str, other: RealVector | float) -> Mask:
        return Mask(self.code, self.code.compare(sign, self.value, self.lift(other).value))

    def __lt__(self, other: RealVector | float) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: RealVector | float) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: RealVector | float) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: RealVector | float) -> Mask:
        return self._compare(">=", other)

    def equals(self, other: RealVector | float) -> Mask:
        return self._compare("==", other)

    def is_nan(self) -> Mask:
        return Mask(self.code, self.code.is_nan(self.value))

    def negative(self) -> Mask:
        """Whether the sign bit is set, as it is for −0."""
        bits = self.bits()
        return Mask(self.code, self.code.builder.icmp_signed("<", bits.value, bits.lift(0).value))

    def at_most(self, bound: RealVector | float) -> RealVector:
        """The smaller of the two; NaN stays NaN."""
        return where(self > bound, self.lift(bound), self)

    def at_least(self, bound: RealVector | float) -> RealVector:
        return where(self < bound, self.lift(bound), self)

    def sqrt(self) -> RealVector:
        return RealVector(self.code, self.code.sqrt(self.value))

    def rint(self) -> RealVector:
        return RealVector(self.code, self.code.rint(self.value))

    def signed_as(self, other: RealVector) -> RealVector:
        return RealVector(self.code, self.code.copysign(self.value, other.value))

    def bits(self) -> Bits:
        return Bits(self.code, self.code.bits(self.value))

    def widened(self) -> RealVector:
        return RealVector(self.code, self.code.builder.fpext(self.value, self.code.vector(np.float64)))

    def narrowed(self) -> RealVector:
        return RealVector(self.code, self.code.builder.fptrunc(self.value, self.code.vector(np.float32)))


def fma(a: RealVector, b: RealVector | float, c: RealVector | float) -> RealVector:
    """a b + c, rounded once."""
    return RealVector(a.code, a.code.fma(a.value, a.lift(b).value, a.lift(c).value))


def where(condition: Mask, yes: RealVector | float, no: RealVector | float) -> RealVector:
    """One or the other; two plain numbers are float64."""
    code = condition.code
    like = next((side for side in (yes, no) if isinstance(side, RealVector)), None) or RealVector(code, code.constant(0.0, np.float64))
    return RealVector(code, code.select(condition.value, like.lift(yes).value, like.lift(no).value))


def polynomial(x: RealVector, coefficients: Sequence[float]) -> RealVector:
    """c0 + c1 x + c2 x² + …, neighbours paired and pairs of pairs: log2 of the degree steps long, since what follows waits for the last one."""
    terms: list[RealVector | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = [fma(power, terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[len(terms) & ~1 :]]
        power = power * power if len(terms) > 1 else power
    return x.lift(terms[0])


def rarely(needed: Mask, usual: Sequence[RealVector], unusual: Callable[[], Sequence[RealVector]]) -> list[RealVector]:
    """The usual values, or the unusual ones in the lanes that need them; these are computed only if some lane does."""
    code = needed.code
    if not isinstance(code, Code):  # numbers, and no code
        return [where(needed, new, old) for new, old in zip(unusual(), usual, strict=True)] if needed.value.any() else list(usual)
    builder = code.builder
    before = builder.block
    with builder.if_then(needed.somewhere(), likely=False):
        mended = [where(needed, new, old) for new, old in zip(unusual(), usual, strict=True)]
        inside = builder.block
    chosen = []
    for new, old in zip(mended, usual, strict=True):
        phi = builder.phi(old.value.type)
        phi.add_incoming(old.value, before)
        phi.add_incoming(new.value, inside)
        chosen.append(RealVector(code, phi))
    return chosen
