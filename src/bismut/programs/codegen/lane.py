"""One number of a step: known while the code is written, or a vector over trajectories.

    a lane is   a NumPy scalar (a constant, folded away where it can be), or a `Lane`: a value of the code, of a certain level

Folding constants makes a sparse Jacobian cost its nonzeros only. Levels say for whom and for how long a value holds, and so where it is computed:

    OWN      each trajectory has its own
    SAME     all trajectories have the same, but it changes on the way: the time, a loop's counter
    SHARED   it never changes while a program runs (step size, parameters, and all that follows from them): computed once, before the loops
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Code, Value

OWN, SAME, SHARED = 0, 1, 2


class Lane:
    """A value of the code; `factors` are those of a product, which a sum may fuse with; `unsigned`: the sign bit of a real is known to be 0."""

    __slots__ = ("dtype", "factors", "level", "unsigned", "value")

    def __init__(self, value: Value, dtype: Any, level: int = OWN, factors: tuple | None = None, unsigned: bool = False):
        self.value, self.dtype, self.level, self.factors, self.unsigned = value, np.dtype(dtype), level, factors, unsigned


def constant(lane: Any) -> bool:
    return not isinstance(lane, Lane)


def level_of(lanes) -> int:
    """The lowest level among lanes; constants are as good as shared."""
    return min((lane.level for lane in lanes if isinstance(lane, Lane)), default=SHARED)


def value_of(code: Code, lane: Any, dtype: Any = None) -> Value:
    """A lane as a value of the code."""
    return lane.value if isinstance(lane, Lane) else code.constant(lane, lane.dtype if dtype is None else dtype)


def first_of(code: Code, lane: Any, width: int = 64) -> Value:
    """A whole number that is the same in all lanes, as one number of the machine."""
    kind = ir.IntType(width)
    if constant(lane):
        return ir.Constant(kind, int(lane))
    number: Any = code.builder.extract_element(lane.value, ir.Constant(ir.IntType(32), 0))
    if number.type.width == width:
        return number
    if number.type.width > width:
        return code.builder.trunc(number, kind)
    return code.builder.sext(number, kind) if lane.dtype.kind == "i" else code.builder.zext(number, kind)


def array_of(values: list, shape: tuple[int, ...]) -> np.ndarray:
    """Lanes in a row as an array of lanes."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def constants(value: Any) -> np.ndarray:
    """An array known while the code is written, as an array of lanes."""
    value = np.asarray(value)
    return array_of(list(value.ravel()), value.shape)
