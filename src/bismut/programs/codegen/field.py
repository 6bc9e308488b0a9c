"""Arrays too large for registers: in memory, or given by a formula for one entry.

    Buffer   vectors (or, for what all trajectories share, numbers) in memory, read with strides: views cost nothing
    Formula  entry (i, j, ...) by code that is written where the entry is asked for; a chain of operations becomes one loop

An array of few entries is a NumPy array of lanes. `entry` reads either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Value, element
from bismut.programs.codegen.frame import IN_REGISTERS, Frame, Scope
from bismut.programs.codegen.indices import LONG, Index, Scattered, Span, plus, spread, times
from bismut.programs.codegen.lane import OWN, SAME, SHARED, Lane, array_of, constant, level_of, value_of

UNROLLED = 9  # entries of the last axes that are written out inside a loop: a matrix of a body


class Field:
    """An array by its entries."""

    shape: tuple[int, ...]
    dtype: np.dtype
    level: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def at(self, scope: Scope, index: Sequence[Index]) -> Any:
        """The lane of one entry."""
        raise NotImplementedError


class Writable(Field):
    """An array whose entries can be set."""

    def put(self, scope: Scope, index: Sequence[Index], lane: Any) -> None:
        raise NotImplementedError


class Formula(Field):
    """An array whose entries are computed where they are asked for."""

    def __init__(self, shape: Sequence[int], dtype: Any, level: int, entry: Callable[[Scope, Sequence[Index]], Any]):
        self.shape, self.dtype, self.level, self.entry = tuple(shape), np.dtype(dtype), level, entry
        self.reads: frozenset = frozenset()  # owners of the memory that it may read, noted by the walk
        self.depth = 1  # formulas within formulas, noted by the walk

    def at(self, scope, index):
        return self.entry(scope, index)


class Buffer(Writable):
    """Entries in memory: `base` an address, `owner` what must live as long, `start` and `strides` counted in entries; `spare` if nobody wants
    what is there any more, so that it may be written over."""

    spare = False
    values: np.ndarray | None = None  # where it is a table of constants

    def __init__(
        self, base: Value, shape: Sequence[int], dtype: Any, level: int, *, owner: Any = None, start: Index = 0, strides=None, plain: bool = False
    ):
        self.base, self.shape, self.dtype, self.level, self.owner = base, tuple(shape), np.dtype(dtype), level, owner
        self.start, self.plain = start, plain
        self.strides = contiguous(self.shape) if strides is None else tuple(strides)

    @property
    def is_contiguous(self) -> bool:
        """Whether entries follow each other without gaps."""
        return self.strides == contiguous(self.shape)

    def view(self, shape: Sequence[int], strides: Sequence[int], start: Index | None = None) -> Buffer:
        start = self.start if start is None else start
        return Buffer(self.base, shape, self.dtype, self.level, owner=self.owner, start=start, strides=strides, plain=self.plain)

    def spared(self) -> Buffer:
        """The same, to be written over."""
        same = self.view(self.shape, self.strides)
        same.spare = True
        return same

    def protected(self) -> Buffer:
        """The same, not to be written over."""
        return self.view(self.shape, self.strides) if self.spare else self

    def part(self, scope: Scope, index: Index) -> Buffer:
        """The array at one place of the first axis."""
        start = plus(scope.builder, self.start, times(scope.builder, index, self.strides[0]))
        return self.view(self.shape[1:], self.strides[1:], start)

    def place(self, scope: Scope, index: Sequence[Index]) -> Index:
        """How many entries lie before this one."""
        place = self.start
        for i, stride in zip(index, self.strides, strict=True):
            place = plus(scope.builder, place, times(scope.builder, i, stride))
        return place

    def address(self, scope: Scope, index: Sequence[Index]) -> Value:
        return self._pointer(scope, self.place(scope, index))

    def _pointer(self, scope: Scope, place: Index, together: bool = False) -> Value:
        """The address of one entry, or of as many plain ones together as there are lanes."""
        builder, width = scope.builder, scope.frame.width
        place = times(builder, place, max(self.dtype.itemsize, 1) * (1 if self.plain else width))
        kind = _kind(self.dtype) if self.plain and not together else ir.VectorType(_kind(self.dtype), width)
        return builder.bitcast(builder.gep(self.base, [LONG(place) if isinstance(place, int) else place]), kind.as_pointer())

    def at(self, scope, index):
        # What is shared can be read early only if its place is known early.
        early = self.level == SHARED and scope.hoists and isinstance(self.start, int) and all(isinstance(i, int) for i in index)
        if early:
            key = ("read", id(self.base), self.start, self.dtype.char, self.plain, tuple(zip(index, self.strides, strict=True)))
            known = scope.frame.memo.get(key)
            if known is None:
                known = scope.frame.memo[key] = (self._read(Scope(scope.frame, scope.frame.early, scope.small), index, SHARED), self.base)
            return known[0]
        return self._read(scope, index, min(self.level, SAME))

    def _read(self, scope: Scope, index: Sequence[Index], level: int) -> Lane:
        place, bit = self.place(scope, index), self.dtype == bool
        if spread(place):
            value, level = self._read_apart(scope, place), OWN
        else:
            value = scope.builder.load(self._pointer(scope, place), align=max(self.dtype.itemsize, 1))
            if self.plain:
                return Lane(scope.splat(scope.builder.trunc(value, ir.IntType(1)) if bit else value, self.dtype).value, self.dtype, level)
        return Lane(scope.builder.trunc(value, scope.code.vector(bool)) if bit else value, self.dtype, level)

    def _read_apart(self, scope: Scope, place: Span | Scattered) -> Value:
        """Plain entries, one for each lane."""
        assert self.plain, "only one number each can be read at places of their own"
        builder, align = scope.builder, max(self.dtype.itemsize, 1)
        if isinstance(place, Span) and place.step == 1:
            return builder.load(self._pointer(scope, place.base, together=True), align=align)
        value: Any = ir.Constant(ir.VectorType(_kind(self.dtype), scope.frame.width), ir.Undefined)
        for lane in range(scope.frame.width):
            one = builder.load(self._pointer(scope, place.of(builder, lane)), align=align)
            value = builder.insert_element(value, one, ir.Constant(ir.IntType(32), lane))
        return value

    def put(self, scope: Scope, index: Sequence[Index], lane: Any) -> None:
        value, builder, align = value_of(scope.code, lane, self.dtype), scope.builder, max(self.dtype.itemsize, 1)
        if self.dtype == bool:
            value = builder.zext(value, scope.code.vector(np.uint8))
        place = self.place(scope, index)
        together = isinstance(place, Span) and place.step == 1
        if not self.plain or together:
            builder.store(value, self._pointer(scope, place.base if together else place, together), align=align)
            return
        for k in range(scope.frame.width) if spread(place) else (0,):
            one = builder.extract_element(value, ir.Constant(ir.IntType(32), k))
            builder.store(one, self._pointer(scope, place.of(builder, k) if spread(place) else place), align=align)


Array = Any  # a NumPy array of lanes, or a Field


def reads(x: Array) -> frozenset:
    """Owners of the memory that is read where an entry is asked for."""
    if isinstance(x, Buffer):
        return frozenset((x.owner,))
    return x.reads if isinstance(x, Formula) else frozenset()


def depth(x: Array) -> int:
    """How many formulas stand within each other where an entry is asked for."""
    return x.depth if isinstance(x, Formula) else 0


def in_place(x: Array, of: Array) -> bool:
    """Whether two arrays are one place in memory."""
    if not (isinstance(x, Buffer) and isinstance(of, Buffer)):
        return False
    return x.owner is not None and x.owner is of.owner and (x.start, x.shape, x.strides) == (of.start, of.shape, of.strides)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def longest(shape: Sequence[int]) -> int:
    """The axis along which lanes lie."""
    return int(np.argmax(shape))


def lane_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides with entries of the longest axis side by side, and the others in order."""
    if not shape:
        return ()
    axis = longest(shape)
    others = contiguous([n for k, n in enumerate(shape) if k != axis])
    strides = [shape[axis] * stride for stride in others]
    strides.insert(axis, 1)
    return tuple(strides)


