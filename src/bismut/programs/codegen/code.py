"""Instructions on vectors: what steps and elementary functions are written in.

    one value = W numbers of one kind, one for each of W trajectories side by side

Every instruction rounds as IEEE 754 says and no compiler flag allows more: sums are not reordered, and a multiplication is fused with an addition
only where `fma` is written. So a number does not depend on the width W, on its place in the vector, or on how the compiler arranges the rest.
"""

from typing import Any

import numpy as np
from llvmlite import ir

Value = Any  # an LLVM value of a vector type

_ELEMENT = {
    "bool": ir.IntType(1),
    "int8": ir.IntType(8),
    "uint8": ir.IntType(8),
    "int16": ir.IntType(16),
    "uint16": ir.IntType(16),
    "int32": ir.IntType(32),
    "uint32": ir.IntType(32),
    "int64": ir.IntType(64),
    "uint64": ir.IntType(64),
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
}


def element(dtype: Any) -> ir.Type:
    """The LLVM type of one number."""
    return _ELEMENT[np.dtype(dtype).name]


def has_vectors(dtype: Any) -> bool:
    """Whether there are vectors of such numbers: not of random keys, complex numbers, or reals of 16 bits and less."""
    return isinstance(dtype, np.dtype) and dtype.name in _ELEMENT


class Code:
    """Instructions that are appended where the builder stands."""

    def __init__(self, builder: ir.IRBuilder, width: int, fused: bool = True):
        self.builder, self.width, self.fused = builder, width, fused

    def vector(self, dtype: Any) -> ir.VectorType:
        return ir.VectorType(element(dtype), self.width)

    def constant(self, value: Any, dtype: Any) -> Value:
        """The same number W times; a float is given exactly, by its own repr."""
        number = float(value) if np.dtype(dtype).kind == "f" else int(value)
        return ir.Constant(self.vector(dtype), [number] * self.width)

    def like(self, number: float, value: Value) -> Value:
        """The same number W times, of the type of a value."""
        return ir.Constant(value.type, [number] * self.width)

    # Reals: +, −, ×, ÷ and √ are correctly rounded.

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.fadd(a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.fsub(a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.fmul(a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.builder.fdiv(a, b)

    def neg(self, a: Value) -> Value:
        return self.builder.fneg(a)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c, rounded once; in two steps on a processor that cannot."""
        return self.intrinsic("llvm.fma", a, b, c) if self.fused else self.add(self.mul(a, b), c)

    def sqrt(self, a: Value) -> Value:
        return self.intrinsic("llvm.sqrt", a)

    def abs(self, a: Value) -> Value:
        return self.intrinsic("llvm.fabs", a)

    def floor(self, a: Value) -> Value:
        return self.intrinsic("llvm.floor", a)

    def rint(self, a: Value) -> Value:
        """The nearest whole number, the even one of two."""
        return self.intrinsic("llvm.rint", a)

    def copysign(self, size: Value, sign: Value) -> Value:
        return self.intrinsic("llvm.copysign", size, sign)

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """A function of LLVM's own, by its name without the type."""
        kind = arguments[0].type
        return self._called(f"{name}.{self._letters(kind)}", kind, *arguments)

    def saturated(self, a: Value, kind: ir.VectorType, signed: bool) -> Value:
        """A real as an integer: the part before the point, the nearest integer where there is none so large, and 0 for NaN."""
        return self._called(f"llvm.fpto{'s' if signed else 'u'}i.sat.{self._letters(kind)}.{self._letters(a.type)}", kind, a)

    def _letters(self, kind: ir.VectorType) -> str:
        letter = {"double": "f64", "float": "f32"}.get(str(kind.element)) or f"i{kind.element.width}"
        return f"v{self.width}{letter}"

    def _called(self, name: str, kind: ir.Type, *arguments: Value) -> Value:
        module = self.builder.module
        known = module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [a.type for a in arguments]), name)
        return self.builder.call(known, arguments)

    # Comparisons: false where one side is NaN, except "!=".

    def compare(self, sign: str, a: Value, b: Value) -> Value:
        return self.builder.fcmp_unordered("!=", a, b) if sign == "!=" else self.builder.fcmp_ordered(sign, a, b)

    def is_nan(self, a: Value) -> Value:
        return self.builder.fcmp_unordered("uno", a, a)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        return self.builder.select(condition, yes, no)

    # Bits and whole numbers: `builder.add`, `and_`, `shl`, `lshr`, `ashr`, `icmp_signed` ... act on vectors as they are.

    def bits(self, a: Value) -> Value:
        """The bits of reals as whole numbers of the same size."""
        double = isinstance(a.type.element, ir.DoubleType)
        return self.builder.bitcast(a, self.vector(np.int64 if double else np.int32))

    def reals(self, bits: Value) -> Value:
        """Reals from their bits."""
        return self.builder.bitcast(bits, self.vector(np.float64 if bits.type.element.width == 64 else np.float32))

    def whole(self, a: Value) -> Value:
        """A real that is a whole number, as a signed integer of the same size."""
        double = isinstance(a.type.element, ir.DoubleType)
        return self.builder.fptosi(a, self.vector(np.int64 if double else np.int32))

    def real(self, a: Value, dtype: Any) -> Value:
        """A signed integer as a real."""
        return self.builder.sitofp(a, self.vector(dtype))
