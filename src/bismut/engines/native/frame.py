"""A function of the machine while it is being written.

    entry     small variables, which the compiler keeps in registers
    early     what is shared by all trajectories and never changes: computed once
    late      the loops over trajectories and steps

Everything early comes before everything late, so a value that is shared may be asked for anywhere. Arrays that do not fit into registers lie in a
workspace, whose size is known when the function is complete; one that nobody refers to any more gives its room back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.engines.native.arithmetic import emit
from bismut.engines.native.code import Code, Value, element
from bismut.engines.native.folding import compute, fold
from bismut.engines.native.lane import OWN, SAME, SHARED, Lane, constant, level_of
from bismut.engines.native.places import LONG, Index, Scattered, Span

IN_REGISTERS = 1024  # entries of arrays that are written out, where everything is
IN_LOOPS = 16  # and in a step over many bodies

BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()


class Room:
    """A part of the workspace, given back when it is forgotten."""

    def __init__(self, frame: Frame, offset: int, size: int, kept: bool):
        self.frame, self.offset, self.size, self.kept = frame, offset, size, kept

    def __del__(self):
        if not self.kept:
            self.frame.free.append((self.offset, self.size))


class Frame:
    """One function, void name(table), and what it needs while it is written. `table` holds addresses and whole numbers, 64 bits each.

    across  whether lanes are bodies of one trajectory instead of trajectories: outside loops over bodies they all hold the same
    lists   lists of neighbours that it keeps
    tables  large constants, by the names of the module
    """

    def __init__(self, module: ir.Module, name: str, width: int, fused: bool, across: bool = False):
        self.width, self.fused, self.across = width, fused, across
        self.lists: dict = {}
        self.tables: dict[str, np.ndarray] = {}
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), [LONG.as_pointer()]), name)
        self.function.attributes.add("nounwind")
        self._entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.early = Code(ir.IRBuilder(self.function.append_basic_block("early")), width, fused)
        self._late = self.function.append_basic_block("late")
        self.late = Code(ir.IRBuilder(self._late), width, fused)
        self.memo: dict = {}
        self.size = 0
        self.free: list[tuple[int, int]] = []
        self.entries = 0
        self.workspace = self.pointer()

    def entry(self) -> Value:
        """The next entry of the table."""
        address = self._entry.gep(self.function.args[0], [LONG(self.entries)])
        self.entries += 1
        return self._entry.load(address)

    def pointer(self) -> Value:
        return self._entry.inttoptr(self.entry(), POINTER)

    def slot(self, kind: ir.Type) -> Value:
        """A variable."""
        return self._entry.alloca(kind)

    def flag(self) -> Value:
        """A bit, which is not set where the function begins."""
        slot = self.slot(ir.IntType(1))
        self._entry.store(ir.IntType(1)(0), slot)
        return slot

    def room(self, size: int, shared: bool) -> Room:
        """So many bytes of the workspace. What is shared is written before all else, so its room is never used twice."""
        size = -(-size // 256) * 256
        if not shared:
            for i, (offset, length) in enumerate(self.free):
                if length >= size:
                    self.free[i : i + 1] = [(offset + size, length - size)] if length > size else []
                    return Room(self, offset, size, kept=False)
        offset, self.size = self.size, self.size + size
        return Room(self, offset, size, kept=shared)

    def close(self) -> None:
        self._entry.branch(self.early.builder.function.basic_blocks[1])
        self.early.builder.branch(self._late)
        self.late.builder.ret_void()


class Scope:
    """Where code is written: at the end of a block, knowing what was computed before it.

    small   entries up to which an array is written out as lanes; larger ones lie in memory
    hoists  whether what is shared is computed early
    wide    whether lanes may differ here
    """

    def __init__(self, frame: Frame, code: Code, small: int, parent: Scope | None = None, hoists: bool = True, wide: bool = False):
        self.frame, self.code, self.small, self.parent, self.hoists = frame, code, small, parent, hoists
        self.wide = wide or not frame.across
        self.memo: dict = {}

    @property
    def builder(self) -> ir.IRBuilder:
        return self.code.builder

    def inside(self) -> Scope:
        """A scope for a block that is not always reached: what is computed there is not known after it."""
        return Scope(self.frame, self.code, self.small, self, self.hoists, self.wide)

    def item(self) -> Scope:
        """A scope for one item of a loop over bodies or pairs, whose arrays fit into registers."""
        return Scope(self.frame, self.code, IN_REGISTERS, self, self.hoists, self.wide)

    def shared(self) -> Scope:
        """The scope in which what is shared is computed, by code that may loop; its results are relabelled by whoever asks."""
        return Scope(self.frame, self.frame.early, self.small, hoists=False)

    def lane(self, name: str, lanes: list, settings: dict | None = None) -> Any:
        """One operation on lanes; equal operations on the same lanes are one."""
        if all(map(constant, lanes)):
            return compute(name, lanes, settings or {})
        found = fold(name, lanes)
        if found is not None:
            return found
        key = (name, str(settings) if settings else "", *((lane.dtype.char, lane.tobytes()) if constant(lane) else id(lane) for lane in lanes))
        level = level_of(lanes)
        early = level == SHARED and self.hoists
        known = self.frame.memo.get(key) if early else self._known(key)
        if known is None:
            code = self.frame.early if early else self.code
            known = (
                emit(code, name, lanes, settings or {}, level if early else min(level, SAME)),
                lanes,
            )  # lanes are kept, so that an id stays theirs
            (self.frame.memo if early else self.memo)[key] = known
        return known[0]

    def _known(self, key: Any) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if key in scope.memo:
                return scope.memo[key]
            scope = scope.parent
        return None

    # Loops and branches.

    @contextmanager
    def loop(self, count: Index, start: Index = 0) -> Iterator[tuple[Scope, Value]]:
        """for i = start ... count − 1; gives the scope of the body and i."""
        builder = self.builder
        number = lambda i: LONG(i) if isinstance(i, int) else i
        before, head = builder.block, builder.append_basic_block("loop")
        body, after = builder.append_basic_block("body"), builder.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        i = builder.phi(LONG)
        i.add_incoming(number(start), before)
        builder.cbranch(builder.icmp_signed("<", i, number(count)), body, after)
        builder.position_at_end(body)
        yield self.inside(), i
        i.add_incoming(builder.add(i, LONG(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def items(self, count: int) -> Iterator[tuple[Scope, Index, Any]]:
        """For each of many items: the scope of the body, the item's number, and a mask of those that did not come before; None if none did.

        Where lanes are bodies, W items at once. The last W of them end with the last item, so that some may come a second time.
        """
        width = self.frame.width
        if self.wide or count < width:
            with self.loop(count) as (body, k):
                yield body, k, None
            return
        with self.loop(-(-count // width)) as (_, v):
            inner, builder, first = self.over_bodies(), self.builder, self.builder.mul(v, LONG(width))
            if count % width == 0:
                yield inner, Span(first), None
            else:
                last = LONG(count - width)
                k = Span(builder.select(builder.icmp_signed("<", first, last), first, last))
                yield inner, k, inner.lane("ge", [inner.counted(k, np.int64), inner.splat(first, np.int64)])

    def over_bodies(self) -> Scope:
        """A scope in which lanes are bodies."""
        return Scope(self.frame, self.code, self.small, self, self.hoists, wide=True)

    def splat(self, number: Value, dtype: Any, level: int = SAME) -> Lane:
        """One number of the machine in every lane."""
        kind = self.code.vector(dtype)
        alone = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.frame.width), [0] * self.frame.width)
        return Lane(self.builder.shuffle_vector(alone, ir.Constant(kind, ir.Undefined), zeros), dtype, level)

    def counted(self, index: Index, dtype: Any) -> Any:
        """An index as a lane."""
        if isinstance(index, int):
            return np.dtype(dtype).type(index)
        if isinstance(index, Scattered):
            value: Any = ir.Constant(self.code.vector(np.int64), ir.Undefined)
            for lane, place in enumerate(index.places):
                value = self.builder.insert_element(value, place, ir.Constant(ir.IntType(32), lane))
            number = Lane(value, np.int64, OWN)
        elif isinstance(index, Span):
            first = index.base if not isinstance(index.base, int) else LONG(index.base)
            ahead = ir.Constant(self.code.vector(np.int64), [index.step * lane for lane in range(self.frame.width)])
            number = Lane(self.builder.add(self.splat(first, np.int64).value, ahead), np.int64, OWN)
        else:
            number = self.splat(index, np.int64)
        return number if np.dtype(dtype) == np.int64 else self.lane("convert_element_type", [number], {"new_dtype": np.dtype(dtype)})


class Variable:
    """A lane that changes: a loop's carry, a sum. The compiler keeps it in a register."""

    def __init__(self, frame: Frame, dtype: Any):
        self.dtype = np.dtype(dtype)
        self.slot = frame.slot(ir.VectorType(element(dtype), frame.width))

    def get(self, scope: Scope, level: int = OWN) -> Lane:
        return Lane(scope.builder.load(self.slot), self.dtype, level if scope.wide else max(level, SAME))

    def set(self, scope: Scope, lane: Any) -> None:
        value = lane.value if isinstance(lane, Lane) else scope.code.constant(lane, self.dtype)
        scope.builder.store(value, self.slot)
