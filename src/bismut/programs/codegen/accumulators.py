"""Sums over the items of a loop: in registers, or in memory where they are large.

Where lanes are bodies, each lane has a sum of its own while the loop runs, and the lanes are added up after it, halves first: an order that does not
know the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.field import Array, Buffer, allocate, entry, everywhere, fill, throughout
from bismut.programs.codegen.frame import Scope, Variable, portions_of
from bismut.programs.codegen.indices import LONG
from bismut.programs.codegen.lane import OWN, Lane, array_of

_WORD = ir.IntType(32)


class RegisterSum:
    """Variables. `across`: the loop has lanes over bodies, and the scope around it has not."""

    def __init__(self, scope: Scope, aval, across: bool):
        self.aval, self.across, self.variables = aval, across, [Variable(scope, aval.dtype) for _ in range(aval.size)]
        for variable in self.variables:
            variable.set(scope, np.dtype(aval.dtype).type(0))

    def add(self, scope: Scope, x: Array, where: Any = None) -> None:
        """Of all lanes, or where one says so."""
        for variable, index in zip(self.variables, np.ndindex(*self.aval.shape), strict=True):
            variable.set(scope, scope.lane("add", [variable.get(scope), _counted(scope, entry(scope, x, index), where)]))

    def get(self, scope: Scope) -> np.ndarray:
        values = [variable.get(scope) for variable in self.variables]
        return array_of([folded(scope, lane) for lane in values] if self.across else values, self.aval.shape)


class MemorySum:
    """The same in memory."""

    def __init__(self, scope: Scope, aval, across: bool):
        self.across = across
        self.memory = allocate(scope.over_bodies() if across else scope, aval.shape, aval.dtype, OWN)
        clear(scope, self.memory)

    def add(self, scope: Scope, x: Array, where: Any = None) -> None:
        add(scope, self.memory, x, where)

    def get(self, scope: Scope) -> Buffer:
        if not self.across:
            return self.memory
        out = allocate(scope, self.memory.shape, self.memory.dtype, OWN)
        everywhere(scope, out.shape, lambda at, index: out.put(at, index, folded(at, self.memory.at(at, index))))
        return out


def sum_of(scope: Scope, aval, across: bool = False) -> Any:
    return RegisterSum(scope, aval, across) if aval.size <= scope.small else MemorySum(scope, aval, across)


class PortionSums:
    """Sums over many items, where lanes are bodies: first within portions, each by one thread, and then over them, in their order."""

    def __init__(self, scope: Scope, avals: Sequence, count: int):
        self._avals, self._portions, self._sums = avals, portions_of(count), []
        self._parts = [allocate(scope, (self._portions, *aval.shape), aval.dtype, OWN, rows=True) for aval in avals]

    def begin(self, scope: Scope) -> list:
        """The sums of one portion."""
        self._sums = [sum_of(scope, aval, across=True) for aval in self._avals]
        return self._sums

    def end(self, scope: Scope, portion: Any) -> None:
        for part, one in zip(self._parts, self._sums, strict=True):
            fill(scope, part.part(scope, portion), one.get(scope))

    def get(self, scope: Scope) -> list[Array]:
        return [self._total(scope, aval, part) for aval, part in zip(self._avals, self._parts, strict=True)]

    def _total(self, scope: Scope, aval, part: Buffer) -> Array:
        first = part.part(scope, LONG(0))
        if aval.size > scope.small:
            out = allocate(scope, aval.shape, aval.dtype, OWN)
            fill(scope, out, first)
            with scope.loop(self._portions, LONG(1)) as (inner, k):
                add(inner, out, part.part(inner, k))
            return out
        totals = [Variable(scope, aval.dtype) for _ in range(aval.size)]
        places = list(np.ndindex(*aval.shape))
        for total, index in zip(totals, places, strict=True):
            total.set(scope, first.at(scope, index))
        with scope.loop(self._portions, LONG(1)) as (inner, k):
            for total, index in zip(totals, places, strict=True):
                total.set(inner, inner.lane("add", [total.get(inner), part.at(inner, (k, *index))]))
        return array_of([total.get(scope) for total in totals], aval.shape)


def clear(scope: Scope, target: Buffer) -> None:
    over = throughout if target.plain else everywhere  # a sum of each lane's own is cleared entry by entry, all lanes together
    over(scope, target.shape, lambda inner, index: target.put(inner, index, target.dtype.type(0)))


def add(scope: Scope, target: Buffer, x: Array, where: Any = None) -> None:
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
