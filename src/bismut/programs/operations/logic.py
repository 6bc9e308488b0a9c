"""Comparisons, choices, logic, bits, conversions between kinds of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.codegen.code import Code, Value
from bismut.programs.codegen.elementary.formula import Bits
from bismut.programs.codegen.field import lanes as as_lanes
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.lane import Lane, constant, value_of
from bismut.programs.operation import EVERYWHERE, Operation, decomposition, operation, result
from bismut.programs.operations.elementwise import ANY, INTEGER, REAL, WHOLE, Elementwise, Emission, apply
from bismut.programs.program import Refused

# Comparisons and choices.


class _Test(Elementwise):
    """One whose result is a truth value."""

    def labelled(self, value: Value, dtype: np.dtype, level: int, lanes: list) -> Lane:
        return Lane(value, bool, level)


def _comparison(name: str, sign: str, function: Callable) -> None:
    real, integer = lambda at, a, b: at.code.compare(sign, a, b), lambda at, a, b: at.order(sign, a, b)
    _Test(name, numpy=function, kinds=ANY, real=real, integer=integer, jumps=True)


_comparison("eq", "==", np.equal)
_comparison("ne", "!=", np.not_equal)
_comparison("lt", "<", np.less)
_comparison("le", "<=", np.less_equal)
_comparison("gt", ">", np.greater)
_comparison("ge", ">=", np.greater_equal)
_Test("is_finite", numpy=np.isfinite, kinds=REAL, real=lambda at, a: at.code.compare("<", at.code.abs(a), at.constant(np.inf)))


def ordered(x):
    """Integers in the total order of reals,  −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN:  the bits, all but the sign flipped where that is set."""
    if x.dtype.kind != "f":
        return x
    kind = np.dtype(f"i{x.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(x, kind)
    return bits ^ ((bits >> (8 * kind.itemsize - 1)) & np.iinfo(kind).max)


decomposition("lt_to", jumps=True)(lambda a, b: ordered(a) < ordered(b))
decomposition("le_to", jumps=True)(lambda a, b: ordered(a) <= ordered(b))


class _Select(Elementwise):
    """Case i where the condition is i."""

    def accepts(self, inputs: list, params: Any) -> bool:
        return all(isinstance(x.dtype, np.dtype) for x in inputs)

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Lane:
        which, *cases = lanes
        dtype = next((case.dtype for case in cases if isinstance(case, Lane)), cases[0].dtype)
        values = [value_of(code, case, dtype) for case in cases]
        if which.dtype == bool:
            return Lane(code.select(which.value, values[1], values[0]), dtype, level)
        chosen = values[0]
        for i, value in enumerate(values[1:], 1):
            chosen = code.select(code.builder.icmp_signed("==", which.value, code.constant(i, which.dtype)), value, chosen)
        return Lane(chosen, dtype, level)


def _select(which: Any, *cases: Any) -> Any:
    return np.where(which, cases[1], cases[0]) if len(cases) == 2 else np.choose(which, cases, mode="clip")


def _fold_select(which, *cases):
    if constant(which):
        return cases[int(which)]
    return cases[0] if all(case is cases[0] for case in cases) else None


_Select("select_n", numpy=_select, fold=_fold_select, affine_in=slice(1, None), like=-1)


class _Identity(Elementwise):
    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Any:
        return lanes[0]


_Identity("copy", "copy_p", numpy=lambda x: x, kinds=ANY, affine_in=EVERYWHERE)
_Identity("stop_gradient", numpy=lambda x: x, kinds=ANY)  # its derivative is not that of what it gives


# Logic and bits.


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


Elementwise("and", numpy=np.bitwise_and, kinds=WHOLE, integer=lambda at, a, b: at.builder.and_(a, b), fold=_fold_and)
Elementwise("or", numpy=np.bitwise_or, kinds=WHOLE, integer=lambda at, a, b: at.builder.or_(a, b), fold=_fold_or)
Elementwise("xor", numpy=np.bitwise_xor, kinds=WHOLE, integer=lambda at, a, b: at.builder.xor(a, b))
Elementwise("not", numpy=np.bitwise_not, kinds=WHOLE, integer=lambda at, a: at.builder.not_(a))
Elementwise(
    "population_count",
    numpy=lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")),
    kinds=INTEGER,
    integer=lambda at, a: at.code.intrinsic("llvm.ctpop", a),
)


@decomposition("clz")
def _leading_zeros(x):
    """The bits that are not set above the highest one that is."""
    unsigned = jax.lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))
    shift = 1
    while shift < 8 * x.dtype.itemsize:
        unsigned, shift = unsigned | (unsigned >> shift), 2 * shift
    return jax.lax.population_count(~unsigned).astype(x.dtype)


def _shift(name: str, instruction: str, function: Callable, signed: bool | None, fill: bool) -> None:
    """A shift by as many bits as there are, or more, or by a negative number, moves everything out; an arithmetic one leaves copies of the sign."""

    def shifted(a: Any, n: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        count = n.astype(np.dtype(f"u{a.dtype.itemsize}"))
        kind = a.dtype if signed is None else np.dtype(f"{'i' if signed else 'u'}{a.dtype.itemsize}")
        over = count >= bits
        moved = function(a.view(kind), np.where(over, bits - 1 if fill else 0, count).astype(kind)).view(a.dtype)
        return moved if fill else np.where(over, a.dtype.type(0), moved)

    def emitted(at: Emission, a: Value, n: Value) -> Value:
        bits, write = 8 * at.dtype.itemsize, getattr(at.builder, instruction)
        if constant(at.lanes[1]) and 0 <= at.lanes[1] < bits:
            return write(a, n)
        over = at.builder.icmp_unsigned(">=", n, at.constant(bits))
        moved = write(a, at.code.select(over, at.constant(bits - 1 if fill else 0), n))
        return moved if fill else at.code.select(over, at.constant(0), moved)

    Elementwise(name, numpy=shifted, kinds=INTEGER, integer=emitted)


_shift("shift_left", "shl", np.left_shift, None, fill=False)
_shift("shift_right_logical", "lshr", np.right_shift, False, fill=False)
_shift("shift_right_arithmetic", "ashr", np.right_shift, True, fill=True)


# Kinds of numbers.


class _Conversion(Elementwise):
    """A real beyond the range of integers becomes the nearest of them, NaN zero; an integer loses its upper bits; what is not zero is true."""

    def accepts(self, inputs: list, params: Any) -> bool:
        new = params["new_dtype"]
        return super().accepts(inputs, params) and (not isinstance(new, np.dtype) or new.kind in ANY)

    def affine(self, equation: Any, marked: list[bool]) -> bool:
        return jnp.issubdtype(equation.params["new_dtype"], jnp.floating)  # a conversion to integers is a step function

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Any:
        return convert(code, lanes[0], settings["new_dtype"], level)


def converted(x: Any, new_dtype: Any) -> Any:
    dtype = np.dtype(new_dtype)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    above = x >= 2.0 ** (info.bits - (dtype.kind == "i"))  # exact, as the largest integer may not be
    below = x <= info.min
    inside = np.where(np.isnan(x) | above | below, x.dtype.type(0), x).astype(dtype)
    return np.where(above, dtype.type(info.max), np.where(below, dtype.type(info.min), inside))


def convert(code: Code, lane: Any, new: Any, level: int) -> Any:
    """A lane as a number of another kind."""
    if constant(lane):
        return np.asarray(converted(lane, new))[()]
    return lane if lane.dtype == np.dtype(new) else Lane(_emit_converted(code, lane.value, lane.dtype, np.dtype(new)), new, level)


def _emit_converted(code: Code, a: Value, old: np.dtype, new: np.dtype) -> Value:
    builder, kind = code.builder, code.vector(new)
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


_Conversion("convert_element_type", numpy=converted, kinds=ANY, parameters=("new_dtype",))


class _Bitcast(Elementwise):
    """The same bits; one number as several shorter ones along a last axis, the lowest bits first, or these as one."""

    def evaluate(self, equation: Any, inputs: list) -> list:
        return [np.ascontiguousarray(inputs[0]).view(result(equation).dtype).reshape(result(equation).shape)]

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Lane:
        new = np.dtype(settings["new_dtype"])
        return Lane(code.builder.bitcast(lanes[0].value, code.vector(new)), new, level)

    def emit(self, scope: Scope, equation: Any, inputs: list) -> list:
        aval, old, new = result(equation), np.dtype(equation.invars[0].aval.dtype), np.dtype(result(equation).dtype)
        if old.itemsize == new.itemsize:
            return [apply(scope, self.name, inputs, {"new_dtype": new}, new)]
        if aval.size > scope.small:
            raise Refused("bits of a large array as numbers of another width")
        x = as_lanes(scope, inputs[0])
        long, short = (np.dtype(f"u{max(old.itemsize, new.itemsize)}"), np.dtype(f"u{min(old.itemsize, new.itemsize)}"))
        to = lambda name, lane, kind: scope.lane(name, [lane], {"new_dtype": kind})
        moved = lambda name, lane, k: scope.lane(name, [lane, long.type(8 * short.itemsize * k)]) if k else lane
        count = long.itemsize // short.itemsize
        out = np.empty(aval.shape, object)
        for index in np.ndindex(*(aval.shape if new.itemsize > old.itemsize else aval.shape[:-1])):
            if new.itemsize > old.itemsize:
                total: Any = long.type(0)
                for k in range(count):
                    piece = to("convert_element_type", to("bitcast_convert_type", x[(*index, k)], short), long)
                    total = scope.lane("or", [total, moved("shift_left", piece, k)])
                out[index] = to("bitcast_convert_type", total, new)
            else:
                bits = to("bitcast_convert_type", x[index], long)
                for k in range(count):
                    piece = to("convert_element_type", moved("shift_right_logical", bits, k), short)
                    out[(*index, k)] = to("bitcast_convert_type", piece, new)
        return [out]


_Bitcast("bitcast_convert_type", numpy=lambda x, new_dtype: x.view(np.dtype(new_dtype)), kinds=ANY, parameters=("new_dtype",), jumps=True)


# Fewer bits of a real.


class _FloatFormat:
    """Where the parts of a real lie among its bits."""

    def __init__(self, size: int, exponents: int):
        self.size, self.exponents, self.mantissa = size, exponents, size - 1 - exponents
        self.every, self.sign = (1 << size) - 1, 1 << (size - 1)
        self.exponent = ((1 << exponents) - 1) << self.mantissa


_FORMATS = {8: _FloatFormat(64, 11), 4: _FloatFormat(32, 8), 2: _FloatFormat(16, 5)}


class _Cut(NamedTuple):
    """How many bits of a mantissa are lost, and between which bits an exponent stays; None where it keeps its range."""

    lost: int
    largest: int | None
    least: int


def _cut(form: _FloatFormat, exponents: int, mantissa: int) -> _Cut:
    lost = max(form.mantissa - mantissa, 0)
    if exponents >= form.exponents:
        return _Cut(lost, None, 0)
    bias, reduced = (1 << (form.exponents - 1)) - 1, (1 << (exponents - 1)) - 1
    return _Cut(lost, (bias + reduced) << form.mantissa, (bias - reduced) << form.mantissa)


def _reduced(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """The nearest number with fewer bits: a mantissa rounded to even, then what is too large is infinite and what is too small zero."""
    form, word = _FORMATS[x.dtype.itemsize], np.dtype(f"u{x.dtype.itemsize}")
    bits, cut, number = x.view(word), _cut(form, exponent_bits, mantissa_bits), word.type
    if cut.lost:
        last = (bits >> number(cut.lost)) & number(1)
        bits = (bits + (last + number((1 << (cut.lost - 1)) - 1))) & number(form.every ^ ((1 << cut.lost) - 1))
    if cut.largest is not None:
        size, sign = bits & number(form.exponent), bits & number(form.sign)
        bits = np.where(size > number(cut.largest), sign | number(form.exponent), bits)
        bits = np.where(size <= number(cut.least), sign, bits)
    return np.where(np.isnan(x), x, np.asarray(bits, word).view(x.dtype))


def _emit_reduced(at: Emission, a: Value) -> Value:
    form, code = _FORMATS[at.dtype.itemsize], at.code
    cut, bits = _cut(form, at.settings["exponent_bits"], at.settings["mantissa_bits"]), Bits(code, code.bits(a))
    if cut.lost:
        last = (bits >> cut.lost) & 1
        bits = (bits + (last + ((1 << (cut.lost - 1)) - 1))) & -(1 << cut.lost)
    if cut.largest is not None:
        size, sign = bits & form.exponent, bits & -form.sign
        beyond = at.builder.icmp_unsigned(">", size.value, size.lift(cut.largest).value)
        below = at.builder.icmp_unsigned("<=", size.value, size.lift(cut.least).value)
        bits = Bits(code, code.select(below, sign.value, code.select(beyond, (sign | form.exponent).value, bits.value)))
    return code.select(code.is_nan(a), a, bits.real().value)


Elementwise("reduce_precision", numpy=_reduced, kinds=ANY, real=_emit_reduced, parameters=("exponent_bits", "mantissa_bits"))


@operation("real", "imag", "complex", "conj")
class _OfComplexNumbers(Operation):
    """Complex numbers are left to JAX; that these are linear is known."""

    affine_in = EVERYWHERE
