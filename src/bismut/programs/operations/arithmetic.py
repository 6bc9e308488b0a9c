"""Arithmetic of reals and integers, elementary functions.

A product and a sum are fused, a b + c rounded once, wherever a sum meets a product. That is decided by the formula alone, hence for every trajectory
alike. What constants decide is not computed:

    0 · x = 0,   1 · x = x,   0 + x = x,   and an operation on constants alone is a constant

So a sparse Jacobian costs what it holds: directions of derivatives are constants, most of them zero. Multiplying by these zeros as IEEE 754 has it
(0 · ∞ is not a number) takes 3 to 23 % more operations in the steps of the gallery. Whatever else is left out is exact, but for the sign of a zero
in 0 + x; and constants alone follow IEEE 754 (docs/arithmetic.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.codegen.code import Code, Value
from bismut.programs.codegen.elementary import FUNCTIONS
from bismut.programs.codegen.elementary.numbers import elementary
from bismut.programs.codegen.lane import SHARED, Lane, constant, value_of
from bismut.programs.operation import EACH, EVERYWHERE
from bismut.programs.operations.elementwise import ANY, REAL, Elementwise, Emission
from bismut.programs.operations.logic import convert

# Sums and products.


def _is(lane: Any, number: float) -> bool:
    return constant(lane) and lane == number


def _fold_sum(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else None


def _fold_difference(a, b):
    return a if _is(b, 0) and not np.signbit(b) else None


def _fold_product(a, b):
    for x, y in ((a, b), (b, a)):
        if _is(x, 0):
            return x
        if _is(x, 1):
            return y
    return None


class _Sum(Elementwise):
    """a + b or a − b; one operation with a product if one side is one."""

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Lane:
        dtype = next(lane.dtype for lane in lanes if isinstance(lane, Lane))
        fused = self._fused(code, lanes, level, dtype) if dtype.kind == "f" else None
        return super().emit_lane(code, lanes, settings, level) if fused is None else Lane(fused, dtype, level)

    def _fused(self, code: Code, lanes: list, level: int, dtype: np.dtype) -> Value | None:
        """a b + c, a b − c or c − a b. A product that is shared, where the sum is not, is better left as it is."""
        usable = [isinstance(lane, Lane) and lane.factors is not None and (lane.level < SHARED or level == SHARED) for lane in lanes]
        if not any(usable):
            return None
        which = 0 if usable[0] else 1
        other = value_of(code, lanes[1 - which], dtype)
        a, b = (value_of(code, factor, dtype) for factor in lanes[which].factors)
        if self.name == "sub":
            if which == 0:
                other = code.neg(other)
            else:
                a = code.neg(a)
        return code.fma(a, b, other)


class _Multiplication(Elementwise):
    """Remembers its factors, which a sum may fuse with."""

    def labelled(self, value: Value, dtype: np.dtype, level: int, lanes: list) -> Lane:
        factors = (lanes[0], lanes[-1]) if dtype.kind == "f" else None
        return Lane(value, dtype, level, factors)


_Sum(
    *("add", "add_any"),
    numpy=np.add,
    real=lambda at, a, b: at.code.add(a, b),
    integer=lambda at, a, b: at.builder.add(a, b),
    fold=_fold_sum,
    affine_in=EVERYWHERE,
)
_Sum(
    "sub",
    numpy=np.subtract,
    real=lambda at, a, b: at.code.sub(a, b),
    integer=lambda at, a, b: at.builder.sub(a, b),
    fold=_fold_difference,
    affine_in=EVERYWHERE,
)
_Multiplication(
    "mul",
    numpy=np.multiply,
    real=lambda at, a, b: at.code.mul(a, b),
    integer=lambda at, a, b: at.builder.mul(a, b),
    fold=_fold_product,
    affine_in=EACH,
)
_Multiplication("square", numpy=np.square, real=lambda at, a: at.code.mul(a, a), integer=lambda at, a: at.builder.mul(a, a))
Elementwise("neg", numpy=np.negative, real=lambda at, a: at.code.neg(a), integer=lambda at, a: at.builder.neg(a), affine_in=EVERYWHERE)


# Quotients.


def _quotient(a: Any, b: Any) -> Any:
    """Of integers towards zero; by zero all bits are set, and the least number divided by −1 is itself."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    unusual = (b == 0) | _minus_one(b)
    by = np.where(unusual, b.dtype.type(1), b)
    down = a // by
    toward_zero = down + ((a - down * by != 0) & ((a < 0) != (by < 0))).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), np.where(_minus_one(b), np.negative(a), toward_zero))


