"""Argument reduction: what is left of an angle when quarter turns are taken away.

    x = n π/2 + r + r',     |r| ≤ π/4 (a rounding more where x 2/π is near a half),     |r'| ≤ half a unit in the last place of r

Up to 2^30 by subtracting n times π/2 in parts. Above it the product of x with 2/π is formed in whole numbers, from only those of its 1280 digits that
matter for it (Payne and Hanek): no double lies nearer than 2^-62 to a multiple of π/2, so 126 bits of the fraction leave 64 of the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Code, Value
from bismut.programs.codegen.elementary.double_double import exact_product, exact_sum, ordered_sum
from bismut.programs.codegen.elementary.formula import Bits, RealVector, fma, rarely
from bismut.programs.codegen.elementary.outline import outlined

_MAGIC = 1.5 * 2.0**52  # a sum with it rounds to a whole number and leaves it in the lowest bits
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # to 53 bits each
_HALF_PI_SHORT = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)  # to 33, 33, 33 and 53 bits
_LARGE, _LARGE_UNFUSED = 2.0**30, 2.0**20  # up to here n times the parts is exact where it must be

# The first 1280 binary digits of 2/π after the point.
_DIGITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484"
    "e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b"
    "3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d",
    16,
)


Turned = tuple[Bits, RealVector, RealVector | None]  # n modulo 4 in the two lowest bits, r, and r' if it was wanted


def with_turns(name: str, x: RealVector, formula: Callable[[Bits, RealVector, RealVector | None], RealVector], fine: bool) -> RealVector:
    """formula(n, r, r'), r' if asked for (`fine`) or needed because nothing is fused.

    Large angles come last: all before is straight code, of which sin and cos of one angle share what is the same.
    """
    large = abs(x) > (_LARGE if x.code.fused else _LARGE_UNFUSED)
    usual = formula(*_small_angles(x, fine))
    return rarely(large, [usual], lambda: outlined(f"{name}_of_large", lambda y: [formula(*_large_angles(y, fine))], 1, x, keep=True))[0]


def _small_angles(x: RealVector, fine: bool) -> Turned:
    turns = fma(x, _TWO_OVER_PI, _MAGIC)
    n = turns - _MAGIC
    r, rest = _subtracted(x, n) if x.code.fused else _subtracted_unfused(x, n)
    return turns.bits(), r, rest if fine or not x.code.fused else None


def _subtracted(x: RealVector, n: RealVector) -> tuple[RealVector, RealVector]:
    """x − n π/2. The first difference is exact: a multiple of 2^-53 below 1. Of the rest only the sum with r is rounded."""
    first = fma(n, -_HALF_PI[0], x)
    coarse = fma(n, -_HALF_PI[2], fma(n, -_HALF_PI[1], first))
    p, e = exact_product(n, x.lift(_HALF_PI[1]))
    r, rest = ordered_sum(first, -p)
    fine = fma(n, -_HALF_PI[2], rest - e)
    return coarse, (r - coarse) + fine


def _subtracted_unfused(x: RealVector, n: RealVector) -> tuple[RealVector, RealVector]:
    first = x - n * _HALF_PI_SHORT[0]
    second, e2 = ordered_sum(first, -(n * _HALF_PI_SHORT[1]))
    third, e3 = exact_sum(second, -(n * _HALF_PI_SHORT[2]))
    return exact_sum(third, (e2 + e3) - n * _HALF_PI_SHORT[3])


def _large_angles(x: RealVector, fine: bool) -> Turned:
    """The same lane after lane, for angles of any size."""
    code = x.code
    nothing = x - x  # NaN for an infinite angle
    if not isinstance(code, Code):  # numbers, and no code
        turns, r, rest = _large_numbers(x)
        return turns.bits(), r + nothing, rest + nothing
    builder = code.builder
    results: list[Value] = [ir.Constant(x.value.type, ir.Undefined)] * 3
    one = _large_angle(builder.module, code.fused)
    for lane in range(code.width):
        place = ir.Constant(ir.IntType(32), lane)
        returned = builder.call(one, [builder.extract_element(x.value, place)])
        results = [builder.insert_element(vector, builder.extract_value(returned, i), place) for i, vector in enumerate(results)]
    turns, r, rest = (RealVector(code, vector) for vector in results)
    return turns.bits(), r + nothing, rest + nothing if fine or not code.fused else None


def _large_angle(module: ir.Module, fused: bool) -> ir.Function:
    """A function of one double: (magic + n mod 4, r, r')."""
    name = "elementary.large_angle" + ("" if fused else ".unfused")
    known = module.globals.get(name)
    if known is not None:
        return known
    double = ir.DoubleType()
    function = ir.Function(module, ir.FunctionType(ir.LiteralStructType([double] * 3), [double]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block("start"))
    code = Code(builder, 1, fused)
    x = function.args[0]
    negative = builder.fcmp_ordered("<", x, ir.Constant(double, 0.0))
    turns, pieces = _fraction(module, builder, builder.bitcast(x, ir.IntType(64)))
    r, rest = _radians([_first_lane(code, piece) for piece in pieces])
    packed = ir.Constant(function.function_type.return_type, ir.Undefined)
    turns = builder.select(negative, builder.neg(turns), turns)
    numbers: list[Value] = [builder.fadd(builder.sitofp(turns, double), ir.Constant(double, _MAGIC))]
    for part in (r, rest):
        size = builder.extract_element(part.value, ir.Constant(ir.IntType(32), 0))
        numbers.append(builder.select(negative, builder.fneg(size), size))
    for i, number in enumerate(numbers):
        packed = builder.insert_value(packed, number, i)
    builder.ret(packed)
    return function


def _fraction(module: ir.Module, builder: ir.IRBuilder, bits: Value) -> tuple[Value, list[Value]]:
    """|x| 2/π = 4 j + n + f with |f| ≤ 1/2: n, and f as three signed whole numbers in units of 2^-42, 2^-84, 2^-126."""
    i64, i128 = ir.IntType(64), ir.IntType(128)
    wide = lambda value: builder.zext(value, i128)
    exponent = builder.and_(builder.lshr(bits, i64(52)), i64(0x7FF))
    # Lanes that need nothing pass through here too; from 1 on the place in the table is not negative.
    exponent = builder.select(builder.icmp_unsigned("<", exponent, i64(1023)), i64(1023), exponent)
    mantissa = builder.or_(builder.and_(bits, i64(2**52 - 1)), i64(2**52))
    # x = mantissa 2^(exponent − 1075): digits of 2/π worth 4 or more after this shift only add to j. 64 zeros stand before the point.
    start = builder.sub(exponent, i64(1075 + 2 - 64))
    word, shift = builder.lshr(start, i64(6)), wide(builder.and_(start, i64(63)))
    digits = []
    for i in range(4):
        place = builder.gep(_table(module), [i64(0), builder.add(word, i64(i))])
        digits.append(wide(builder.load(place, typ=i64)))
    shifted = [builder.lshr(builder.shl(builder.or_(builder.shl(a, i128(64)), b), shift), i128(64)) for a, b in pairwise(digits)]
    mask = i128(2**64 - 1)
    a, b, c = (builder.mul(wide(mantissa), builder.and_(piece, mask)) for piece in shifted)
    total = builder.add(builder.shl(a, i128(64)), builder.add(b, builder.lshr(c, i128(64))))
    turns = builder.lshr(builder.add(total, i128(2**125)), i128(126))
    fraction = builder.sub(total, builder.shl(turns, i128(126)))
    low = i128(2**42 - 1)
    pieces = [builder.ashr(fraction, i128(84)), builder.and_(builder.ashr(fraction, i128(42)), low), builder.and_(fraction, low)]
    return builder.trunc(turns, i64), [builder.trunc(piece, i64) for piece in pieces]


def _table(module: ir.Module) -> ir.GlobalVariable:
    name = "elementary.two_over_pi"
    known = module.globals.get(name)
    if known is not None:
        return known
    digits = _words()
    kind = ir.ArrayType(ir.IntType(64), len(digits))
    table = ir.GlobalVariable(module, kind, name)
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(kind, digits)  # pyright: ignore[reportAttributeAccessIssue]
    return table


def _words() -> list[int]:
    """The digits, 64 in a word, after a word of zeros."""
    return [0] + [(_DIGITS >> (1280 - 64 * (i + 1))) & (2**64 - 1) for i in range(20)]


def _first_lane(code: Code, piece: Value) -> RealVector:
    vector = code.builder.insert_element(ir.Constant(code.vector(np.int64), ir.Undefined), piece, ir.Constant(ir.IntType(32), 0))
    return RealVector(code, code.real(vector, np.float64))


def _radians(pieces: list[RealVector]) -> tuple[RealVector, RealVector]:
    """f π/2 from the pieces of f."""
    parts = [piece * unit for piece, unit in zip(pieces, (2.0**-42, 2.0**-84, 2.0**-126), strict=True)]
    upper, middle = ordered_sum(parts[0], parts[1])
    upper, lower = exact_sum(upper, middle + parts[2])
    p, e = exact_product(upper, upper.lift(_HALF_PI[0]))
    return ordered_sum(p, fma(upper, _HALF_PI[1], fma(lower, _HALF_PI[0], e)))


# The same on numbers.


def _large_numbers(x: RealVector) -> tuple[RealVector, RealVector, RealVector]:
    """magic + n mod 4, r, r', by Python's whole numbers."""
    turns, *pieces = np.array([_fraction_of(int(bits)) for bits in x.bits().value], float).T
    sign = np.where(x.value < 0, -1.0, 1.0)
    r, rest = _radians([RealVector(x.code, piece) for piece in pieces])
    return RealVector(x.code, turns * sign + _MAGIC), r * RealVector(x.code, sign), rest * RealVector(x.code, sign)


def _fraction_of(bits: int) -> tuple[int, int, int, int]:
    """`_fraction` of one number."""
    exponent, mantissa = max((bits >> 52) & 0x7FF, 1023), bits & (2**52 - 1) | 2**52
    word, shift = divmod(exponent - (1075 + 2 - 64), 64)
    a, b, c = (mantissa * ((((high << 64 | low) << shift) >> 64) & (2**64 - 1)) for high, low in pairwise(_words()[word : word + 4]))
    total = ((a << 64) + b + (c >> 64)) % 2**128
    turns = ((total + 2**125) % 2**128) >> 126
    fraction = (total - (turns << 126)) % 2**128
    fraction -= 2**128 if fraction >= 2**127 else 0
    return turns, fraction >> 84, (fraction >> 42) & (2**42 - 1), fraction & (2**42 - 1)
