"""Elementary functions as compiled array functions, and their exact values."""

import ctypes
from collections.abc import Callable
from functools import cache

import mpmath
import numpy as np
from llvmlite import ir

from bismut.engines.native import target
from bismut.programs.codegen.code import Code, element
from bismut.programs.codegen.elementary import FUNCTIONS

INPUTS = {"pow": 2, "atan2": 2}  # one otherwise

_EXACT: dict[str, Callable] = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "pow": mpmath.power,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf_inv": mpmath.erfinv,
}


@cache
def compiled(name: str, width: int, fused: bool = True, dtype: str = "float64") -> Callable:
    """The function on arrays, a vector of `width` numbers at a time."""
    count = INPUTS.get(name, 1)
    module, whole, pointer = ir.Module(), ir.IntType(64), ir.PointerType(ir.VectorType(element(dtype), width))
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [whole, *[pointer] * (count + 1)]), "all")
    builder = ir.IRBuilder(function.append_basic_block("before"))
    before, loop, after = builder.block, function.append_basic_block("loop"), function.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(whole)
    i.add_incoming(whole(0), before)
    inputs = [builder.load(builder.gep(array, [i]), align=8) for array in function.args[1:-1]]
    result = FUNCTIONS[name](Code(builder, width, fused), *inputs)
    builder.store(result, builder.gep(function.args[-1], [i]), align=8)
    following = builder.add(i, whole(1))
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, function.args[0]), loop, after)
    builder.position_at_end(after)
    builder.ret_void()
    program = target.Machine(str(module)).function("all", ctypes.c_int64, *[ctypes.c_void_p] * (count + 1))

    def call(*arrays: np.ndarray) -> np.ndarray:
        number = arrays[0].size
        vectors = -(-number // width)
        padded = [np.concatenate([np.asarray(x, dtype), np.full(vectors * width - number, 0.5, dtype)]) for x in arrays]
        results = np.empty(vectors * width, dtype)
        program(vectors, *(x.ctypes.data for x in [*padded, results]))
        return results[:number]

    return call


@cache
def _exact_value(name: str, *inputs: float) -> mpmath.mpf:
    with mpmath.workprec(220):
        return (_EXACT.get(name) or getattr(mpmath, name))(*map(mpmath.mpf, inputs))


def errors(name: str, results: np.ndarray, *inputs: np.ndarray) -> np.ndarray:
    """|result − exact| in units of the last place of the exact value; an overflow to the right infinity is no error, any other infinity is."""
    kind = np.finfo(results.dtype)
    found = np.empty(results.size)
    with mpmath.workprec(220):
        for i, result in enumerate(results):
            value = _exact_value(name, *(float(x[i]) for x in inputs))
            place = max(int(mpmath.floor(mpmath.log(abs(value), 2))) if value else kind.minexp, kind.minexp) - kind.nmant
            if not np.isfinite(result):
                beyond = abs(value) >= mpmath.mpf(float(kind.max)) + mpmath.mpf(2) ** (kind.maxexp - kind.nmant - 3)
                found[i] = 0.0 if beyond and np.sign(result) == mpmath.sign(value) else np.inf
                continue
            found[i] = float(abs(mpmath.mpf(float(result)) - value) / mpmath.mpf(2) ** place)
    return found


@cache
def near_quarter_turns() -> list[float]:
    """m 2ᵉ, m < 2^53, nearest to a multiple of π/2 for some e: m is a denominator of the continued fraction of 2ᵉ / (π/2)."""
    nearest = []
    with mpmath.workprec(1400):
        for exponent in range(-50, 971, 30):
            rest, before, m = mpmath.mpf(2) ** exponent * 2 / mpmath.pi, 1, 0
            while True:
                digit = int(mpmath.floor(rest))
                if digit * m + before >= 2**53:
                    break
                before, m, rest = m, digit * m + before, 1 / (rest - digit)
            nearest.append(float(m * mpmath.mpf(2) ** exponent))
    return nearest


def points(name: str, number: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """About 5 `number` inputs: all exponents, common sizes, and the places where the function is hard."""
    random = np.random.default_rng(seed)
    sign = lambda: random.choice([-1.0, 1.0], number)
    powers = lambda low, high: 2.0 ** random.uniform(low, high, number)
    wide, near = sign() * powers(-1074, 1024), sign() * powers(-40, 6)
    if name in ("sin", "cos", "tan"):
        turns = random.integers(1, 2**28, number) * (np.pi / 2)
        # 6381956970095103 2^797 is the double nearest of all to a multiple of π/2; at 2^30 and 2^20 the reduction changes.
        hard = [6381956970095103 * 2.0**797, 2.0**30, np.nextafter(2.0**30, np.inf), 2.0**20, np.nextafter(2.0**20, np.inf), np.finfo(float).max]
        hard += near_quarter_turns()
        return (np.concatenate([wide, near, random.uniform(-8, 8, number), turns, np.arange(1, number) * (np.pi / 4), hard]),)
    if name in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "logistic"):
        ends = random.uniform(-1080, 1026, number) if name == "exp2" else random.uniform(-750, 712, number)
        return (np.concatenate([near, random.uniform(-1, 1, number), random.uniform(-25, 25, number), ends, sign() * powers(-1074, -20)]),)
    if name in ("log", "log1p"):
        around = sign() * powers(-53, -1)
        return (
            np.concatenate(
                [
                    abs(wide),
                    abs(near),
                    around if name == "log1p" else 1 + around,
                    random.uniform(0.3, 3, number),
                    -powers(-3, 0) * (name == "log1p") + 1e-9,
                ]
            ),
        )
    if name in ("asin", "acos", "atanh", "erf_inv"):
        return (
            np.concatenate([random.uniform(-1, 1, 2 * number), sign() * (1 - powers(-52, -1)), sign() * powers(-40, 0), sign() * powers(-1074, 0)]),
        )
    if name == "acosh":
        return (np.concatenate([1 + powers(-52, 1), random.uniform(1, 10, number), powers(0, 60), powers(0, 1024)]),)
    if name in ("erf", "erfc"):
        return (
            np.concatenate(
                [random.uniform(-6, 6, number), random.uniform(-1, 1, number), random.uniform(5, 27.3, number), near, sign() * powers(-1074, 0)]
            ),
        )
    if name == "pow":
        x = np.concatenate(
            [random.uniform(0.1, 10, number), powers(-1074, 1024), 1 + sign() * powers(-50, -2), random.uniform(0.5, 2, number), powers(-1074, 1024)]
        )
        y = np.concatenate([random.uniform(-8, 8, number), random.uniform(-2, 2, number), random.uniform(-745, 709, 3 * number)])
        y[2 * number :] /= np.log(x[2 * number :])
        return x, y
    if name == "atan2":
        sizes = sign() * powers(-900, 900)
        y = np.concatenate([wide, random.uniform(-1, 1, number), sizes * powers(-20, 20), sizes])
        return y, np.concatenate([sign() * powers(-1074, 1024), random.uniform(-1, 1, number), sizes, sizes * random.uniform(-3, 3, number)])
    return (np.concatenate([wide, near, random.uniform(-3, 3, 2 * number), sign() * powers(-60, 60)]),)
