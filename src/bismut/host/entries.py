"""What is done entry by entry, in NumPy: one meaning for each operation, the one that docs/arithmetic.md describes.

    compute("div", [a, b], {})     a / b, rounded as IEEE 754 says; of integers the quotient towards zero, all bits set where b = 0

Functions evaluated at once use it, and the native engine uses it for constants. Results have the type that JAX gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def compute(name: str, inputs: list, params: Any) -> Any:
    """The result of an operation on arrays or NumPy scalars, which broadcast."""
    with np.errstate(all="ignore"):
        if name in _WITH_PARAMS:
            return _WITH_PARAMS[name](inputs[0], params)
        found = RULES[name][0](*inputs)
    return found if found.dtype.kind == "b" or found.dtype == (kind := inputs[-1 if name in _LAST else 0].dtype) else found.astype(kind)


def knows(name: str, inputs: list, params: Any) -> bool:
    """Whether there is a meaning for these kinds of numbers."""
    if name not in ENTRYWISE or not all(x.dtype.kind in (RULES[name][1] if name in RULES else _ANY) for x in inputs):
        return False
    other = np.dtype(params["new_dtype"]) if "new_dtype" in params and isinstance(params["new_dtype"], np.dtype) else inputs[0].dtype
    return other.kind in _ANY and (name != "bitcast_convert_type" or other.itemsize == inputs[0].dtype.itemsize)


# Integers.


def _divided(a: Any, b: Any) -> Any:
    """Towards zero; by zero all bits are set, and the least number divided by −1 is itself."""
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
    found = np.fmod(a, np.where(unusual, b.dtype.type(1), b))
    return np.where(b == 0, a, found)


def _minus_one(b: Any) -> Any:
    return b == -1 if b.dtype.kind == "i" else np.zeros_like(b, bool)


def _shift(function: Callable, signed: bool | None, fill: bool) -> Callable:
    """A shift by as many bits as there are, or more, or by a negative number, moves everything out; an arithmetic one leaves copies of the sign."""

    def shifted(a: Any, n: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        count = n.astype(np.dtype(f"u{a.dtype.itemsize}"))
        kind = a.dtype if signed is None else np.dtype(f"{'i' if signed else 'u'}{a.dtype.itemsize}")
        over = count >= bits
        last = bits - 1 if fill else 0
        found = function(a.view(kind), np.where(over, last, count).astype(kind)).view(a.dtype)
        return found if fill else np.where(over, a.dtype.type(0), found)

    return shifted


# Reals.


def _maximum(a: Any, b: Any) -> Any:
    """NaN if one is; +0 is more than −0."""
    found = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, found) if a.dtype.kind == "f" else found


def _minimum(a: Any, b: Any) -> Any:
    found = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a - b), found) if a.dtype.kind == "f" else found


def _clamp(low: Any, x: Any, high: Any) -> Any:
    return _minimum(_maximum(low, x), high)


def _sign(x: Any) -> Any:
    return np.copysign(np.sign(x), x) if x.dtype.kind == "f" else np.sign(x)


def _power(a: Any, b: Any) -> Any:
    """As C has it; NumPy takes a root instead where all exponents are ½, which differs at −0 and −∞."""
    found = np.power(a, b.astype(a.dtype))
    return np.where((b == 0.5) & ((a == 0) | (a == -np.inf)), np.abs(a), found)


def _special(name: str) -> Callable:
    """A function of SciPy's, which is read where one is met; it changes the sign with its argument if it is an odd one."""

    def value(x: Any) -> Any:
        import scipy

        found = getattr(scipy.special, name)(x)
        return np.copysign(found, x) if name == "erfinv" else found

    return value


def _select(which: Any, *cases: Any) -> Any:
    if len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases, mode="clip")


# With parameters.


def _integer_power(x: Any, params: Any) -> Any:
    """By squaring; the reciprocal of that for negative powers, which only reals have."""
    y, result = abs(params["y"]), None
    one, square = x.dtype.type(1), x
    while y:
        if y & 1:
            result = square if result is None else result * square
        y >>= 1
        square = square * square if y else square
    result = np.full_like(x, one)[()] if result is None else result
    return (one / result if params["y"] < 0 else result).astype(x.dtype)


def _converted(x: Any, params: Any) -> Any:
    return convert(x, np.dtype(params["new_dtype"]))


def convert(x: Any, dtype: np.dtype) -> Any:
    """A real beyond the range of integers becomes the nearest of them, NaN zero; an integer loses its upper bits; what is not zero is true."""
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    above = x >= 2.0 ** (info.bits - (dtype.kind == "i"))  # exact, as the largest integer may not be
    below = x <= info.min
    inside = np.where(np.isnan(x) | above | below, x.dtype.type(0), x).astype(dtype)
    return np.where(above, dtype.type(info.max), np.where(below, dtype.type(info.min), inside))


