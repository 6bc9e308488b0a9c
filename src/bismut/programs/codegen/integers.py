"""Plain arithmetic of whole numbers, for lists and loops over them: memory of 32-bit numbers, counters, steps of several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from bismut.programs.codegen.code import Value
from bismut.programs.codegen.frame import Frame, Scope
from bismut.programs.codegen.indices import LONG, Scattered

WORD = ir.IntType(32)


class Integers:
    """Numbers of 32 bits in memory, from an address on; they are read as 64 bits."""

    def __init__(self, base: Value, offset: int = 0):
        self._base, self._offset = base, offset

    @classmethod
    def room(cls, frame: Frame, count: int) -> Integers:
        """Memory of the function's own, or of the body that is being written."""
        memory = frame.memory()
        return cls(memory.base, memory.room(4 * count, permanent=True).offset)

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
        return scattered(builder, self.next(builder, i, width))


class Counter:
    """A whole number that changes."""

    def __init__(self, scope: Scope):
        self._slot = scope.slot(LONG)

    def get(self, builder: ir.IRBuilder) -> Value:
        return builder.load(self._slot)

    def set(self, builder: ir.IRBuilder, value: Value) -> None:
        builder.store(value, self._slot)

    def add(self, builder: ir.IRBuilder, value: Value) -> None:
        self.set(builder, builder.add(self.get(builder), value))


def append(builder: ir.IRBuilder, target: Integers, end: Counter, numbers: Value, chosen: Value, rest: Value) -> None:
    """target ← target, those of the numbers that are chosen, rest: past the end there are as many numbers of `rest` as make up a vector."""
    kind, mask = numbers.type, chosen.type
    name = f"llvm.experimental.vector.compress.v{kind.count}i32"
    compress = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(kind, [kind, mask, kind]), name)
    target.put_next(builder, end.get(builder), builder.call(compress, [numbers, chosen, rest]))
    end.add(builder, number_of(builder, chosen))


def number_of(builder: ir.IRBuilder, mask: Value) -> Value:
    """How many lanes a mask marks."""
    return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(mask.type.count))), LONG)


def same(number: Value, builder: ir.IRBuilder, width: int) -> Value:
    """One number of 32 bits in every lane."""
    kind = ir.VectorType(WORD, width)
    alone = builder.insert_element(ir.Constant(kind, ir.Undefined), number, WORD(0))
    return builder.shuffle_vector(alone, ir.Constant(kind, ir.Undefined), ir.Constant(kind, [0] * width))


def scattered(builder: ir.IRBuilder, numbers: Value) -> Scattered:
    """A vector of numbers as a place for each lane."""
    return Scattered([builder.zext(builder.extract_element(numbers, WORD(lane)), LONG) for lane in range(numbers.type.count)])


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
