"""What constants decide, while the code is written.

    0 · x = 0,   1 · x = x,   0 + x = x,   and an operation on constants alone is a constant

So a sparse Jacobian costs what it holds: directions of derivatives are constants, most of them zero. Multiplying by these zeros as IEEE 754 has it
(0 · ∞ is not a number) takes 3 to 23 % more operations in the steps of the gallery. Whatever else is left out is exact, but for the sign of a zero
in 0 + x; and constants alone follow IEEE 754 (docs/arithmetic.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bismut.engines.native.lane import constant
from bismut.host import entries


def _is(lane: Any, number: float) -> bool:
    return constant(lane) and lane == number


def _fold_add(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else None


def _fold_sub(a, b):
    return a if _is(b, 0) and not np.signbit(b) else None


def _fold_mul(a, b):
    for x, y in ((a, b), (b, a)):
        if _is(x, 0):
            return x
        if _is(x, 1):
            return y
    return None


def _fold_div(a, b):
    return a if _is(b, 1) else None


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


def compute(name: str, lanes: list, settings: dict) -> Any:
    """The result of an operation on constants: what NumPy gives."""
    return np.asarray(entries.compute(name, lanes, settings))[()]


ELEMENTWISE = entries.ENTRYWISE - {"nextafter"}

SETTINGS = {
    "integer_pow": ("y",),
    "convert_element_type": ("new_dtype",),
    "bitcast_convert_type": ("new_dtype",),
    "round": ("rounding_method",),
    "reduce_precision": ("exponent_bits", "mantissa_bits"),
}