def _rounded(x: Any, params: Any) -> Any:
    """The nearest whole number: of two the even one (method 1) or the one away from zero (0)."""
    if int(params["rounding_method"]) == 1:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _of_lower_precision(x: Any, params: Any) -> Any:
    """The nearest number with fewer bits: a mantissa rounded to even, then what is too large is infinite and what is too small zero."""
    precision, word = FORMATS[x.dtype.itemsize], np.dtype(f"u{x.dtype.itemsize}")
    bits, kept = x.view(word), cut_bits(precision, params["exponent_bits"], params["mantissa_bits"])
    number = word.type
    if kept.lost:
        last = (bits >> number(kept.lost)) & number(1)
        bits = (bits + (last + number((1 << (kept.lost - 1)) - 1))) & number(precision.every ^ ((1 << kept.lost) - 1))
    if kept.largest is not None:
        size, sign = bits & number(precision.exponent), bits & number(precision.sign)
        bits = np.where(size > number(kept.largest), sign | number(precision.exponent), bits)
        bits = np.where(size <= number(kept.least), sign, bits)
    return np.where(np.isnan(x), x, np.asarray(bits, word).view(x.dtype))


class Precision:
    """Where the parts of a real lie among its bits."""

    def __init__(self, size: int, exponents: int):
        self.size, self.exponents, self.mantissa = size, exponents, size - 1 - exponents
        self.every, self.sign = (1 << size) - 1, 1 << (size - 1)
        self.exponent = ((1 << exponents) - 1) << self.mantissa


class Cut:
    """How many bits of a mantissa are lost, and between which bits an exponent stays; None where it keeps its range."""

    def __init__(self, lost: int, largest: int | None, least: int):
        self.lost, self.largest, self.least = lost, largest, least


FORMATS = {8: Precision(64, 11), 4: Precision(32, 8), 2: Precision(16, 5)}


def cut_bits(precision: Precision, exponents: int, mantissa: int) -> Cut:
    lost = max(precision.mantissa - mantissa, 0)
    if exponents >= precision.exponents:
        return Cut(lost, None, 0)
    bias, reduced = (1 << (precision.exponents - 1)) - 1, (1 << (exponents - 1)) - 1
    return Cut(lost, (bias + reduced) << precision.mantissa, (bias - reduced) << precision.mantissa)


def _bits(x: Any, params: Any) -> Any:
    return x.view(np.dtype(params["new_dtype"]))


_WITH_PARAMS: dict[str, Callable] = {
    "integer_pow": _integer_power,
    "convert_element_type": _converted,
    "round": _rounded,
    "reduce_precision": _of_lower_precision,
    "bitcast_convert_type": _bits,
}
_LAST = frozenset({"select_n"})  # whose results are like its last operand

_REAL, _NUMBER, _ANY, _WHOLE = "f", "fiu", "fiub", "biu"
RULES: dict[str, tuple[Callable, str]] = {
    **{name: (getattr(np, name), _REAL) for name in ("sqrt", "cbrt", "floor", "ceil", "exp", "exp2", "expm1", "log", "log1p")},
    **{name: (getattr(np, name), _REAL) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "nextafter")},
    **{name: (getattr(np, f"arc{name[1:]}"), _REAL) for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{name: (_special(word), _REAL) for name, word in {"erf": "erf", "erfc": "erfc", "erf_inv": "erfinv", "logistic": "expit"}.items()},
    **{name: (getattr(np, word), _ANY) for name, word in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}.items()},
    **{name: (getattr(np, word), _ANY) for name, word in {"gt": "greater", "ge": "greater_equal"}.items()},
    **{name: (getattr(np, f"bitwise_{name}"), _WHOLE) for name in ("and", "or", "xor", "not")},
    "add": (np.add, _NUMBER),
    "add_any": (np.add, _NUMBER),
    "sub": (np.subtract, _NUMBER),
    "mul": (np.multiply, _NUMBER),
    "div": (_divided, _NUMBER),
    "rem": (_remainder, _NUMBER),
    "neg": (np.negative, _NUMBER),
    "abs": (np.abs, _NUMBER),
    "square": (np.square, _NUMBER),
    "sign": (_sign, _NUMBER),
    "max": (_maximum, _ANY),
    "min": (_minimum, _ANY),
    "clamp": (_clamp, _ANY),
    "pow": (_power, _NUMBER),
    "rsqrt": (lambda x: 1 / np.sqrt(x), _REAL),
    "is_finite": (np.isfinite, _REAL),
    "population_count": (lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")), "iu"),
    "shift_left": (_shift(np.left_shift, None, fill=False), "iu"),
    "shift_right_logical": (_shift(np.right_shift, False, fill=False), "iu"),
    "shift_right_arithmetic": (_shift(np.right_shift, True, fill=True), "iu"),
    "select_n": (_select, _ANY),
    **dict.fromkeys(("copy", "copy_p", "stop_gradient"), (lambda x: x, _ANY)),
}
ENTRYWISE = frozenset(RULES) | frozenset(_WITH_PARAMS)
