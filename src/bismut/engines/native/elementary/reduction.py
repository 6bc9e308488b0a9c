"""What is left of an angle when quarter turns are taken away.

    x = n π/2 + r + r',     |r| ≤ π/4 (a rounding more where x 2/π is near a half),     |r'| ≤ half a unit in the last place of r

Up to 2^30 by subtracting n times π/2 in parts. Above it the product of x with 2/π is formed in whole numbers, from only those of its 1280 digits that
matter for it (Payne and Hanek): no double lies nearer than 2^-62 to a multiple of π/2, so 126 bits of the fraction leave 64 of the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from llvmlite import ir

from bismut.engines.native.code import Code, Value
from bismut.engines.native.elementary.apart import apart
from bismut.engines.native.elementary.formula import Bits, Real, fma, rarely
from bismut.engines.native.elementary.twofold import exact_product, exact_sum, ordered_sum

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


Turned = tuple[Bits, Real, Real | None]  # n modulo 4 in the two lowest bits, r, and r' if it was wanted


def with_turns(name: str, x: Real, formula: Callable[[Bits, Real, Real | None], Real], fine: bool) -> Real:
    """formula(n, r, r'), r' if asked for (`fine`) or needed because nothing is fused.

    Large angles come last: all before is straight code, of which sin and cos of one angle share what is the same.
    """
    large = abs(x) > (_LARGE if x.code.fused else _LARGE_UNFUSED)
    usual = formula(*_small_angles(x, fine))
    return rarely(large, [usual], lambda: apart(f"{name}_of_large", lambda y: [formula(*_large_angles(y, fine))], 1, x, keep=True))[0]


def _small_angles(x: Real, fine: bool) -> Turned:
    turns = fma(x, _TWO_OVER_PI, _MAGIC)
    n = turns - _MAGIC
    r, rest = _subtracted(x, n) if x.code.fused else _subtracted_unfused(x, n)
    return turns.bits(), r, rest if fine or not x.code.fused else None


def _subtracted(x: Real, n: Real) -> tuple[Real, Real]:
    """x − n π/2. The first difference is exact: a multiple of 2^-53 below 1. Of the rest only the sum with r is rounded."""
    first = fma(n, -_HALF_PI[0], x)
    coarse = fma(n, -_HALF_PI[2], fma(n, -_HALF_PI[1], first))
    p, e = exact_product(n, x.lift(_HALF_PI[1]))
    r, rest = ordered_sum(first, -p)
    fine = fma(n, -_HALF_PI[2], rest - e)
    return coarse, (r - coarse) + fine


def _subtracted_unfused(x: Real, n: Real) -> tuple[Real, Real]:
    first = x - n * _HALF_PI_SHORT[0]
    second, e2 = ordered_sum(first, -(n * _HALF_PI_SHORT[1]))
    third, e3 = exact_sum(second, -(n * _HALF_PI_SHORT[2]))
    return exact_sum(third, (e2 + e3) - n * _HALF_PI_SHORT[3])


def _large_angles(x: Real, fine: bool) -> Turned:
    """The same lane after lane, for angles of any size."""
    code, builder = x.code, x.code.builder
    results: list[Value] = [ir.Constant(x.value.type, ir.Undefined)] * 3
    one = _large_angle(builder.module, code.fused)
    for lane in range(code.width):
        place = ir.Constant(ir.IntType(32), lane)
        returned = builder.call(one, [builder.extract_element(x.value, place)])
        results = [builder.insert_element(vector, builder.extract_value(returned, i), place) for i, vector in enumerate(results)]
    nothing = x - x  # NaN for an infinite angle
    turns, r, rest = (Real(code, vector) for vector in results)
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
    r, rest = _radians(code, pieces)
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
    words = []
    for i in range(4):
        place = builder.gep(_table(module), [i64(0), builder.add(word, i64(i))])
        words.append(wide(builder.load(place, typ=i64)))
    shifted = [builder.lshr(builder.shl(builder.or_(builder.shl(a, i128(64)), b), shift), i128(64)) for a, b in pairwise(words)]
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
    words = [0] + [(_DIGITS >> (1280 - 64 * (i + 1))) & (2**64 - 1) for i in range(20)]
    kind = ir.ArrayType(ir.IntType(64), len(words))
    table = ir.GlobalVariable(module, kind, name)
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(kind, words)  # pyright: ignore[reportAttributeAccessIssue]
    return table


def _radians(code: Code, pieces: list[Value]) -> tuple[Real, Real]:
    """f π/2 from the pieces of f."""
    parts = []
    for piece, unit in zip(pieces, (2.0**-42, 2.0**-84, 2.0**-126), strict=True):
        vector = code.builder.insert_element(ir.Constant(code.vector(np.int64), ir.Undefined), piece, ir.Constant(ir.IntType(32), 0))
        parts.append(Real(code, code.real(vector, np.float64)) * unit)
    upper, middle = ordered_sum(parts[0], parts[1])
    upper, lower = exact_sum(upper, middle + parts[2])
    p, e = exact_product(upper, upper.lift(_HALF_PI[0]))
    return ordered_sum(p, fma(upper, _HALF_PI[1], fma(lower, _HALF_PI[0], e)))
