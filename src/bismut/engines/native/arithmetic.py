"""The code of operations on lanes, by the names of JAX's primitives.

A product and a sum are fused, a b + c rounded once, wherever a sum meets a product. That is decided by the formula alone, hence for every trajectory
alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bismut.engines.native.code import Code, Value
from bismut.engines.native.elementary import FUNCTIONS
from bismut.engines.native.elementary.formula import Bits, Mask
from bismut.engines.native.folding import compute
from bismut.engines.native.lane import SHARED, Lane, constant, level_of, value_of
from bismut.host.entries import FORMATS, cut_bits

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _float_max(code: Code, a: Value, b: Value, sign: str, known: Any = None) -> Value:
    """The larger (>) or smaller (<) of two: NaN if one is, and +0 is larger than −0. `known` is b where it is a constant."""
    if known is not None and not np.isnan(known):
        # Of two equal numbers b, unless it is the zero that loses.
        loses, less = known == 0 and np.signbit(known) == (sign == ">"), "<" if sign == ">" else ">"
        return code.select(code.compare(less if loses else f"{less}=", a, b), b, a)
    return code.intrinsic("llvm.maximum" if sign == ">" else "llvm.minimum", a, b)


def _power(code: Code, a: Value, y: int, dtype) -> Value:
    if y < 0:
        return code.div(code.constant(1, dtype), _power(code, a, -y, dtype))
    if y == 0:
        return code.constant(1, dtype)
    multiply = code.mul if np.dtype(dtype).kind == "f" else code.builder.mul
    found, square = None, a
    while y:
        if y & 1:
            found = square if found is None else multiply(found, square)
        y >>= 1
        square = multiply(square, square) if y else square
    return found


def _rounded(code: Code, a: Value, method: int, dtype) -> Value:
    """The nearest whole number: of two the even one (method 1) or the one away from zero (0)."""
    if method == 1:
        return code.rint(a)
    down = code.floor(code.abs(a))
    up = code.compare(">=", code.sub(code.abs(a), down), code.constant(0.5, dtype))
    return code.copysign(code.select(up, code.add(down, code.constant(1, dtype)), down), a)


def _sign(code: Code, a: Value, dtype) -> Value:
    one, zero = code.constant(1, dtype), code.constant(0, dtype)
    nonzero = code.builder.or_(code.compare(">", a, zero), code.compare("<", a, zero))
    return code.select(nonzero, code.copysign(one, a), a)


def _larger(sign: str) -> Callable:
    def emitted(code: Code, a: list[Value], lanes: list, dtype, settings: dict) -> Value:
        if constant(lanes[0]):
            lanes, a = lanes[::-1], a[::-1]
        if _unsigned(
            lanes
        ):  # such numbers are in the order of their bits, NaN last: one instruction, where Newton's method takes the largest correction
            return code.reals(code.intrinsic("llvm.umax" if sign == ">" else "llvm.umin", *map(code.bits, a)))
        return _float_max(code, *a, sign=sign, known=_known(lanes[1]))

    return emitted


def _unsigned(lanes: list) -> bool:
    """Whether the sign bits of all of them are known to be 0."""
    return all(isinstance(lane, Lane) and lane.unsigned for lane in lanes)


def _known(lane: Any) -> Any:
    return lane if constant(lane) else None


def _clamped(code: Code, a: list[Value], lanes: list, dtype, settings: dict) -> Value:
    return _float_max(code, _float_max(code, a[1], a[0], ">", _known(lanes[0])), a[2], "<", _known(lanes[2]))


def _of_lower_precision(code: Code, a: Value, dtype, settings: dict) -> Value:
    """The nearest number with fewer bits, as `host.entries` has it."""
    precision = FORMATS[np.dtype(dtype).itemsize]
    kept = cut_bits(precision, settings["exponent_bits"], settings["mantissa_bits"])
    bits = Bits(code, code.bits(a))
    if kept.lost:
        last = (bits >> kept.lost) & 1
        bits = (bits + (last + ((1 << (kept.lost - 1)) - 1))) & -(1 << kept.lost)
    if kept.largest is not None:
        size, sign = bits & precision.exponent, bits & -precision.sign
        beyond = code.builder.icmp_unsigned(">", size.value, size.lift(kept.largest).value)
        below = code.builder.icmp_unsigned("<=", size.value, size.lift(kept.least).value)
        bits = Bits(code, code.select(below, sign.value, code.select(beyond, (sign | precision.exponent).value, bits.value)))
    return code.select(code.is_nan(a), a, bits.real().value)


# (code, values, lanes, dtype, settings) ↦ value, for reals; elementary functions come beside them.
_REALS: dict[str, Callable] = {
    "add": lambda code, a, *_: code.add(*a),
    "add_any": lambda code, a, *_: code.add(*a),
    "sub": lambda code, a, *_: code.sub(*a),
    "mul": lambda code, a, *_: code.mul(*a),
    "div": lambda code, a, *_: code.div(*a),
    "neg": lambda code, a, *_: code.neg(*a),
    "square": lambda code, a, *_: code.mul(a[0], a[0]),
    "integer_pow": lambda code, a, _, dtype, settings: _power(code, a[0], settings["y"], dtype),
    "max": _larger(">"),
    "min": _larger("<"),
    "clamp": _clamped,
    "abs": lambda code, a, *_: code.abs(a[0]),
    "sign": lambda code, a, _, dtype, __: _sign(code, a[0], dtype),
    "sqrt": lambda code, a, *_: code.sqrt(a[0]),
    "rsqrt": lambda code, a, _, dtype, __: code.div(code.constant(1, dtype), code.sqrt(a[0])),
    "floor": lambda code, a, *_: code.floor(a[0]),
    "ceil": lambda code, a, *_: code.neg(code.floor(code.neg(a[0]))),
    "round": lambda code, a, _, dtype, settings: _rounded(code, a[0], int(settings["rounding_method"]), dtype),
    "rem": lambda code, a, *_: code.builder.frem(*a),
    "reduce_precision": lambda code, a, _, dtype, settings: _of_lower_precision(code, a[0], dtype, settings),
    **{name: lambda code, a, *_, emit=emit: emit(code, *a) for name, emit in FUNCTIONS.items()},
}


def _order(code: Code, dtype: np.dtype) -> Callable:
    return code.builder.icmp_signed if dtype.kind == "i" else code.builder.icmp_unsigned


def _whole_sign(code: Code, a: list[Value], dtype, settings: dict) -> Value:
    zero, order = code.constant(0, dtype), _order(code, dtype)
    below = code.select(order("<", a[0], zero), code.constant(-1, dtype), zero)
    return code.select(order(">", a[0], zero), code.constant(1, dtype), below)


def _divided(code: Code, a: list[Value], dtype, settings: dict) -> Value:
    """Towards zero. By zero all bits are ones, and the least number divided by −1 is itself, as XLA has it: the machine does not stop."""
    by, none, negative = _divisor(code, a[1], dtype)
    divide = code.builder.sdiv if dtype.kind == "i" else code.builder.udiv
    found = code.select(none, code.constant(-1 if dtype.kind == "i" else np.iinfo(dtype).max, dtype), divide(a[0], by))
    return found if negative is None else code.select(negative, code.builder.neg(a[0]), found)


def _remainder(code: Code, a: list[Value], dtype, settings: dict) -> Value:
    by, none, _ = _divisor(code, a[1], dtype)
    return code.select(none, a[0], (code.builder.srem if dtype.kind == "i" else code.builder.urem)(a[0], by))


def _divisor(code: Code, b: Value, dtype) -> tuple[Value, Value, Value | None]:
    """One where it is 0 or −1; whether it is 0; whether it is −1."""
    none = code.builder.icmp_unsigned("==", b, code.constant(0, dtype))
    if dtype.kind != "i":
        return code.select(none, code.constant(1, dtype), b), none, None
    negative = code.builder.icmp_unsigned("==", b, code.constant(-1, dtype))
    return code.select(code.builder.or_(none, negative), code.constant(1, dtype), b), none, negative


_SHIFTS = {"shift_left": "shl", "shift_right_logical": "lshr", "shift_right_arithmetic": "ashr"}


def _shifted(name: str) -> Callable:
    """Everything is moved out by as many bits as there are, or more; an arithmetic shift leaves copies of the sign."""

    def emitted(code: Code, a: list[Value], dtype, settings: dict) -> Value:
        bits = 8 * dtype.itemsize
        over = code.builder.icmp_unsigned(">=", a[1], code.constant(bits, dtype))
        if name == "ashr":
            return code.builder.ashr(a[0], code.select(over, code.constant(bits - 1, dtype), a[1]))
        found = getattr(code.builder, name)(a[0], code.select(over, code.constant(0, dtype), a[1]))
        return code.select(over, code.constant(0, dtype), found)

    return emitted


def _whole_clamp(code: Code, a: list[Value], dtype, settings: dict) -> Value:
    order = _order(code, dtype)
    low = code.select(order("<", a[1], a[0]), a[0], a[1])
    return code.select(order(">", low, a[2]), a[2], low)


def _whole_abs(code: Code, a: list[Value], dtype, settings: dict) -> Value:
    return code.select(code.builder.icmp_signed("<", a[0], code.constant(0, dtype)), code.builder.neg(a[0]), a[0]) if dtype.kind == "i" else a[0]


# (code, values, dtype, settings) ↦ value, for whole numbers and truth values.
_WHOLES: dict[str, Callable] = {
    "add": lambda code, a, *_: code.builder.add(*a),
    "add_any": lambda code, a, *_: code.builder.add(*a),
    "sub": lambda code, a, *_: code.builder.sub(*a),
    "mul": lambda code, a, *_: code.builder.mul(*a),
    "neg": lambda code, a, *_: code.builder.neg(a[0]),
    "and": lambda code, a, *_: code.builder.and_(*a),
    "or": lambda code, a, *_: code.builder.or_(*a),
    "xor": lambda code, a, *_: code.builder.xor(*a),
    "not": lambda code, a, *_: code.builder.not_(a[0]),
    "square": lambda code, a, *_: code.builder.mul(a[0], a[0]),
    "integer_pow": lambda code, a, dtype, settings: _power(code, a[0], settings["y"], dtype),
    "max": lambda code, a, dtype, _: code.select(_order(code, dtype)(">", *a), *a),
    "min": lambda code, a, dtype, _: code.select(_order(code, dtype)("<", *a), *a),
    "abs": _whole_abs,
    "sign": _whole_sign,
    "div": _divided,
    "rem": _remainder,
    "clamp": _whole_clamp,
    **{name: _shifted(instruction) for name, instruction in _SHIFTS.items()},
    "population_count": lambda code, a, *_: code.intrinsic("llvm.ctpop", a[0]),
}


def _converted(code: Code, a: Value, old: np.dtype, new: np.dtype) -> Value:
    builder, kind = code.builder, code.vector(new)
    if old == new:
        return a
    if new.kind == "b":
        return code.compare("!=", a, code.constant(0, old)) if old.kind == "f" else builder.icmp_unsigned("!=", a, code.constant(0, old))
    if old.kind == "f":
        if new.kind == "f":
            return builder.fpext(a, kind) if new.itemsize > old.itemsize else builder.fptrunc(a, kind)
        return code.saturated(a, kind, signed=new.kind == "i")
    if new.kind == "f":
        return (builder.sitofp if old.kind == "i" else builder.uitofp)(a, kind)
    if old.kind != "b" and new.itemsize == old.itemsize:
        return a
    if old.kind != "b" and new.itemsize < old.itemsize:
        return builder.trunc(a, kind)
    return (builder.sext if old.kind == "i" else builder.zext)(a, kind)


def _fused(code: Code, name: str, lanes: list, level: int, dtype) -> Value | None:
    """a b + c, a b − c or c − a b as one operation, if one side is a product. One that is shared, and the sum is not, is better kept as it is."""
    usable = [isinstance(lane, Lane) and lane.factors is not None and (lane.level < SHARED or level == SHARED) for lane in lanes]
    if not any(usable):
        return None
    which = 0 if usable[0] else 1
    other = value_of(code, lanes[1 - which], dtype)
    a, b = (value_of(code, factor, dtype) for factor in lanes[which].factors)
    if name == "sub":
        if which == 0:
            other = code.neg(other)
        else:
            a = code.neg(a)
    return code.fma(a, b, other)


def emit(code: Code, name: str, lanes: list, settings: dict, level: int | None = None) -> Lane:
    """The code of one operation, at the end of what is there."""
    level = level_of(lanes) if level is None else level
    if name == "select_n":
        return _selected(code, lanes, level)
    dtype = next(lane.dtype for lane in lanes if isinstance(lane, Lane))
    if name in ("copy", "copy_p", "stop_gradient"):
        return lanes[0]
    if name in ("add", "add_any", "sub") and dtype.kind == "f":
        fused = _fused(code, name, lanes, level, dtype)
        if fused is not None:
            return Lane(fused, dtype, level)
    if name == "pow" and lanes[1].dtype.kind != "f":
        lanes = [lanes[0], convert(code, lanes[1], lanes[0].dtype, level)]
        dtype = lanes[0].dtype
    a = [value_of(code, lane, lane.dtype if name.startswith("shift") or name == "clamp" else dtype) for lane in lanes]
    if name in _COMPARE:
        if dtype.kind == "f":
            return Lane(code.compare(_COMPARE[name], *a), bool, level)
        order = code.builder.icmp_signed if dtype.kind == "i" else code.builder.icmp_unsigned
        return Lane(order(_COMPARE[name], *a), bool, level)
    if name == "is_finite":
        return Lane(code.compare("<", code.abs(a[0]), code.constant(np.inf, dtype)), bool, level)
    if name == "convert_element_type":
        return convert(code, lanes[0], settings["new_dtype"], level)
    if name == "bitcast_convert_type":
        new = np.dtype(settings["new_dtype"])
        return Lane(code.builder.bitcast(a[0], code.vector(new)), new, level)
    if name in _SHIFTS and constant(lanes[1]) and 0 <= lanes[1] < 8 * dtype.itemsize:
        return Lane(getattr(code.builder, _SHIFTS[name])(*a), dtype, level)
    if dtype.kind == "f":
        factors = tuple(lanes) if name == "mul" else (lanes[0], lanes[0]) if name == "square" else None
        unsigned = name == "abs" or (name in ("max", "min") and _unsigned(lanes))
        return Lane(_REALS[name](code, a, lanes, dtype, settings), dtype, level, factors, unsigned)
    return Lane(_WHOLES[name](code, a, dtype, settings), dtype, level)


def convert(code: Code, lane: Any, new: Any, level: int) -> Any:
    """A lane as a number of another kind."""
    if constant(lane):
        return compute("convert_element_type", [lane], {"new_dtype": new})
    return lane if lane.dtype == np.dtype(new) else Lane(_converted(code, lane.value, lane.dtype, np.dtype(new)), new, level)


def _selected(code: Code, lanes: list, level: int) -> Lane:
    which, *cases = lanes
    dtype = next((case.dtype for case in cases if isinstance(case, Lane)), cases[0].dtype)
    values = [value_of(code, case, dtype) for case in cases]
    if which.dtype == bool:
        return Lane(code.select(which.value, values[1], values[0]), dtype, level)
    chosen = values[0]
    for i, value in enumerate(values[1:], 1):
        chosen = code.select(code.builder.icmp_signed("==", which.value, code.constant(i, which.dtype)), value, chosen)
    return Lane(chosen, dtype, level)


def somewhere(code: Code, mask: Value) -> Value:
    """One bit: whether any lane says yes."""
    return Mask(code, mask).somewhere()
