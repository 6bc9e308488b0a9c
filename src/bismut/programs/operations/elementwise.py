"""Operations entry by entry: one meaning for NumPy, for constants while code is written, and for the code itself.

    Elementwise("add", numpy=np.add, real=..., integer=...)     numpy: of arrays, which broadcast;  real, integer: code for both

The code gives what NumPy gives, to the bit for what IEEE 754 rounds (docs/arithmetic.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bismut.programs.codegen.code import Code, Value
from bismut.programs.codegen.field import Array, Field, Formula, array_level, entry
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.lane import Lane, array_of, value_of
from bismut.programs.operation import NOWHERE, Operation, register
from bismut.programs.program import Refused

REAL, NUMBER, ANY, WHOLE, INTEGER = "f", "fiu", "fiub", "biu", "iu"  # kinds of numbers


class Emission(NamedTuple):
    """What the code of one operation is written with: lanes as they are, the type of their numbers, parameters of the equation."""

    code: Code
    lanes: list
    dtype: np.dtype
    settings: dict

    @property
    def builder(self) -> Any:
        return self.code.builder

    def constant(self, value: Any) -> Value:
        return self.code.constant(value, self.dtype)

    @property
    def order(self) -> Callable:
        """The comparison of integers and bits."""
        return self.builder.icmp_signed if self.dtype.kind == "i" else self.builder.icmp_unsigned


Written = Callable[..., Value]  # (Emission, *values) ↦ value


class Elementwise(Operation):
    """One operation on numbers.

    numpy       function of arrays and, by name, of the parameters
    kinds       of numbers that it is defined for
    real        code for reals
    integer     code for integers and truth values
    fold        lanes ↦ what is known of the result before anything is computed, or None
    parameters  of the equation that matter
    like        which input has the type of the result, unless that is a truth value
    jumps       whether the result may jump where the inputs do not
    """

    def __init__(
        self,
        *names: str,
        numpy: Callable,
        kinds: str = NUMBER,
        real: Written | None = None,
        integer: Written | None = None,
        fold: Callable[..., Any] | None = None,
        parameters: tuple[str, ...] = (),
        affine_in: slice | str = NOWHERE,
        like: int = 0,
        jumps: bool | None = None,
    ):
        self.names, self.numpy, self.kinds, self.real, self.integer = names, numpy, kinds, real, integer
        self.fold, self.parameters, self.affine_in, self.like, self.jumps = fold, parameters, affine_in, like, jumps
        register(self)

    def settings(self, params: Any) -> dict:
        return {key: params[key] for key in self.parameters}

    def compute(self, inputs: list, settings: dict) -> Any:
        """The result in NumPy, of the type that JAX gives it."""
        with np.errstate(all="ignore"):
            values = self.numpy(*inputs, **settings)
        kind = inputs[self.like].dtype
        return values if self.parameters or values.dtype.kind == "b" or values.dtype == kind else values.astype(kind)

    def accepts(self, inputs: list, params: Any) -> bool:
        """Whether there is a meaning for these kinds of numbers."""
        del params
        return all(isinstance(x.dtype, np.dtype) and x.dtype.kind in self.kinds for x in inputs)

    def evaluate(self, equation: Any, inputs: list) -> list | None:
        return [self.compute(inputs, self.settings(equation.params))] if self.accepts(inputs, equation.params) else None

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        return [apply(scope, self.name, inputs, self.settings(equation.params), equation.outvars[0].aval.dtype)]

    def emit_lane(self, code: Code, lanes: list, settings: dict, level: int) -> Lane:
        """The code for one lane, at the end of what is there."""
        dtype = next(lane.dtype for lane in lanes if isinstance(lane, Lane))
        written = self.real if dtype.kind == "f" else self.integer
        if written is None:
            raise Refused(f"{self.name} of {dtype} numbers")
        value = written(Emission(code, lanes, dtype, settings), *(value_of(code, lane, dtype) for lane in lanes))
        return self.labelled(value, dtype, level, lanes)

    def labelled(self, value: Value, dtype: np.dtype, level: int, lanes: list) -> Lane:
        """The value with what is known of it."""
        del lanes
        return Lane(value, dtype, level)


def apply(scope: Scope, name: str, inputs: list[Array], settings: dict, dtype: Any) -> Array:
    """One operation on arrays; an axis of length one goes with every entry."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    if any(isinstance(x, Field) for x in inputs):
        position = lambda x, index: [i if n > 1 else 0 for i, n in zip(index, x.shape, strict=True)] if x.shape else ()

        def one(inner: Scope, index) -> Any:
            return inner.lane(name, [entry(inner, x, position(x, index)) for x in inputs], settings)

        return Formula(shape, dtype, min(map(array_level, inputs)), one)
    columns = [x.flat if x.shape == shape else np.broadcast_to(x, shape).flat for x in inputs]
    return array_of([scope.lane(name, list(lanes), settings) for lanes in zip(*columns, strict=True)], shape)
