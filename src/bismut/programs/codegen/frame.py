"""A function of the machine while it is being written.

    entry     small variables, which the compiler keeps in registers
    early     what is shared by all trajectories and never changes: computed once
    late      the loops over trajectories and steps

Everything early comes before everything late, so a value that is shared may be asked for anywhere. Arrays that do not fit into registers lie in a
workspace, whose size is known when the function is complete; one that nobody refers to any more gives its room back.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Code, Value, element
from bismut.programs.codegen.indices import LONG, Index, Scattered, Span
from bismut.programs.codegen.lane import OWN, SAME, SHARED, Lane, constant, level_of
from bismut.programs.codegen.parallel import MOST, POINTER, OutlinedBody, share, team_size, written_apart
from bismut.programs.operation import lookup

IN_REGISTERS = 1024  # entries of arrays that are written out, where everything is
IN_LOOPS = 16  # and in a step over many bodies
# Instructions on lanes of a step that is written out, constants counted as below: about as many as `LONG_CODE` of the native engine admits, but
# independent of width and watches, which must not decide bits. Three rigid bonds have 11 000, an implicit step of 10 unknowns that all meet 44 000.
LONGEST = 45_000

PORTION = 128  # bodies: what is summed over bodies is summed over so many first, and by one thread
CONSTANT = 4  # instructions that a constant counts for: it is written once for each lane, and read from memory


class TooLong(Exception):
    """A step that is too long to be written out; with loops over arrays in memory it is not."""


class WorkspaceBlock:
    """A part of the workspace, given back when it is forgotten."""

    def __init__(self, memory: Memory, offset: int, size: int, permanent: bool):
        self.memory, self.offset, self.size, self.permanent = memory, offset, size, permanent

    def __del__(self):
        if not self.permanent:
            insort(self.memory.free, (self.offset, self.size))  # in their order in memory, whatever the order in which they are forgotten


class Memory:
    """Memory from an address on, which is given out block by block: the workspace of a function, or the scratch memory of a thread."""

    def __init__(self, base: Value):
        self.base, self.size = base, 0
        self.free: list[tuple[int, int]] = []

    def room(self, size: int, permanent: bool) -> WorkspaceBlock:
        """So many bytes. What is permanent is written before all else, so its room is never used twice."""
        size = -(-size // 256) * 256
        if not permanent:
            for i, (offset, length) in enumerate(self.free):
                if length >= size:
                    self.free[i : i + 1] = [(offset + size, length - size)] if length > size else []
                    return WorkspaceBlock(self, offset, size, permanent=False)
        offset, self.size = self.size, self.size + size
        return WorkspaceBlock(self, offset, size, permanent)


class Frame:
    """One function, void name(table), and what it needs while it is written. `table` holds addresses and whole numbers, 64 bits each.

    across  whether lanes are bodies of one trajectory instead of trajectories: outside loops over bodies they all hold the same
    short   whether arrays are written out, and loops over bodies too
    threads whether other threads may help with loops over bodies
    lists   lists of neighbours that it keeps
    tables  large constants, by the names of the module
    """

    def __init__(self, module: ir.Module, name: str, width: int, fused: bool, across: bool = False, short: bool = False, threads: bool = False):
        self.width, self.fused, self.across, self.short = width, fused, across, short
        self.written = 0  # instructions on lanes
        self.limit: int | None = None  # how many there may be
        self.lists: dict = {}
        self.tables: dict[str, np.ndarray] = {}
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), [LONG.as_pointer()]), name)
        self.function.attributes.add("nounwind")
        self._entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.early = Code(ir.IRBuilder(self.function.append_basic_block("early")), width, fused)
        self._late = self.function.append_basic_block("late")
        self.late = Code(ir.IRBuilder(self._late), width, fused)
        self.memo: dict = {}
        self.entries = 0
        self.workspace = Memory(self.pointer())
        self.team = self.pointer() if across and threads else None
        self.body: OutlinedBody | None = None  # that is being written
        self.scratch = 0  # bytes that a thread needs for a body
        # Where the scratch memory of the calling thread begins in the workspace, which is known at the end.
        self._behind: Any = ir.GlobalVariable(module, LONG, f"{name}.scratch")
        self._behind.linkage, self._behind.global_constant = "internal", True

    def entry(self) -> Value:
        """The next entry of the table."""
        address = self._entry.gep(self.function.args[0], [LONG(self.entries)])
        self.entries += 1
        return self._entry.load(address)

    def pointer(self) -> Value:
        return self._entry.inttoptr(self.entry(), POINTER)

    def slot(self, kind: ir.Type, early: bool = False) -> Value:
        """A variable."""
        return (self._entry if early or self.body is None else self.body.entry).alloca(kind)

    def flag(self) -> Value:
        """A bit, which is not set where the function begins."""
        slot = self.slot(ir.IntType(1))
        self._entry.store(ir.IntType(1)(0), slot)
        return slot

    def count(self, more: int = 1) -> None:
        """More instructions on lanes."""
        self.written += more
        if self.limit is not None and self.written > self.limit:
            raise TooLong

    @contextmanager
    def limited(self, limit: int | None) -> Iterator[None]:
        """TooLong where more than so many are written inside."""
        self.limit = None if limit is None else self.written + limit
        yield
        self.limit = None

    @property
    def size(self) -> int:
        """Bytes of workspace that the function needs, with scratch memory for one thread."""
        return self.workspace.size + self.scratch

    def memory(self, early: bool = False) -> Memory:
        """Where arrays lie that are not shared by all trajectories: a body keeps what it needs for a while in memory of its thread."""
        return self.workspace if early or self.body is None else self._scratch

    def helpers(self, builder: ir.IRBuilder) -> Value:
        """How many threads work together, about."""
        if self.team is None:
            return LONG(1)
        return team_size(builder, self.team)

    @contextmanager
    def shared_out(self, code: Code, parts: Value) -> Iterator[Value]:
        """So many parts, by whatever thread: the number of one, and code that goes on in its body."""
        with written_apart(code, self.function) as body:
            self.body, self._scratch = body, Memory(body.scratch)
            yield body.part
            self.body = None
        self.scratch = max(self.scratch, self._scratch.size)
        closure = body.close(code.builder, self._entry)
        own = code.builder.gep(self.workspace.base, [code.builder.load(self._behind)])
        share(code.builder, self.team, body, closure, parts, own)

    def close(self) -> None:
        self._entry.branch(self.early.builder.function.basic_blocks[1])
        self.early.builder.branch(self._late)
        self.late.builder.ret_void()
        self._behind.initializer = LONG(self.workspace.size)


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

    @property
    def writes_out(self) -> bool:
        """Whether items of loops over bodies are written out here, one after the other."""
        return self.frame.short and self.small >= IN_REGISTERS

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
        elementwise: Any = lookup(name)
        if all(map(constant, lanes)):
            return np.asarray(elementwise.compute(lanes, settings or {}))[()]
        folded = elementwise.fold and elementwise.fold(*lanes)
        if folded is not None:
            return folded
        key = (name, str(settings) if settings else "", *((lane.dtype.char, lane.tobytes()) if constant(lane) else id(lane) for lane in lanes))
        level = level_of(lanes)
        early = level == SHARED and self.hoists
        known = self.frame.memo.get(key) if early else self._known(key)
        if known is None:
            self.frame.count(1 + CONSTANT * sum(map(constant, lanes)))
            code = self.frame.early if early else self.code
            lane = elementwise.emit_lane(code, lanes, settings or {}, level if early else min(level, SAME))
            known = lane, lanes  # lanes are referred to, so that an id stays theirs
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

    @property
    def early(self) -> bool:
        """Whether what is shared is computed here."""
        return self.code is self.frame.early

    def slot(self, kind: ir.Type) -> Value:
        """A variable."""
        return self.frame.slot(kind, self.early)

    @contextmanager
    def parts(self, count: Value) -> Iterator[tuple[Scope, Value]]:
        """For each part, in whatever order and by whatever thread: the scope of the body, and its number. Nothing is carried from part to part."""
        if self.frame.team is None:  # no thread ever helps
            with self.loop(count) as (inner, k):
                yield inner, k
            return
        with self.frame.shared_out(self.code, count) as part:
            yield self.inside(), part

    @contextmanager
    def portions(self, count: int) -> Iterator[tuple[Scope, Value, Value, Value]]:
        """Many items, portion by portion: the scope of the body, the number of the portion, its first item, and the one after its last. Few are one
        portion, which is written in place."""
        if count <= PORTION or self.early or self.frame.body is not None:
            yield self.inside(), LONG(0), LONG(0), LONG(count)
            return
        with self.parts(LONG(portions_of(count))) as (body, part):
            first = body.builder.mul(part, LONG(PORTION))
            after = body.builder.add(first, LONG(PORTION))
            yield body, part, first, body.builder.select(body.builder.icmp_signed("<", after, LONG(count)), after, LONG(count))

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
    def items(self, count: int, first: Value | None = None, after: Value | None = None) -> Iterator[tuple[Scope, Index, Any]]:
        """For each of many items, or those of a portion: the scope of the body, the item's number, and a mask of those that did not come before; None
        if none did.

        Where lanes are bodies, W items at once. The last W of them end with the last item, so that some may come a second time.
        """
        width = self.frame.width
        whole = first is None or after is None
        if self.wide or count < width:
            with self.loop(LONG(count) if whole else after, LONG(0) if whole else first) as (body, k):
                yield body, k, None
            return
        builder = self.builder
        start, turns = (
            (LONG(0), LONG(-(-count // width)))
            if whole
            else (first, builder.sdiv(builder.add(builder.sub(after, first), LONG(width - 1)), LONG(width)))
        )
        with self.loop(turns) as (_, v):
            inner, place = self.over_bodies(), builder.add(start, builder.mul(v, LONG(width)))
            if count % width == 0:
                yield inner, Span(place), None
            else:
                last = LONG(count - width)
                k = Span(builder.select(builder.icmp_signed("<", place, last), place, last))
                yield inner, k, inner.lane("ge", [inner.counted(k, np.int64), inner.splat(place, np.int64)])

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

    def __init__(self, scope: Scope, dtype: Any):
        self.dtype = np.dtype(dtype)
        self.slot = scope.slot(ir.VectorType(element(dtype), scope.frame.width))

    def get(self, scope: Scope, level: int = OWN) -> Lane:
        return Lane(scope.builder.load(self.slot), self.dtype, level if scope.wide else max(level, SAME))

    def set(self, scope: Scope, lane: Any) -> None:
        value = lane.value if isinstance(lane, Lane) else scope.code.constant(lane, self.dtype)
        scope.builder.store(value, self.slot)


def portions_of(count: int) -> int:
    """How many portions so many items are."""
    assert count <= PORTION * MOST, f"{count} bodies are more than {PORTION * MOST}"
    return -(-count // PORTION)
