"""Who is near whom: a list that is kept while nobody has moved far.

    list of i   all j with |x_i − x_j| ≤ c + s when it was made, ascending; c the cutoff, s the skin
    kept while  |x_i − x_i′| ≤ s/2 for everybody, x′ where they were then
    row of i    those of the list with |x_i − x_j| ≤ c now

A list is only a cache: rows depend on where bodies are now, and not on when the list was made. So do the sums over them, and a run that is cut
anywhere keeps its bits.

Lists are made from cells. Whoever is near j is written down cell by cell; then, j by j, j is entered into the lists of those who are near it: so all
lists ascend, and nobody sorts. They are filled up to multiples of the width with the body itself, which is no neighbour of its own.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from bismut.engines.native.arithmetic import somewhere
from bismut.engines.native.cells import Grid
from bismut.engines.native.code import Value
from bismut.engines.native.field import Stored, fill
from bismut.engines.native.frame import Frame, Scope
from bismut.engines.native.integers import BIT, WORD, Counter, Integers, append, rounded_up, stepping
from bismut.engines.native.lane import SAME, value_of
from bismut.engines.native.places import LONG, Index, Span
from bismut.repetition import Reach

SKIN = 0.15  # of the cutoff
CHECKED = 2**27  # pairs that are looked at one by one to check a list
_SLACK = {"f": 1e-4, "d": 1e-7}  # of a length: more than rounding does to a distance

FULL, WRONG, DONE = 0, 1, 2  # what a list reports: the room that it wants, whether it missed a pair, whether it was checked


class Facts(NamedTuple):
    """What is to be known of a list once it is written: how many bodies, lanes, and how far it reaches."""

    bodies: int
    width: int
    cutoff: float
    skin: float

    @property
    def words(self) -> str:
        return f"cutoff {self.cutoff:g}, skin {self.skin:g}"


class Neighbours:
    """The list of one function, for one number of bodies and one reach.

    Of the table it takes two arrays of 32-bit numbers, how many fit into each, an array for its report, and whether it is to be checked.
    """

    def __init__(self, frame: Frame, count: int, reach: Reach, dtype: Any):
        self.frame, self.count, self.dtype, width = frame, count, np.dtype(dtype), frame.width
        slack, self.skin = 1 + _SLACK[self.dtype.char], SKIN * reach.cutoff
        self.facts = Facts(count, width, reach.cutoff, self.skin)
        self.near, self.far, self.sides = reach.cutoff * slack, (reach.cutoff * slack + self.skin) * slack, reach.box
        self._found, self._list = Integers(frame.pointer()), Integers(frame.pointer())
        self._room, self._report, self._asked = frame.entry(), frame.pointer(), frame.entry()
        self._begin, self._length, self._cursor = (Integers.room(frame, count) for _ in range(3))
        self.row, self._end, self._lower = Integers.room(frame, count + 2 * width), Counter(frame), Counter(frame)
        self._grid = Grid(frame, count, reach.box, self.far * slack, dtype)
        room, size = frame.room(count * len(reach.box) * self.dtype.itemsize, shared=True), self.dtype.itemsize
        self._before = Stored(frame.workspace, (count, len(reach.box)), dtype, SAME, owner=room, start=room.offset // size, plain=True)
        self._made = frame.flag()

    # Keeping the list.

    def refresh(self, scope: Scope, x: Stored) -> None:
        """Make the list anew, if there is none, or if somebody has moved half a skin since."""
        builder, stale = scope.builder, self.frame.slot(BIT)
        builder.store(builder.not_(builder.load(self._made)), stale)
        with scope.items(self.count) as (inner, k, _):
            code = inner.code
            moved = self._square(code, [self._at(inner, x, k), self._at(inner, self._before, k)], (np.inf,) * len(self.sides))
            far = somewhere(code, code.compare(">", moved, code.constant((self.skin / 2) ** 2, self.dtype)))
            builder.store(builder.or_(far, builder.load(stale)), stale)
        with builder.if_then(builder.load(stale)):
            self._make(scope.inside(), x)

    def _make(self, scope: Scope, x: Stored) -> None:
        builder = scope.builder
        with scope.loop(self.count + 2 * self.frame.width) as (_, k):  # lanes past the end of a row look at whoever stands there
            self.row.put(builder, k, LONG(0))
        self._grid.sort(scope, x)
        self._find(scope)
        self._enter(scope)
        fill(scope, self._before, x)
        with builder.if_then(builder.icmp_signed("!=", builder.select(builder.load(self._made), LONG(0), self._asked), LONG(0))):
            self._check(scope.inside(), x)
        builder.store(BIT(1), self._made)

    def _find(self, scope: Scope) -> None:
        """Whoever is near i, cell by cell."""
        builder, grid, width = scope.builder, self._grid, self.frame.width
        self._end.set(builder, LONG(0))
        around = Counter(self.frame)
        with scope.loop(grid.cells(builder)) as (of_cell, cell):
            first, last = grid.begin.get(builder, cell), grid.begin.get(builder, builder.add(cell, LONG(1)))
            around.set(builder, LONG(0))
            with ExitStack() as stack:
                _, other = grid.around(of_cell, cell, stack)
                around.add(builder, builder.sub(grid.begin.get(builder, builder.add(other, LONG(1))), grid.begin.get(builder, other)))
            with of_cell.loop(last, first) as (of_body, place):
                i, begin = grid.order.get(builder, place), self._end.get(builder)
                self._leave_if_full(builder, builder.add(begin, builder.add(around.get(builder), LONG(2 * width))))
                mine = [value_of(of_body.code, grid.sorted.at(of_body, (axis, place))) for axis in range(len(self.sides))]
                with ExitStack() as stack:
                    beside, other = grid.around(of_body, cell, stack)
                    after = grid.begin.get(builder, builder.add(other, LONG(1)))
                    with stepping(beside, grid.begin.get(builder, other), after) as (inner, p):
                        self._add_near(inner, mine, p, after, place)
                self._begin.put(builder, i, begin)
                self._cursor.put(builder, i, begin)
                self._length.put(builder, i, builder.sub(self._end.get(builder), begin))
                self._end.set(builder, rounded_up(builder, self._end.get(builder), width))

    def _leave_if_full(self, builder: ir.IRBuilder, wanted: Value) -> None:
        """Back to the caller, who makes room and begins again."""
        with builder.if_then(builder.icmp_signed(">", wanted, self._room), likely=False):
            self._tell(builder, FULL, wanted)
            builder.ret_void()

    def _tell(self, builder: ir.IRBuilder, which: int, what: Value) -> None:
        builder.store(what, builder.bitcast(builder.gep(self._report, [LONG(8 * which)]), LONG.as_pointer()))

    def _add_near(self, scope: Scope, mine: list, p: Value, after: Value, place: Value) -> None:
        """Those near among the next few in the order of cells."""
        builder, code, grid, width = scope.builder, scope.code, self._grid, self.frame.width
        others = [value_of(code, grid.sorted.at(scope, (axis, Span(p)))) for axis in range(len(mine))]
        number = value_of(code, scope.counted(Span(p), np.int64))
        apart = builder.icmp_signed("!=", number, scope.splat(place, np.int64).value)
        there = builder.icmp_signed("<", number, scope.splat(after, np.int64).value)
        near = self._within(code, self._square(code, [mine, others], self.sides), self.far)
        names = grid.order.next(builder, p, width)
        name = lambda lane: builder.sext(builder.extract_element(names, WORD(lane)), LONG)
        append(builder, self._found, self._end, name, builder.and_(near, builder.and_(apart, there)), width)

    def _enter(self, scope: Scope) -> None:
        """j into the lists of those near it."""
        builder, width = scope.builder, self.frame.width
        with scope.loop(self.count) as (inner, j):
            begin = self._begin.get(builder, j)
            with inner.loop(builder.add(begin, self._length.get(builder, j)), begin) as (_, q):
                self._list.put(builder, self._cursor.raise_by_one(builder, self._found.get(builder, q)), j)
        with scope.loop(self.count) as (inner, i):
            end = self._cursor.get(builder, i)
            with inner.loop(rounded_up(builder, end, width), end) as (_, q):
                self._list.put(builder, q, i)

    # Using it.

    def find_row(self, scope: Scope, x: Stored, i: Value) -> tuple[Value, Value]:
        """Those near i, in `row`, ascending: how many of them have lower numbers, and how many there are."""
        builder, width = scope.builder, self.frame.width
        mine = self._at(scope, x, i)
        self._end.set(builder, LONG(0))
        self._lower.set(builder, LONG(0))
        begin = self._begin.get(builder, i)
        with stepping(scope, begin, builder.add(begin, self._length.get(builder, i))) as (inner, q):
            chosen, places = self._chosen(inner, x, mine, i, q)
            append(builder, self.row, self._end, lambda lane: places.places[lane], chosen, width)
            below = builder.icmp_signed("<", self._list.next(builder, q, width), self._name(inner, i))
            self._lower.add(builder, _number_of(builder, builder.and_(chosen, below), width))
        return self._lower.get(builder), self._end.get(builder)

    def _chosen(self, scope: Scope, x: Stored, mine: list, i: Value, q: Value) -> tuple[Value, Any]:
        """Which of the next few of a list are near, and all of them."""
        builder, code, width = scope.builder, scope.code, self.frame.width
        places = self._list.places(builder, q, width)
        near = self._within(code, self._square(code, [mine, self._at(scope, x, places)], self.sides), self.near)
        apart = builder.icmp_signed("!=", self._list.next(builder, q, width), self._name(scope, i))
        return builder.and_(near, apart), places

    def _name(self, scope: Scope, i: Value) -> Value:
        return scope.splat(scope.builder.trunc(i, WORD), np.int32).value

    def _at(self, scope: Scope, x: Stored, k: Index) -> list[Value]:
        return [value_of(scope.code, x.at(scope, (k, axis))) for axis in range(len(self.sides))]

    def _square(self, code: Any, ends: list, sides: tuple[float, ...]) -> Value:
        """|r|² of the nearest images. It is the same seen from either end."""
        total = code.constant(0, self.dtype)
        for a, b, side in zip(*ends, sides, strict=True):
            r = code.sub(a, b)
            if np.isfinite(side):
                r = code.sub(r, code.mul(code.constant(side, self.dtype), code.rint(code.mul(r, code.constant(1 / side, self.dtype)))))
            total = code.fma(r, r, total)
        return total

    def _within(self, code: Any, square: Value, distance: float) -> Value:
        return code.compare("<=", square, code.constant(distance**2, self.dtype))

    # Checking it.

    def _check(self, scope: Scope, x: Stored) -> None:
        """Rows against what all pairs say: all rows of some ten thousand bodies, and of more as many as take no longer."""
        builder, width = scope.builder, self.frame.width
        self._tell(builder, DONE, LONG(1))
        rows = max(1, min(self.count, CHECKED // self.count))
        seen, listed = Counter(self.frame), Counter(self.frame)
        with scope.loop(rows) as (of_row, number):
            i = builder.mul(number, LONG(self.count // rows))
            mine = self._at(of_row, x, i)
            seen.set(builder, LONG(0))
            with of_row.items(self.count) as (inner, k, fresh):
                near = self._within(inner.code, self._square(inner.code, [mine, self._at(inner, x, k)], self.sides), self.near)
                apart = builder.icmp_signed("!=", value_of(inner.code, inner.counted(k, np.int64)), inner.splat(i, np.int64).value)
                near = builder.and_(near, apart if fresh is None else builder.and_(apart, fresh.value))
                seen.add(builder, _number_of(builder, near, width))
            _, end = self.find_row(of_row, x, i)
            listed.set(builder, end)
            with builder.if_then(builder.icmp_signed("!=", seen.get(builder), listed.get(builder)), likely=False):
                self._tell(builder, WRONG, LONG(1))


def _number_of(builder: ir.IRBuilder, mask: Value, width: int) -> Value:
    """How many lanes a mask marks."""
    bits = builder.bitcast(mask, ir.IntType(width))
    return builder.zext(builder.ctpop(bits), LONG)
