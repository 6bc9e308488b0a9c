"""Operations on lanes, by the names of JAX's primitives.

    fold     0 · x = 0, 1 · x = x, 0 + x = x: what constants decide is decided while the code is written, so a sparse Jacobian costs what it holds
    fuse     a b + c is rounded once, wherever a sum meets a product

(0 · ∞ = 0 here; a step in which that matters has failed already.) Both are decided by the formulas alone, hence for every trajectory alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import special

from bismut.engines.native.code import Code, Value
from bismut.engines.native.elementary import FUNCTIONS
from bismut.engines.native.elementary.formula import Mask
from bismut.engines.native.lane import SHARED, Lane, constant, level_of, value_of

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _is(lane: Any, number: float) -> bool:
    return constant(lane) and lane == number


def _fold_add(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else None


def _fold_sub(a, b):
    return a if _is(b, 0) else None


def _fold_mul(a, b):
    for x, y in ((a, b), (b, a)):
        if _is(x, 0):
            return x
        if _is(x, 1):
            return y
    return None


def _fold_div(a, b):
    return a if _is(a, 0) or _is(b, 1) else None


def _fold_and(a, b):
    for x, y in ((a, b), (b, a)):
        if constant(x) and x.dtype == bool:
            return y if x else x
    return None


def _fold_or(a, b):
    for x, y in ((a, b), (b, a)):
        if constant(x) and x.dtype == bool:
            return x if x else y
    return None


def _fold_select(which, *cases):
    if constant(which):
        return cases[int(which)]
    return cases[0] if all(case is cases[0] for case in cases) else None


_FOLDS: dict[str, Callable] = {
    "add": _fold_add,
    "add_any": _fold_add,
    "sub": _fold_sub,
    "mul": _fold_mul,
    "div": _fold_div,
    "and": _fold_and,
    "or": _fold_or,
    "select_n": _fold_select,
}


def fold(name: str, lanes: list) -> Any:
    """What is known of a result before anything is computed; None where nothing is."""
    rule = _FOLDS.get(name)
    return None if rule is None else rule(*lanes)


# All lanes constant.

_NUMPY: dict[str, Callable] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "cbrt": np.cbrt,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "rem": np.fmod,
    "pow": np.power,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": special.expit,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erfinv,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shift_left": np.left_shift,
    "is_finite": np.isfinite,
    "clamp": lambda low, a, high: np.minimum(np.maximum(a, low), high),
    "select_n": lambda which, *cases: cases[int(which)],
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "reduce_precision": lambda a: a,
}


def _shifted(a, n, logical: bool):
    kind = np.dtype(f"u{a.dtype.itemsize}") if logical else np.dtype(f"i{a.dtype.itemsize}")
    return np.right_shift(a.view(kind), n.astype(kind)).view(a.dtype)


def compute(name: str, lanes: list, settings: dict) -> Any:
    """The result of an operation on constants."""
    with np.errstate(all="ignore"):
        if name == "div":
            return lanes[0] / lanes[1] if lanes[0].dtype.kind == "f" else np.asarray(np.trunc(lanes[0] / lanes[1])).astype(lanes[0].dtype)[()]
        if name == "integer_pow":
            return np.asarray(lanes[0] ** np.asarray(settings["y"], lanes[0].dtype)).astype(lanes[0].dtype)[()]
        if name == "convert_element_type":
            return np.asarray(lanes[0]).astype(settings["new_dtype"])[()]
        if name == "bitcast_convert_type":
            return lanes[0].view(np.dtype(settings["new_dtype"]))
        if name == "round":
            with jax.ensure_compile_time_eval():
                return np.asarray(jax.lax.round(lanes[0], settings["rounding_method"]))[()]
        if name.startswith("shift_right"):
            return _shifted(*lanes, logical=name == "shift_right_logical")
        dtype = lanes[0].dtype
        found = np.asarray(_NUMPY[name](*lanes))[()]
        return found if found.dtype.kind == "b" or name == "select_n" else found.astype(dtype)


# Code.


def _float_max(code: Code, a: Value, b: Value, sign: str, plain: bool) -> Value:
    """The larger (>) or smaller (<) of two, NaN if one is; `plain` if b is known to be a number."""
    opposite = "<" if sign == ">" else ">"
    chosen = code.select(code.compare(opposite, a, b), b, a)
    return chosen if plain else code.select(code.is_nan(b), b, chosen)


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


def _real(code: Code, name: str, a: list[Value], lanes: list, dtype, settings: dict) -> Value:
    """An operation on reals that gives reals."""
    if name in FUNCTIONS:
        return FUNCTIONS[name](code, *a)
    match name:
        case "add" | "add_any":
            return code.add(*a)
        case "sub":
            return code.sub(*a)
        case "mul":
            return code.mul(*a)
        case "div":
            return code.div(*a)
        case "neg":
            return code.neg(*a)
        case "square":
            return code.mul(a[0], a[0])
        case "integer_pow":
            return _power(code, a[0], settings["y"], dtype)
        case "max" | "min":
            if constant(lanes[0]):
                lanes, a = lanes[::-1], a[::-1]
            return _float_max(code, *a, sign=">" if name == "max" else "<", plain=constant(lanes[1]) and not np.isnan(lanes[1]))
        case "abs":
            return code.abs(a[0])
        case "sign":
            return _sign(code, a[0], dtype)
        case "sqrt":
            return code.sqrt(a[0])
        case "rsqrt":
            return code.div(code.constant(1, dtype), code.sqrt(a[0]))
        case "floor":
            return code.floor(a[0])
        case "ceil":
            return code.neg(code.floor(code.neg(a[0])))
        case "round":
            return _rounded(code, a[0], int(settings["rounding_method"]), dtype)
        case "rem":
            return code.builder.frem(*a)
        case "clamp":
            known = [constant(lanes[0]), constant(lanes[2])]
            return _float_max(code, _float_max(code, a[1], a[0], ">", known[0]), a[2], "<", known[1])
    raise KeyError(name)


def _whole(code: Code, name: str, a: list[Value], dtype, settings: dict) -> Value:
    """An operation on whole numbers or truth values."""
    builder, signed = code.builder, dtype.kind == "i"
    order = builder.icmp_signed if signed else builder.icmp_unsigned
    match name:
        case "add" | "add_any":
            return builder.add(*a)
        case "sub":
            return builder.sub(*a)
        case "mul":
            return builder.mul(*a)
        case "neg":
            return builder.neg(a[0])
        case "and":
            return builder.and_(*a)
        case "or":
            return builder.or_(*a)
        case "xor":
            return builder.xor(*a)
        case "not":
            return builder.not_(a[0])
        case "max" | "min":
            return builder.select(order(">" if name == "max" else "<", *a), *a)
        case "square":
            return builder.mul(a[0], a[0])
        case "integer_pow":
            return _power(code, a[0], settings["y"], dtype)
        case "abs":
            return builder.select(order("<", a[0], code.constant(0, dtype)), builder.neg(a[0]), a[0]) if signed else a[0]
        case "sign":
            zero = code.constant(0, dtype)
            return builder.select(
                order(">", a[0], zero), code.constant(1, dtype), builder.select(order("<", a[0], zero), code.constant(-1, dtype), zero)
            )
        case "div" | "rem":
            one, none = code.constant(1, dtype), builder.icmp_unsigned("==", a[1], code.constant(0, dtype))
            by = builder.select(none, one, a[1])
            if name == "div":
                return builder.select(
                    none, code.constant(-1 if signed else np.iinfo(dtype).max, dtype), (builder.sdiv if signed else builder.udiv)(a[0], by)
                )
            return builder.select(none, a[0], (builder.srem if signed else builder.urem)(a[0], by))
        case "shift_left" | "shift_right_logical" | "shift_right_arithmetic":
            return {"shift_left": builder.shl, "shift_right_logical": builder.lshr, "shift_right_arithmetic": builder.ashr}[name](*a)
        case "clamp":
            low = builder.select(order("<", a[1], a[0]), a[0], a[1])
            return builder.select(order(">", low, a[2]), a[2], low)
        case "population_count":
            return code.intrinsic("llvm.ctpop", a[0])
    raise KeyError(name)


def _converted(code: Code, a: Value, old: np.dtype, new: np.dtype) -> Value:
    builder, kind = code.builder, code.vector(new)
    if old == new:
        return a
    if new.kind == "b":
        return code.compare("!=", a, code.constant(0, old)) if old.kind == "f" else builder.icmp_unsigned("!=", a, code.constant(0, old))
    if old.kind == "f":
        if new.kind == "f":
            return builder.fpext(a, kind) if new.itemsize > old.itemsize else builder.fptrunc(a, kind)
        return (builder.fptoui if new.kind == "u" else builder.fptosi)(a, kind)
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
    if name in ("copy", "copy_p", "stop_gradient", "reduce_precision"):
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
    if dtype.kind == "f":
        factors = tuple(lanes) if name == "mul" else (lanes[0], lanes[0]) if name == "square" else None
        return Lane(_real(code, name, a, lanes, dtype, settings), dtype, level, factors)
    return Lane(_whole(code, name, a, dtype, settings), dtype, level)


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


ELEMENTWISE = frozenset(_NUMPY) | {
    "div",
    "integer_pow",
    "convert_element_type",
    "bitcast_convert_type",
    "round",
    "shift_right_logical",
    "shift_right_arithmetic",
}

SETTINGS = {"integer_pow": ("y",), "convert_element_type": ("new_dtype",), "bitcast_convert_type": ("new_dtype",), "round": ("rounding_method",)}


def somewhere(code: Code, mask: Value) -> Value:
    """One bit: whether any lane says yes."""
    return Mask(code, mask).somewhere()
