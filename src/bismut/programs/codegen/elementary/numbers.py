"""The formulas of elementary functions carried out at once, on arrays, instead of written as code.

    elementary("exp", x)     the bits that machine code gives in plain arithmetic, on every processor

NumPy's own functions are other code for other processors (AVX-512, AVX2, libm), which differ in the last place; a constant that is folded into a
program would carry that into every state. What is used of NumPy here, + − × ÷ √, comparisons and bits, IEEE 754 leaves no choice about; and one
operation is one call, so that no compiler of NumPy's can fuse two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_UNSIGNED = {8: np.uint64, 4: np.uint32}
_MODULUS = {8: 2**64, 4: 2**32}


class _Builder:
    """Operations on bits and truth values, by the names that LLVM has for them."""

    add, sub = staticmethod(np.add), staticmethod(np.subtract)
    and_, or_, xor = staticmethod(np.bitwise_and), staticmethod(np.bitwise_or), staticmethod(np.bitwise_xor)
    shl, lshr, not_ = staticmethod(np.left_shift), staticmethod(np.right_shift), staticmethod(np.invert)

    @staticmethod
    def icmp_unsigned(sign: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return {"!=": np.not_equal, "==": np.equal, "<": np.less, ">": np.greater}[sign](a, b)

    @classmethod
    def icmp_signed(cls, sign: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        signed = f"i{a.dtype.itemsize}"
        return cls.icmp_unsigned(sign, a.view(signed), b.view(signed))


class Numbers:
    """In the place of `Code`: values are arrays of one axis, and an operation is carried out. Nothing is fused."""

    fused, builder = False, _Builder()

    @staticmethod
    def constant(value: Any, dtype: Any) -> np.ndarray:
        return np.full(1, value, dtype)

    @staticmethod
    def like(number: float, value: np.ndarray) -> np.ndarray:
        return np.full(1, number % _MODULUS[value.itemsize] if value.dtype.kind == "u" else number, value.dtype)

    add, sub, mul, div = staticmethod(np.add), staticmethod(np.subtract), staticmethod(np.multiply), staticmethod(np.divide)
    neg, abs, sqrt, rint = staticmethod(np.negative), staticmethod(np.abs), staticmethod(np.sqrt), staticmethod(np.rint)
    copysign, is_nan, select = staticmethod(np.copysign), staticmethod(np.isnan), staticmethod(np.where)

    @staticmethod
    def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return a * b + c

    @staticmethod
    def compare(sign: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[sign](a, b)

    @staticmethod
    def bits(a: np.ndarray) -> np.ndarray:
        return a.view(_UNSIGNED[a.itemsize])

    @staticmethod
    def reals(bits: np.ndarray) -> np.ndarray:
        return bits.view(f"f{bits.itemsize}")


def elementary(name: str, *inputs: Any) -> Any:
    """A function by JAX's name for it, of reals that broadcast; in float64, rounded once more where they are narrower."""
    from bismut.programs.codegen.elementary import FORMULAS
    from bismut.programs.codegen.elementary.formula import RealVector

    arrays = np.broadcast_arrays(*map(np.asarray, inputs))
    shape, dtype, numbers = arrays[0].shape, np.result_type(*arrays), Numbers()
    with np.errstate(all="ignore"):
        reals = [RealVector(numbers, np.ascontiguousarray(array, np.float64).reshape(-1)) for array in arrays]  # pyright: ignore[reportArgumentType]
        values = np.asarray(FORMULAS[name](*reals).value, dtype if dtype.kind == "f" else np.float64)
        return np.broadcast_to(values, arrays[0].size).reshape(shape)[()]
