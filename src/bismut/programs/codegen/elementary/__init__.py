"""Elementary functions as vector code.

    FUNCTIONS["sin"](code, x)     appends the instructions of sin x and returns the value

float64 within 2 units in the last place over the whole range, signed zeros, subnormal numbers, infinities and NaN as C's mathematical library has
them; float32 within 1.5 units, most of it computed in float64 and rounded once. The names are those of JAX's primitives.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from bismut.programs.codegen.code import Code, Value
from bismut.programs.codegen.elementary import float32
from bismut.programs.codegen.elementary.error_function import erf, erf_inv, erfc
from bismut.programs.codegen.elementary.exponential import exp, exp2, expm1, logistic
from bismut.programs.codegen.elementary.formula import RealVector
from bismut.programs.codegen.elementary.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from bismut.programs.codegen.elementary.inverse import acos, asin, atan, atan2
from bismut.programs.codegen.elementary.logarithm import log, log1p
from bismut.programs.codegen.elementary.outline import outlined
from bismut.programs.codegen.elementary.power import cbrt, pow
from bismut.programs.codegen.elementary.trigonometric import cos, sin, tan

_IN_PLACE = {"sin": sin, "cos": cos, "exp": exp, "exp2": exp2, "log": log}  # short; and where both are wanted, what they share is computed once
_FORMULAS = (tan, expm1, logistic, log1p, pow, cbrt, sinh, cosh, tanh, asin, acos, atan, atan2, asinh, acosh, atanh, erf, erfc, erf_inv)
_CALLED = {formula.__name__: formula for formula in _FORMULAS}

FORMULAS: dict[str, Callable[..., RealVector]] = _IN_PLACE | _CALLED

_SINGLE = {"sin": float32.sin, "cos": float32.cos, "exp": float32.exp, "log": float32.log}


def _emitter(name: str, formula: Callable[..., RealVector], called: bool) -> Callable[..., Value]:
    def double(*inputs: RealVector) -> RealVector:
        return outlined(name, lambda *arguments: [formula(*arguments)], 1, *inputs)[0] if called else formula(*inputs)

    def emit(code: Code, *inputs: Value) -> Value:
        reals = [RealVector(code, value) for value in inputs]
        if isinstance(inputs[0].type.element, ir.DoubleType):
            return double(*reals).value
        if code.fused and name in _SINGLE:
            return _SINGLE[name](*reals).value
        return double(*(real.widened() for real in reals)).narrowed().value

    return emit


FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _emitter(name, formula, called=False) for name, formula in _IN_PLACE.items()},
    **{name: _emitter(name, formula, called=True) for name, formula in _CALLED.items()},
}