def _remainder(a: Any, b: Any) -> Any:
    """a − b (a / b), with the sign of a; a itself where b = 0."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    unusual = (b == 0) | _minus_one(b)
    return np.where(b == 0, a, np.fmod(a, np.where(unusual, b.dtype.type(1), b)))


def _minus_one(b: Any) -> Any:
    return b == -1 if b.dtype.kind == "i" else np.zeros_like(b, bool)


def _emit_quotient(at: Emission, a: Value, b: Value) -> Value:
    """The machine must not stop: it never divides by 0, nor the least number by −1."""
    by, none, negative = _divisor(at, b)
    divide = at.builder.sdiv if at.dtype.kind == "i" else at.builder.udiv
    value = at.code.select(none, at.constant(-1 if at.dtype.kind == "i" else np.iinfo(at.dtype).max), divide(a, by))
    return value if negative is None else at.code.select(negative, at.builder.neg(a), value)


def _emit_remainder(at: Emission, a: Value, b: Value) -> Value:
    by, none, _ = _divisor(at, b)
    return at.code.select(none, a, (at.builder.srem if at.dtype.kind == "i" else at.builder.urem)(a, by))


def _divisor(at: Emission, b: Value) -> tuple[Value, Value, Value | None]:
    """One where it is 0 or −1; whether it is 0; whether it is −1."""
    none = at.builder.icmp_unsigned("==", b, at.constant(0))
    if at.dtype.kind != "i":
        return at.code.select(none, at.constant(1), b), none, None
    negative = at.builder.icmp_unsigned("==", b, at.constant(-1))
    return at.code.select(at.builder.or_(none, negative), at.constant(1), b), none, negative


Elementwise(
    "div",
    numpy=_quotient,
    real=lambda at, a, b: at.code.div(a, b),
    integer=_emit_quotient,
    fold=lambda a, b: a if _is(b, 1) else None,
    affine_in=slice(0, 1),
)
Elementwise("rem", numpy=_remainder, real=lambda at, a, b: at.builder.frem(a, b), integer=_emit_remainder, jumps=True)


# Size, sign, extremes.


def _sign(x: Any) -> Any:
    return np.copysign(np.sign(x), x) if x.dtype.kind == "f" else np.sign(x)


def _emit_sign(at: Emission, a: Value) -> Value:
    nonzero = at.builder.or_(at.code.compare(">", a, at.constant(0)), at.code.compare("<", a, at.constant(0)))
    return at.code.select(nonzero, at.code.copysign(at.constant(1), a), a)


def _emit_integer_sign(at: Emission, a: Value) -> Value:
    zero = at.constant(0)
    below = at.code.select(at.order("<", a, zero), at.constant(-1), zero)
    return at.code.select(at.order(">", a, zero), at.constant(1), below)


def _emit_integer_abs(at: Emission, a: Value) -> Value:
    return at.code.select(at.builder.icmp_signed("<", a, at.constant(0)), at.builder.neg(a), a) if at.dtype.kind == "i" else a


def _maximum(a: Any, b: Any) -> Any:
    """NaN if one is; +0 is more than −0."""
    larger = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, larger) if a.dtype.kind == "f" else larger


def _minimum(a: Any, b: Any) -> Any:
    smaller = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a - b), smaller) if a.dtype.kind == "f" else smaller


def _extreme(at: Emission, a: Value, b: Value, sign: str, known: Any = None) -> Value:
    """The larger (>) or smaller (<) of two reals, as `_maximum` and `_minimum` have it. `known` is b where it is a constant."""
    if known is not None and not np.isnan(known):
        # Of two equal numbers b, unless it is the zero that loses.
        loses, less = known == 0 and np.signbit(known) == (sign == ">"), "<" if sign == ">" else ">"
        return at.code.select(at.code.compare(less if loses else f"{less}=", a, b), b, a)
    return at.code.intrinsic("llvm.maximum" if sign == ">" else "llvm.minimum", a, b)


def _emit_extreme(sign: str) -> Callable:
    def emitted(at: Emission, a: Value, b: Value) -> Value:
        lanes = at.lanes
        if constant(lanes[0]):
            lanes, a, b = lanes[::-1], b, a
        if _unsigned(lanes):  # in the order of their bits, NaN last: one instruction, where Newton's method takes the largest correction
            return at.code.reals(at.code.intrinsic("llvm.umax" if sign == ">" else "llvm.umin", at.code.bits(a), at.code.bits(b)))
        return _extreme(at, a, b, sign, _known(lanes[1]))

    return emitted


def _unsigned(lanes: list) -> bool:
    """Whether the sign bits of all of them are known to be 0."""
    return all(isinstance(lane, Lane) and lane.unsigned for lane in lanes)


def _known(lane: Any) -> Any:
    return lane if constant(lane) else None


def _emit_clamp(at: Emission, low: Value, x: Value, high: Value) -> Value:
    return _extreme(at, _extreme(at, x, low, ">", _known(at.lanes[0])), high, "<", _known(at.lanes[2]))


def _emit_integer_clamp(at: Emission, low: Value, x: Value, high: Value) -> Value:
    above = at.code.select(at.order("<", x, low), low, x)
    return at.code.select(at.order(">", above, high), high, above)


class _Unsigned(Elementwise):
    """abs, and max and min of such numbers: the sign bit of the result is 0."""

    def labelled(self, value: Value, dtype: np.dtype, level: int, lanes: list) -> Lane:
        return Lane(value, dtype, level, unsigned=dtype.kind == "f" and (self.name == "abs" or _unsigned(lanes)))


_Unsigned("abs", numpy=np.abs, real=lambda at, a: at.code.abs(a), integer=_emit_integer_abs)
_Unsigned("max", numpy=_maximum, kinds=ANY, real=_emit_extreme(">"), integer=lambda at, a, b: at.code.select(at.order(">", a, b), a, b))
_Unsigned("min", numpy=_minimum, kinds=ANY, real=_emit_extreme("<"), integer=lambda at, a, b: at.code.select(at.order("<", a, b), a, b))
Elementwise("sign", numpy=_sign, real=_emit_sign, integer=_emit_integer_sign, jumps=True)
Elementwise("clamp", numpy=lambda low, x, high: _minimum(_maximum(low, x), high), kinds=ANY, real=_emit_clamp, integer=_emit_integer_clamp)


# Powers and roots.


def _integer_power(x: Any, y: int) -> Any:
    """By squaring; the reciprocal of that for negative powers, which only reals have."""
    power = _by_squaring(x, abs(y), np.multiply)
    power = np.full_like(x, 1)[()] if power is None else power
    return (x.dtype.type(1) / power if y < 0 else power).astype(x.dtype)


def _by_squaring(x: Any, y: int, multiply: Callable) -> Any:
    """x^y for y ≥ 0; None for y = 0."""
    power, square = None, x
    while y:
        if y & 1:
            power = square if power is None else multiply(power, square)
        y >>= 1
        square = multiply(square, square) if y else square
    return power


def _emit_integer_power(at: Emission, a: Value) -> Value:
    y, multiply = at.settings["y"], at.code.mul if at.dtype.kind == "f" else at.builder.mul
    power = _by_squaring(a, abs(y), multiply)
    power = at.constant(1) if power is None else power
    return at.code.div(at.constant(1), power) if y < 0 else power


def _power(a: Any, b: Any) -> Any:
    b = b.astype(a.dtype)
    return elementary("pow", a, b) if a.dtype.kind == "f" else np.power(a, b)


class _IntegerPower(Elementwise):
    def affine(self, equation: Any, marked: list[bool]) -> bool:
        return equation.params["y"] in (0, 1)


class _Exponentiation(Elementwise):
    """The exponent may be an integer."""

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Lane:
        base, exponent = lanes
        return super().emit_lane(
            code, [base, exponent if exponent.dtype.kind == "f" else convert(code, exponent, base.dtype, level)], settings, level
        )


_IntegerPower("integer_pow", numpy=_integer_power, kinds=ANY, real=_emit_integer_power, integer=_emit_integer_power, parameters=("y",))
_Exponentiation("pow", numpy=_power, real=lambda at, a, b: FUNCTIONS["pow"](at.code, a, b))
Elementwise("sqrt", numpy=np.sqrt, kinds=REAL, real=lambda at, a: at.code.sqrt(a))
Elementwise("rsqrt", numpy=lambda x: 1 / np.sqrt(x), kinds=REAL, real=lambda at, a: at.code.div(at.constant(1), at.code.sqrt(a)))


# Rounding.


def _rounded(x: Any, rounding_method: Any) -> Any:
    """The nearest whole number: of two the even one (method 1) or the one away from zero (0)."""
    if int(rounding_method) == 1:
        return np.rint(x)
    down = np.trunc(x)
    return np.where(np.abs(x - down) >= 0.5, down + np.copysign(x.dtype.type(1), x), down)


def _emit_rounded(at: Emission, a: Value) -> Value:
    if int(at.settings["rounding_method"]) == 1:
        return at.code.rint(a)
    down = at.code.floor(at.code.abs(a))
    up = at.code.compare(">=", at.code.sub(at.code.abs(a), down), at.constant(0.5))
    return at.code.copysign(at.code.select(up, at.code.add(down, at.constant(1)), down), a)


Elementwise("floor", numpy=np.floor, kinds=REAL, real=lambda at, a: at.code.floor(a), jumps=True)
Elementwise("ceil", numpy=np.ceil, kinds=REAL, real=lambda at, a: at.code.neg(at.code.floor(at.code.neg(a))), jumps=True)
Elementwise("round", numpy=_rounded, kinds=ANY, real=_emit_rounded, parameters=("rounding_method",), jumps=True)


class _NextAfter(Elementwise):
    """The neighbouring number: one step along the bits, which lie in the order of sizes."""

    emit = None  # pyright: ignore[reportAssignmentType]

    def decompose(self, x, y):
        kind = np.dtype(f"i{x.dtype.itemsize}")
        bits = jax.lax.bitcast_convert_type(x, kind)
        away = (y > x) == (x > 0)
        smallest = jnp.where(y > 0, jnp.asarray(1, kind), jnp.asarray(np.iinfo(kind).min + 1, kind))
        moved = jnp.where(x == 0, smallest, jnp.where(away, bits + 1, bits - 1))
        moved = jax.lax.bitcast_convert_type(moved, x.dtype)
        return jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.full_like(x, jnp.nan), jnp.where(x == y, y, moved))


_NextAfter("nextafter", numpy=np.nextafter, kinds=REAL)


# Elementary functions (`codegen.elementary`): one formula for code and for constants.


for _name, _emit in FUNCTIONS.items():
    if _name != "pow":
        Elementwise(_name, numpy=partial(elementary, _name), kinds=REAL, real=lambda at, *a, emit=_emit: emit(at.code, *a))