def _kind(dtype: np.dtype) -> ir.Type:
    return ir.IntType(8) if dtype.kind == "b" else element(dtype)


def array_level(array: Array) -> int:
    return array.level if isinstance(array, Field) else level_of(array.flat)


def entry(scope: Scope, array: Array, index: Sequence[Index]) -> Any:
    """One entry of either kind of array."""
    if isinstance(array, Field):
        return array.at(scope, index)
    if all(isinstance(i, int) for i in index):
        return array[tuple(index)]
    return stored(scope, array).at(scope, index)


def allocate(scope: Scope, shape: Sequence[int], dtype: Any, level: int, rows: bool = False) -> Buffer:
    """An array in the workspace, not yet written.

    Where all lanes are the same it holds plain numbers, along the longest axis side by side, or in the order of rows.
    """
    frame: Frame = scope.frame
    wide = scope.wide and not (frame.across and level >= SAME)
    size = max(np.dtype(dtype).itemsize, 1) * (frame.width if wide else 1)
    memory = frame.memory(scope.early)
    room = memory.room(int(np.prod(shape)) * size, permanent=scope.early)
    start = room.offset // size
    if wide:
        return Buffer(memory.base, shape, dtype, level, owner=room, start=start)
    strides = None if rows else lane_strides(shape)
    return Buffer(memory.base, shape, dtype, max(level, SAME), owner=room, start=start, strides=strides, plain=True)


