"""Neighbours of each body: a list that stays valid until bodies have moved far.

    list of i   all j with |x_i − x_j| ≤ c + s when it was made, ascending; c the cutoff, s the skin
    kept while  |x_i − x_i′| ≤ s/2 for all bodies, x′ where they were then
    row of i    those of the list with |x_i − x_j| ≤ c now

A list is only a cache: rows depend on where bodies are now, and not on when the list was made. So do the sums over them, and a run that is cut
anywhere keeps its bits.

Bodies are visited in the order of cells, so that neighbours in space are neighbours in memory, and lists hold places in that order. Within a list
they ascend by the numbers of bodies, which never change, because the order of a sum determines its bits. To make it, neighbours are written down cell
by cell; then, body by body, each is entered into the lists of its neighbours: nothing is sorted. Lists have two parts, lower numbers and higher ones,
each filled up to a multiple of the width with a place K, where there is no body and coordinates are NaN.

All of this is shared out among threads: portions of places write down neighbours, and each thread enters them into lists of its own range of places.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.cells import CellGrid
from bismut.programs.codegen.code import Value
from bismut.programs.codegen.elementary.formula import Mask
from bismut.programs.codegen.field import Buffer, fill
from bismut.programs.codegen.frame import Frame, Scope, portions_of
from bismut.programs.codegen.gathering import gathered
from bismut.programs.codegen.indices import LONG, Index, Span
from bismut.programs.codegen.integers import WORD, Counter, Integers, append, number_of, rounded_up, same, scattered, stepping
from bismut.programs.codegen.lane import SAME, value_of
from bismut.programs.layout import Reach

# Of the cutoff. Flat: a Lennard-Jones liquid at cutoff 2.5 makes, with 0.1, 0.15, 0.22 and 0.3, 3.1, 3.2, 3.3 and 3.1 M body-steps in a second of
# processor time at 32 000 points; at 4000 all are within 3.7 and 4.4, which is by how much 0.15 alone varies on a busy machine.
SKIN = 0.15
CHECKED = 2**24  # pairs that are looked at one by one to check a list: some milliseconds
_SLACK = {"f": 1e-4, "d": 1e-7}  # of a length: more than rounding does to a distance

FULL, WRONG, DONE = 0, 1, 2  # what a list reports: the room that it wants, whether it missed a pair, whether it was checked


class ListFacts(NamedTuple):
    """What is to be known of a list once it is written: how many bodies, lanes, and how far it reaches."""

    bodies: int
    width: int
    cutoff: float
    skin: float

    @property
    def description(self) -> str:
        return f"cutoff {self.cutoff:g}, skin {self.skin:g}"


class Neighbours:
    """The list of one function, for one number of bodies and one reach.

    Of the table it takes two arrays of 32-bit numbers, how many fit into each, an array for its report, and whether it is to be checked.

    begin, middle, end   of the list of each place: all neighbours, from `middle` on those with higher numbers
    """

    def __init__(self, frame: Frame, count: int, reach: Reach, dtype: Any):
        self.frame, self.count, self.dtype = frame, count, np.dtype(dtype)
        slack, self.skin = 1 + _SLACK[self.dtype.char], SKIN * reach.cutoff
        self.facts = ListFacts(count, frame.width, reach.cutoff, self.skin)
        self.near, self.far, self.sides = reach.cutoff * slack, (reach.cutoff * slack + self.skin) * slack, reach.box
        self._near_cells, self._list = Integers(frame.pointer()), Integers(frame.pointer())
        self._room, self._report, self._asked = frame.entry(), frame.pointer(), frame.entry()
        self._begin, self._middle, self._end, self._length, self._cursor = (Integers.room(frame, count) for _ in range(5))
        self._lowest, self._highest, self._stale = Integers.room(frame, count), Integers.room(frame, count), Integers.room(frame, 1)
        self.grid = CellGrid(frame, count, reach.box, self.far * slack, dtype)
        size = self.dtype.itemsize
        room = frame.workspace.room(count * len(reach.box) * size, permanent=True)
        self._before = Buffer(
            frame.workspace.base, (count, len(reach.box)), dtype, SAME, owner=room, start=room.offset // size, strides=(1, count), plain=True
        )
        self._made = frame.flag()

    # Keeping the list.

    def refresh(self, scope: Scope, x: Buffer) -> None:
        """Make the list anew if there is none, or if a body has moved half a skin since."""
        builder = scope.builder
        self._stale.put(builder, LONG(0), builder.zext(builder.not_(builder.load(self._made)), LONG))
        with scope.portions(self.count) as (part, _, first, after), part.items(self.count, first, after) as (inner, k, _):
            code = inner.code
            moved = self._square(code, [self._at(inner, x, k), self._at(inner, self._before, k)], (np.inf,) * len(self.sides))
            far = Mask(code, code.compare(">", moved, code.constant((self.skin / 2) ** 2, self.dtype))).somewhere()
            with builder.if_then(far, likely=False):
                self._stale.put(builder, LONG(0), LONG(1))  # whatever thread says so
        with builder.if_then(builder.icmp_signed("!=", self._stale.get(builder, LONG(0)), LONG(0))):
            self._make(scope.inside(), x)

    def _make(self, scope: Scope, x: Buffer) -> None:
        builder = scope.builder
        self.grid.sort(scope, x)
        self._find(scope)
        full = builder.load(self._told(builder, FULL))
        with builder.if_then(builder.icmp_signed("!=", full, LONG(0)), likely=False):
            builder.ret_void()  # to the caller, who makes room and begins again
        self._enter(scope)
        fill(scope, self._before, x)
        with builder.if_then(builder.icmp_signed("!=", builder.select(builder.load(self._made), LONG(0), self._asked), LONG(0))):
            self._check(scope.inside(), x)
        builder.store(ir.IntType(1)(1), self._made)

    def _find(self, scope: Scope) -> None:
        """Neighbours of each place, range by range of the cells around it. Each portion has an equal part of the memory."""
        builder, grid, width = scope.builder, self.grid, self.frame.width
        capacity = builder.mul(builder.sdiv(self._room, LONG(width * portions_of(self.count))), LONG(width))
        with scope.portions(self.count) as (portion, number, first, after):
            start, end = builder.mul(number, capacity), Counter(portion)
            limit = builder.add(start, capacity)
            end.set(builder, start)
            lowest, highest = Counter(portion), Counter(portion)
            with portion.loop(after, first) as (of_body, place):
                i, begin = grid.order.get(builder, place), end.get(builder)
                self._begin.put(builder, place, begin)
                lowest.set(builder, LONG(self.count))
                highest.set(builder, LONG(-1))
                mine = [value_of(of_body.code, grid.sorted.at(of_body, (axis, place))) for axis in range(len(self.sides))]
                with ExitStack() as stack:
                    beside, low, high = grid.around(of_body, grid.cell.get(builder, i), stack)
                    some = builder.icmp_signed("<", low, high)
                    lowest.set(
                        builder, builder.select(builder.and_(some, builder.icmp_signed("<", low, lowest.get(builder))), low, lowest.get(builder))
                    )
                    highest.set(
                        builder, builder.select(builder.and_(some, builder.icmp_signed(">", high, highest.get(builder))), high, highest.get(builder))
                    )
                    wanted = builder.add(end.get(builder), builder.add(builder.sub(high, low), LONG(4 * width)))
                    fits = builder.icmp_signed("<=", wanted, limit)
                    self._want(builder, fits, builder.mul(builder.sub(wanted, start), LONG(portions_of(self.count))))
                    with stepping(beside, low, builder.select(fits, high, low)) as (inner, p):
                        self._add_near(inner, mine, p, high, place, end)
                self._length.put(builder, place, builder.sub(end.get(builder), begin))
                self._lowest.put(builder, place, lowest.get(builder))
                self._highest.put(builder, place, highest.get(builder))
                end.set(builder, builder.add(rounded_up(builder, end.get(builder), width), LONG(width)))  # both parts of a list are filled up

    def _want(self, builder: ir.IRBuilder, fits: Value, room: Value) -> None:
        """Report how much room is wanted where a portion has too little. What was found is more or less evenly spread, and the rest is guessed."""
        with builder.if_then(builder.not_(fits), likely=False):
            builder.atomic_rmw("max", self._told(builder, FULL), room, "monotonic")

    def _told(self, builder: ir.IRBuilder, which: int) -> Value:
        return builder.bitcast(builder.gep(self._report, [LONG(8 * which)]), LONG.as_pointer())

    def _add_near(self, scope: Scope, mine: list, p: Value, after: Value, place: Value, end: Counter) -> None:
        """Those near among the next few in the order of cells."""
        builder, code, grid, width = scope.builder, scope.code, self.grid, self.frame.width
        others = [value_of(code, grid.sorted.at(scope, (axis, Span(p)))) for axis in range(len(mine))]
        numbers = builder.add(same(builder.trunc(p, WORD), builder, width), ir.Constant(ir.VectorType(WORD, width), list(range(width))))
        different = builder.icmp_signed("!=", numbers, same(builder.trunc(place, WORD), builder, width))
        there = builder.icmp_signed("<", numbers, same(builder.trunc(after, WORD), builder, width))
        near = self._within(code, self._square(code, [mine, others], self.sides), self.far)
        append(builder, self._near_cells, end, numbers, builder.and_(near, builder.and_(different, there)), numbers)

    def _enter(self, scope: Scope) -> None:
        """Body by body into the lists of its neighbours, as far as these belong to the range of places of a thread."""
        builder, grid = scope.builder, self.grid
        threads = self.frame.helpers(builder)
        with scope.parts(threads) as (part, which):
            share = lambda k: builder.sdiv(builder.mul(k, LONG(self.count)), threads)
            first, after = share(which), share(builder.add(which, LONG(1)))
            with part.loop(after, first) as (_, place):
                self._cursor.put(builder, place, self._begin.get(builder, place))
            with part.loop(self.count) as (of_body, j):
                place = grid.place.get(builder, j)
                mine = builder.and_(builder.icmp_signed(">=", place, first), builder.icmp_signed("<", place, after))
                with builder.if_then(mine):  # all with lower numbers are there
                    middle = self._padded(of_body.inside(), self._cursor.get(builder, place))
                    self._middle.put(builder, place, middle)
                    self._cursor.put(builder, place, middle)
                low, high = self._lowest.get(builder, place), self._highest.get(builder, place)
                with builder.if_then(builder.and_(builder.icmp_signed("<", low, after), builder.icmp_signed(">", high, first))):
                    begin = self._begin.get(builder, place)
                    with of_body.inside().loop(builder.add(begin, self._length.get(builder, place)), begin) as (_, q):
                        near = self._near_cells.get(builder, q)
                        with builder.if_then(builder.and_(builder.icmp_signed(">=", near, first), builder.icmp_signed("<", near, after))):
                            self._list.put(builder, self._cursor.raise_by_one(builder, near), place)
            with part.loop(after, first) as (of_place, place):
                self._end.put(builder, place, self._padded(of_place, self._cursor.get(builder, place)))

    def _padded(self, scope: Scope, end: Value) -> Value:
        """The next multiple of the width, up to which places without a body are written."""
        after = rounded_up(scope.builder, end, self.frame.width)
        with scope.loop(after, end) as (inner, q):
            self._list.put(inner.builder, q, LONG(self.count))
        return after

    @property
    def _nowhere(self) -> Value:
        return ir.Constant(ir.VectorType(WORD, self.frame.width), [self.count] * self.frame.width)

    # Using it.

    def body(self, builder: ir.IRBuilder, place: Value) -> Value:
        """The number of the body at a place."""
        return self.grid.order.get(builder, place)

    def find_row(self, scope: Scope, rows: Buffer, place: Value, row: Integers, lower: bool) -> Value:
        """The neighbours of the body at a place that have lower numbers, or higher ones, written to `row`, ascending: how many there are. `rows` are
        positions, place by place."""
        builder, width, end = scope.builder, self.frame.width, Counter(scope)
        mine, axes = self._at(scope, rows, place), len(self.sides)
        end.set(builder, LONG(0))
        begin, after = (self._begin, self._middle) if lower else (self._middle, self._end)
        with stepping(scope, begin.get(builder, place), after.get(builder, place)) as (inner, q):
            places = self._list.next(builder, q, width)
            others = [lane.value for lane in gathered(inner, rows, scattered(builder, places), axes)]
            near = self._within(inner.code, self._square(inner.code, [mine, others], self.sides), self.near)
            append(builder, row, end, places, near, self._nowhere)
        row.put_next(builder, end.get(builder), self._nowhere)
        return end.get(builder)

    def _at(self, scope: Scope, x: Buffer, k: Index) -> list[Value]:
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

    def _check(self, scope: Scope, x: Buffer) -> None:
        """Lists against what all pairs say: those of some four thousand bodies, and of more as many as take no longer."""
        builder, width = scope.builder, self.frame.width
        builder.store(LONG(1), self._told(builder, DONE))
        rows = max(1, min(self.count, CHECKED // self.count))
        counted, listed = Counter(scope), Counter(scope)
        with scope.loop(rows) as (of_row, number):
            i = builder.mul(number, LONG(self.count // rows))
            place, mine = self.grid.place.get(builder, i), self._at(of_row, x, i)
            near = lambda at, others: self._within(at.code, self._square(at.code, [mine, others], self.sides), self.near)
            counted.set(builder, LONG(0))
            listed.set(builder, LONG(0))
            with of_row.items(self.count) as (inner, k, fresh):
                different = builder.icmp_signed("!=", value_of(inner.code, inner.counted(k, np.int64)), inner.splat(i, np.int64).value)
                chosen = builder.and_(near(inner, self._at(inner, x, k)), different if fresh is None else builder.and_(different, fresh.value))
                counted.add(builder, number_of(builder, chosen))
            with stepping(of_row, self._begin.get(builder, place), self._end.get(builder, place)) as (inner, q):
                places = self._list.next(builder, q, width)
                there = builder.icmp_signed("!=", places, self._nowhere)
                bodies = scattered(builder, self._bodies(builder, places))
                listed.add(builder, number_of(builder, builder.and_(there, near(inner, self._at(inner, x, bodies)))))
            with builder.if_then(builder.icmp_signed("!=", counted.get(builder), listed.get(builder)), likely=False):
                builder.store(LONG(1), self._told(builder, WRONG))

    def _bodies(self, builder: ir.IRBuilder, places: Value) -> Value:
        """The bodies at places; the first one where there is none."""
        value: Any = ir.Constant(places.type, [0] * places.type.count)
        for lane in range(places.type.count):
            place = builder.zext(builder.extract_element(places, WORD(lane)), LONG)
            body = self.grid.order.get(builder, builder.select(builder.icmp_signed("<", place, LONG(self.count)), place, LONG(0)))
            value = builder.insert_element(value, builder.trunc(body, WORD), WORD(lane))
        return value
