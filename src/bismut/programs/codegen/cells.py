"""Cells of space, and the bodies in each.

    cell along an axis   ⌊n (x/l − ⌊x/l⌋)⌋ of n in a box of side l,    ⌊n (x − low)/(high − low)⌋ of n where it is open

A cell is at least as wide as a list reaches, so that all that is near lies in the cell itself or in one beside it; around the end in a box. Axes
that have room for fewer than three cells are visited whole.

Bodies in the order of their cells stand at places 0 ... K − 1: neighbours in space are neighbours in memory. Cells that follow each other along the
last axis are one range of places.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Value
from bismut.programs.codegen.field import Buffer
from bismut.programs.codegen.frame import Frame, Scope, Variable
from bismut.programs.codegen.indices import LONG
from bismut.programs.codegen.integers import WORD, Integers
from bismut.programs.codegen.lane import SAME, Lane, first_of, value_of

_PER_BODY = 8  # cells, at most: more would be empty


class Axis:
    """How one axis is cut: into `count` cells (64 bits, or known) by x ↦ the number of its cell, a real that is still to be cut off."""

    def __init__(self, count: Any, number: Any, closed: bool):
        self.count, self.number, self.closed = count, number, closed


class CellGrid:
    """The cells of one list, and bodies in the order of their cells.

    cell    of each body            order   the body at each place          place   of each body
    begin   of each cell: its first place                                   sorted  where bodies are, place by place
    """

    def __init__(self, frame: Frame, count: int, sides: tuple[float, ...], width: float, dtype: Any):
        self.frame, self.count, self.sides, self.width, self.dtype = frame, count, sides, width, np.dtype(dtype)
        self.most = max(3, int((_PER_BODY * count) ** (1 / len(sides))))
        self.cell, self.order, self.place = (Integers.room(frame, count + frame.width) for _ in range(3))
        self.begin, self._next = Integers.room(frame, self.most ** len(sides) + 1), Integers.room(frame, self.most ** len(sides))
        padded, size = count + frame.width, self.dtype.itemsize
        room = frame.workspace.room(padded * len(sides) * size, permanent=True)
        self.sorted = Buffer(frame.workspace.base, (len(sides), padded), dtype, SAME, owner=room, start=room.offset // size, plain=True)
        self.axes: list[Axis] = []

    def sort(self, scope: Scope, x: Buffer) -> None:
        """Bodies in the order of their cells, in each by their numbers."""
        self.axes = [self._axis(scope, x, k) for k in range(len(self.sides))]
        builder = scope.builder
        with scope.portions(self.count) as (part, _, first, after), part.items(self.count, first, after) as (inner, k, _):
            number = None
            for axis, cut in enumerate(self.axes):
                mine = self._cut_off(inner, cut, cut.number(inner, value_of(inner.code, x.at(inner, (k, axis)))))
                count = value_of(inner.code, inner.counted(cut.count, np.int32))
                number = mine if number is None else builder.add(builder.mul(number, count), mine)
            self.cell.put_next(builder, k.base, number)
        cells = self.cells(builder)
        with scope.loop(builder.add(cells, LONG(1))) as (_, c):
            self.begin.put(builder, c, LONG(0))
        with scope.loop(self.count) as (_, k):
            self.begin.raise_by_one(builder, builder.add(self.cell.get(builder, k), LONG(1)))
        with scope.loop(cells) as (_, c):
            before = self.begin.get(builder, c)
            self._next.put(builder, c, before)
            after = builder.add(c, LONG(1))
            self.begin.put(builder, after, builder.add(before, self.begin.get(builder, after)))
        with scope.loop(self.count) as (inner, k):
            place = self._next.raise_by_one(builder, self.cell.get(builder, k))
            self.order.put(builder, place, k)
            self.place.put(builder, k, place)
            for axis in range(len(self.sides)):
                self.sorted.put(inner, (axis, place), x.at(inner, (k, axis)))

    def cells(self, builder: ir.IRBuilder) -> Value:
        """How many there are."""
        total = LONG(1)
        for axis in self.axes:
            total = builder.mul(total, LONG(axis.count) if isinstance(axis.count, int) else axis.count)
        return total

    def _axis(self, scope: Scope, x: Buffer, k: int) -> Axis:
        side = self.sides[k]
        if not np.isfinite(side):
            return self._open_axis(scope, x, k)
        count = max(1, min(self.most, int(side / self.width)))

        def number(at: Scope, value: Value) -> Value:
            code = at.code
            turns = code.mul(value, code.constant(1 / side, self.dtype))
            return code.mul(code.sub(turns, code.floor(turns)), code.constant(count, self.dtype))

        return Axis(count, number, True)

    def _open_axis(self, scope: Scope, x: Buffer, k: int) -> Axis:
        low, high = Variable(scope, self.dtype), Variable(scope, self.dtype)
        low.set(scope, self.dtype.type(np.inf))
        high.set(scope, self.dtype.type(-np.inf))
        with scope.items(self.count) as (inner, i, _):
            value = value_of(inner.code, x.at(inner, (i, k)))
            for end, sign in ((low, "<"), (high, ">")):
                before = end.get(inner).value
                end.set(inner, Lane(inner.code.select(inner.code.compare(sign, value, before), value, before), self.dtype))
        first, last = (self._extreme(scope, end, sign) for end, sign in ((low, "<"), (high, ">")))
        code, constant = scope.code, lambda number: scope.code.constant(number, self.dtype)
        span = code.sub(last, first)
        fit = self._between(code, code.div(span, constant(self.width)), 1, self.most)
        count = scope.builder.fptosi(fit, code.vector(np.int32))
        per = code.div(code.real(count, self.dtype), span)
        return Axis(
            first_of(code, Lane(count, np.int32, SAME)),
            lambda at, value: at.code.mul(at.code.sub(value, first), per),
            False,
        )

    def _extreme(self, scope: Scope, end: Variable, sign: str) -> Value:
        """The smallest or largest number of all lanes, in all of them."""
        builder, code, width = scope.builder, scope.code, self.frame.width
        value, half = end.get(scope).value, width // 2
        while half:
            order = ir.Constant(ir.VectorType(WORD, width), [(k + half) % width for k in range(width)])
            other = builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), order)
            value, half = code.select(code.compare(sign, other, value), other, value), half // 2
        return value

    def _between(self, code: Any, value: Value, low: Any, high: Any) -> Value:
        """Kept between two numbers; the lower one if it is NaN."""
        low, high = (code.constant(n, self.dtype) if isinstance(n, int) else n for n in (low, high))
        value = code.select(code.compare(">", value, low), value, low)
        return code.select(code.compare("<", value, high), value, high)

    def _cut_off(self, scope: Scope, axis: Axis, value: Value) -> Value:
        last = axis.count - 1 if isinstance(axis.count, int) else scope.builder.sub(axis.count, LONG(1))
        high = value_of(scope.code, scope.counted(last, self.dtype), self.dtype)
        return scope.builder.fptosi(self._between(scope.code, value, 0, high), scope.code.vector(np.int32))

    def around(self, scope: Scope, cell: Value, stack: ExitStack) -> tuple[Scope, Value, Value]:
        """A loop over ranges of places that hold the bodies of a cell and of those beside it: scope of the body, first place, and the one after."""
        builder, number = scope.builder, LONG(0)
        axes = []
        for axis in reversed(self.axes):
            count = LONG(axis.count) if isinstance(axis.count, int) else axis.count
            axes.append((axis, count, builder.srem(cell, count)))
            cell = builder.sdiv(cell, count)
        *others, last = reversed(axes)
        for axis, count, place in others:
            low, high = self._beside(builder, axis, count, place)
            scope, other = stack.enter_context(scope.loop(high, low))
            if axis.closed:
                other = builder.select(builder.icmp_signed("<", other, LONG(0)), builder.add(other, count), other)
                other = builder.select(builder.icmp_signed("<", other, count), other, builder.sub(other, count))
            number = builder.add(builder.mul(number, count), other)
        axis, count, place = last
        low, high = self._beside(builder, axis, count, place)
        first = builder.mul(number, count)
        ranges, wrapped = LONG(1), LONG(0)
        if axis.closed:  # around the end there is one more cell, which does not follow
            at_low, at_high = builder.icmp_signed("<", low, LONG(0)), builder.icmp_signed(">", high, count)
            ranges = builder.select(builder.or_(at_low, at_high), LONG(2), LONG(1))
            wrapped = builder.select(at_low, builder.sub(count, LONG(1)), LONG(0))
            low, high = builder.select(at_low, LONG(0), low), builder.select(at_high, count, high)
        scope, turn = stack.enter_context(scope.loop(ranges))
        main = builder.icmp_signed("==", turn, LONG(0))
        low, high = builder.select(main, low, wrapped), builder.select(main, high, builder.add(wrapped, LONG(1)))
        return scope, self.begin.get(builder, builder.add(first, low)), self.begin.get(builder, builder.add(first, high))

    def _beside(self, builder: ir.IRBuilder, axis: Axis, count: Value, place: Value) -> tuple[Value, Value]:
        """From which cell of an axis to before which those beside one are; all where there are few."""
        few = builder.icmp_signed("<", count, LONG(3))
        low, high = builder.sub(place, LONG(1)), builder.add(place, LONG(2))
        if not axis.closed:
            low = builder.select(builder.icmp_signed("<", low, LONG(0)), LONG(0), low)
            high = builder.select(builder.icmp_signed("<", high, count), high, count)
        return builder.select(few, LONG(0), low), builder.select(few, count, high)
