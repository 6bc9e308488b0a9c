"""What constants decide, while the code is written.

    0 · x = 0,   1 · x = x,   0 + x = x,   and an operation on constants alone is a constant

So a sparse Jacobian costs what it holds. (0 · ∞ = 0 here; a step in which that matters has failed already.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy

from bismut.engines.native.lane import constant


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


def _special(name: str) -> Callable:
    """A function of scipy.special, which takes as long to import as a small run takes to compute: only where it is met."""

    def value(a):
        return getattr(scipy.special, name)(a)

    return value


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
    "logistic": _special("expit"),
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
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "erf_inv": _special("erfinv"),
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
