"""What is done entry by entry: what NumPy calls it, and for which kinds of numbers it does the same."""

from collections.abc import Callable

import numpy as np


def _erf_inv(x: np.ndarray) -> np.ndarray:
    from scipy.special import erfinv  # read where it is met

    return erfinv(x)


_REAL, _NUMBER, _ANY, _WHOLE = "f", "fiu", "fiub", "biu"
RULES: dict[str, tuple[Callable, str]] = {
    **{name: (getattr(np, name), _NUMBER) for name in ("square", "sign", "floor", "ceil")},
    **{name: (getattr(np, name), _REAL) for name in ("sqrt", "sin", "cos", "tan", "exp", "exp2", "log", "log1p", "expm1", "tanh", "sinh", "cosh")},
    **{name: (getattr(np, f"arc{name[1:]}"), _REAL) for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{sign: (getattr(np, word), _ANY) for sign, word in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}.items()},
    **{sign: (getattr(np, word), _ANY) for sign, word in {"gt": "greater", "ge": "greater_equal", "max": "maximum", "min": "minimum"}.items()},
    **{word: (getattr(np, f"bitwise_{word}"), _WHOLE) for word in ("and", "or", "xor", "not")},
    "add": (np.add, _NUMBER),
    "add_any": (np.add, _NUMBER),
    "sub": (np.subtract, _NUMBER),
    "mul": (np.multiply, _NUMBER),
    "div": (np.divide, _REAL),
    "neg": (np.negative, _NUMBER),
    "abs": (np.abs, _NUMBER),
    "pow": (np.power, _REAL),
    "rsqrt": (lambda x: (1 / np.sqrt(x)).astype(x.dtype), _REAL),
    "is_finite": (np.isfinite, _REAL),
    "rem": (np.fmod, _NUMBER),
    "shift_left": (np.left_shift, "iu"),
    "shift_right_logical": (np.right_shift, "u"),
    "shift_right_arithmetic": (np.right_shift, "i"),
    "clamp": (lambda low, x, high: np.clip(x, low, high), _NUMBER),
    "erf_inv": (_erf_inv, _REAL),
    "copy": (np.asarray, _ANY),
    "copy_p": (np.asarray, _ANY),
}
