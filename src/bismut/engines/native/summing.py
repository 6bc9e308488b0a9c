"""Sums over the items of a loop: in registers, or in memory where they are large.

Where lanes are bodies, each lane has a sum of its own while the loop runs, and the lanes are added up after it, halves first: an order that does not
know the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from bismut.engines.native.field import Array, Stored, allocate, entry, everywhere, throughout
from bismut.engines.native.frame import Scope, Variable
from bismut.engines.native.lane import OWN, Lane, array_of

_WORD = ir.IntType(32)


class Total:
    """Variables. `apart`: the loop has lanes over bodies, and the scope around it has not."""

    def __init__(self, scope: Scope, aval, apart: bool):
        self.aval, self.apart, self.variables = aval, apart, [Variable(scope.frame, aval.dtype) for _ in range(aval.size)]
        for variable in self.variables:
            variable.set(scope, np.dtype(aval.dtype).type(0))

    def add(self, scope: Scope, x: Array, where: Any = None) -> None:
        """Of all lanes, or where one says so."""
        for variable, index in zip(self.variables, np.ndindex(*self.aval.shape), strict=True):
            variable.set(scope, scope.lane("add", [variable.get(scope), _counted(scope, entry(scope, x, index), where)]))

    def get(self, scope: Scope) -> np.ndarray:
        found = [variable.get(scope) for variable in self.variables]
        return array_of([folded(scope, lane) for lane in found] if self.apart else found, self.aval.shape)


class Large:
    """The same in memory."""

    def __init__(self, scope: Scope, aval, apart: bool):
        self.apart = apart
        self.memory = allocate(scope.over_bodies() if apart else scope, aval.shape, aval.dtype, OWN)
        clear(scope, self.memory)

    def add(self, scope: Scope, x: Array, where: Any = None) -> None:
        add(scope, self.memory, x, where)

    def get(self, scope: Scope) -> Stored:
        if not self.apart:
            return self.memory
        out = allocate(scope, self.memory.shape, self.memory.dtype, OWN)
        everywhere(scope, out.shape, lambda at, index: out.put(at, index, folded(at, self.memory.at(at, index))))
        return out


def sum_of(scope: Scope, aval, apart: bool = False) -> Any:
    return Total(scope, aval, apart) if aval.size <= scope.small else Large(scope, aval, apart)


def clear(scope: Scope, target: Stored) -> None:
    throughout(scope, target.shape, lambda inner, index: target.put(inner, index, target.dtype.type(0)))


def add(scope: Scope, target: Stored, x: Array, where: Any = None) -> None:
    one = lambda at, index: at.lane("add", [target.at(at, index), _counted(at, entry(at, x, index), where)])
    everywhere(scope, target.shape, lambda at, index: target.put(at, index, one(at, index)))


def folded(scope: Scope, lane: Lane) -> Lane:
    """The sum over all lanes, in all of them."""
    builder, width = scope.builder, scope.frame.width
    value, nothing, half = lane.value, ir.Constant(lane.value.type, ir.Undefined), width // 2
    together = builder.fadd if lane.dtype.kind == "f" else builder.add
    while half:
        order = ir.Constant(ir.VectorType(_WORD, width), [(k + half) % width for k in range(width)])
        value = together(value, builder.shuffle_vector(value, nothing, order))
        half //= 2
    return scope.splat(builder.extract_element(value, ir.Constant(_WORD, 0)), lane.dtype)


def _counted(scope: Scope, lane: Any, where: Any) -> Any:
    """A lane, and zero where it does not count."""
    return lane if where is None else scope.lane("select_n", [where, lane.dtype.type(0), lane])