def everywhere(scope: Scope, shape: Sequence[int], body: Callable[[Scope, tuple], None], index: tuple = ()) -> None:
    """body(scope, index) for every entry: loops over the first axes, and the last few written out."""
    if int(np.prod(shape)) <= UNROLLED:
        for rest in np.ndindex(*shape):
            body(scope, (*index, *rest))
        return
    with scope.loop(shape[0]) as (inner, i):
        everywhere(inner, shape[1:], body, (*index, i))


def throughout(scope: Scope, shape: Sequence[int], body: Callable[[Scope, tuple], None]) -> None:
    """body(scope, index) for every entry, with lanes along the longest axis where they are bodies. An entry may come twice, so that its body must not
    read what it writes."""
    if scope.wide or not shape or max(shape) < scope.frame.width:
        everywhere(scope, shape, body)
        return
    axis = longest(shape)
    rest = [n for k, n in enumerate(shape) if k != axis]
    with scope.portions(shape[axis]) as (part, _, first, after), part.items(shape[axis], first, after) as (inner, i, _):
        everywhere(inner, rest, lambda at, index: body(at, (*index[:axis], i, *index[axis:])))


def fill(scope: Scope, target: Writable, source: Array) -> None:
    """target ← source, entry by entry."""
    if not isinstance(source, Field) and not all(map(constant, source.flat)):
        for index in np.ndindex(*target.shape):
            target.put(scope, index, source[index])
        return
    # One by one between arrays that lie differently: the compiler is slow with many numbers at once that are not side by side.
    along_lanes = all(x.strides[longest(x.shape)] == 1 for x in (target, source) if isinstance(x, Buffer) and x.shape)
    over = throughout if along_lanes else everywhere
    over(scope, target.shape, lambda inner, index: target.put(inner, index, entry(inner, source, index)))


def stored(scope: Scope, array: Array) -> Buffer:
    """The array in memory, where it can be read at an index that is known only while the program runs."""
    if isinstance(array, Buffer):
        return array
    if not isinstance(array, Field):
        if all(map(constant, array.flat)):
            return table(scope.frame, np.array([lane.item() for lane in array.flat], lane_type(array)).reshape(array.shape))
        known = scope._known(("stored", id(array)))
        if known is not None:
            return known[0]
    level = array_level(array)
    early = level == SHARED and scope.hoists
    where = scope.shared() if early else scope
    shape, dtype = array.shape, array.dtype if isinstance(array, Field) else lane_type(array)
    new = allocate(where, shape, dtype, level if early else min(level, SAME))
    fill(where, new, array)
    if not isinstance(array, Field):
        scope.memo[("stored", id(array))] = (new, array)
    return new


def lane_type(array: np.ndarray) -> np.dtype:
    return np.dtype(array.flat[0].dtype)


def table(frame: Frame, values: np.ndarray) -> Buffer:
    """Constants in memory: few as numbers of the module, many where they are, which is told to the machine."""
    module = frame.function.module
    key = f"table.{values.dtype.char}{values.size}.{hashlib.sha256(values.tobytes()).hexdigest()}"
    name: Any = module.globals.get(key)
    if name is None:
        kind = ir.ArrayType(_kind(values.dtype), values.size)
        name = ir.GlobalVariable(module, kind, key)
        name.global_constant = True
        if values.size <= IN_REGISTERS:
            name.linkage = "internal"
            name.initializer = ir.Constant(kind, [float(v) if values.dtype.kind == "f" else int(v) for v in values.flat])
    if values.size > IN_REGISTERS:
        frame.tables[key] = np.ascontiguousarray(values)
    if key not in frame.memo:
        frame.memo[key] = name.bitcast(ir.IntType(8).as_pointer())
    numbers = Buffer(frame.memo[key], values.shape, values.dtype, SHARED, plain=True)
    numbers.values = values
    return numbers


def lanes(scope: Scope, array: Array) -> np.ndarray:
    """The array as lanes, all entries written out."""
    if not isinstance(array, Field):
        return array
    return array_of([array.at(scope, index) for index in np.ndindex(*array.shape)], array.shape)
