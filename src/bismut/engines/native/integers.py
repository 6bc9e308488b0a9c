"""Plain arithmetic of whole numbers, for lists and loops over them: memory of 32-bit numbers, counters, steps of several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from bismut.engines.native.code import Value
from bismut.engines.native.frame import Frame, Scope
from bismut.engines.native.places import LONG, Scattered

WORD, BIT = ir.IntType(32), ir.IntType(1)


class Integers:
    """Numbers of 32 bits in memory, from an address on; they are read as 64 bits."""

    def __init__(self, base: Value, offset: int = 0):
        self._base, self._offset = base, offset

    @classmethod
    def room(cls, frame: Frame, count: int) -> Integers:
        """Memory of the function's own."""
        return cls(frame.workspace, frame.room(4 * count, shared=True).offset)

    def _address(self, builder: ir.IRBuilder, i: Value, kind: ir.Type) -> Value:
        place = builder.add(builder.mul(i, LONG(4)), LONG(self._offset))
        return builder.bitcast(builder.gep(self._base, [place]), kind.as_pointer())

    def get(self, builder: ir.IRBuilder, i: Value) -> Value:
        return builder.sext(builder.load(self._address(builder, i, WORD), align=4), LONG)

    def put(self, builder: ir.IRBuilder, i: Value, value: Value) -> None:
        builder.store(builder.trunc(value, WORD), self._address(builder, i, WORD), align=4)

    def raise_by_one(self, builder: ir.IRBuilder, i: Value) -> Value:
        """The number, which is one more afterwards."""
        before = self.get(builder, i)
        self.put(builder, i, builder.add(before, LONG(1)))
        return before

    def next(self, builder: ir.IRBuilder, i: Value, width: int) -> Value:
        """So many in a row, as a vector."""
        return builder.load(self._address(builder, i, ir.VectorType(WORD, width)), align=4)

    def put_next(self, builder: ir.IRBuilder, i: Value, values: Value) -> None:
        builder.store(values, self._address(builder, i, values.type), align=4)

    def places(self, builder: ir.IRBuilder, i: Value, width: int) -> Scattered:
        """So many in a row, one for each lane."""
        return Scattered([self.get(builder, builder.add(i, LONG(lane))) for lane in range(width)])


class Counter:
    """A whole number that changes."""

    def __init__(self, frame: Frame):
        self._slot = frame.slot(LONG)

    def get(self, builder: ir.IRBuilder) -> Value:
        return builder.load(self._slot)

    def set(self, builder: ir.IRBuilder, value: Value) -> None:
        builder.store(value, self._slot)

    def add(self, builder: ir.IRBuilder, value: Value) -> None:
        self.set(builder, builder.add(self.get(builder), value))


def append(builder: ir.IRBuilder, target: Integers, end: Counter, numbers: Any, chosen: Value, width: int) -> None:
    """target ← target, those of the numbers that are chosen; one number past the end may be overwritten."""
    place = end.get(builder)
    for lane in range(width):
        target.put(builder, place, numbers(lane))
        place = builder.add(place, builder.zext(builder.extract_element(chosen, WORD(lane)), LONG))
    end.set(builder, place)


def in_steps(builder: ir.IRBuilder, count: Value, width: int) -> Value:
    """⌈count/width⌉."""
    return builder.sdiv(builder.add(count, LONG(width - 1)), LONG(width))


def rounded_up(builder: ir.IRBuilder, count: Value, width: int) -> Value:
    return builder.mul(in_steps(builder, count, width), LONG(width))


@contextmanager
def stepping(scope: Scope, begin: Value, end: Value) -> Iterator[tuple[Scope, Value]]:
    """for p = begin, begin + W, ... < end: a scope in which lanes are bodies, and p."""
    builder, width = scope.builder, scope.frame.width
    with scope.loop(in_steps(builder, builder.sub(end, begin), width)) as (_, v):
        yield scope.over_bodies(), builder.add(begin, builder.mul(v, LONG(width)))
