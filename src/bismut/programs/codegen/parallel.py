"""Work that the threads of one trajectory share out.

    for part = 0 ... n − 1, in any order and by any thread:   body(part)

A body is a function of its own (it is outlined, as OpenMP does), body(closure, part, scratch): what it reads of the code around it comes in a
closure, by value, and what it needs for a while lies in scratch memory of the thread. It writes to memory that belongs to its part alone, and nothing
is carried from part to part, so neither the number of threads nor their order decides a bit. A single thread calls it part by part.

Helping threads wait in `serve`, spinning, for a ticket: generation (24 bits), number of parts (20), next part (20), in one atomic number. To take a
part is one addition; since generation and part are one number, a late thread never takes a part of another loop. The caller waits for parts, not for
threads: one that never comes costs nothing. A team is an array of 64-bit numbers:

    0  ticket        8  parts done
    16 ...  function, closure, scratch of helpers, its size for each, how many came, whether to leave, how to yield, how many threads there are
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from bismut.programs.codegen.code import Value
from bismut.programs.codegen.indices import LONG

BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()
TEAM = 32  # numbers of a team
SCRATCH, SIZE, LEAVE, YIELD, THREADS = 18, 19, 21, 22, 23  # of them, those that the caller sets
MOST = 2**19  # parts

_ALIGNED = 16  # bytes: what every stack is

_BODY = ir.FunctionType(ir.VoidType(), [POINTER, LONG, POINTER])
_ELSEWHERE = ir.Module()  # of functions that are written below
_THREADS = ir.Function(_ELSEWHERE, ir.FunctionType(LONG, [POINTER]), "threads")
_SHARE = ir.Function(_ELSEWHERE, ir.FunctionType(ir.VoidType(), [POINTER, _BODY.as_pointer(), POINTER, LONG, POINTER]), "share")

SERVICE = """
define internal i64 @"threads"(ptr %team) nounwind {
  %nobody = icmp eq ptr %team, null
  br i1 %nobody, label %end, label %some
some:
  %place = getelementptr i64, ptr %team, i64 23
  %count = load i64, ptr %place
  br label %end
end:
  %n = phi i64 [1, %0], [%count, %some]
  ret i64 %n
}

define internal void @"share"(ptr %team, ptr %body, ptr %closure, i64 %n, ptr %scratch) nounwind {
  %nobody = icmp eq ptr %team, null
  %one = icmp sle i64 %n, 1
  %alone = or i1 %nobody, %one
  br i1 %alone, label %head, label %open
head:
  %k = phi i64 [0, %0], [%after, %turn]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %turn, label %end
turn:
  call void %body(ptr %closure, i64 %k, ptr %scratch)
  %after = add i64 %k, 1
  br label %head
open:
  %done = getelementptr i64, ptr %team, i64 8
  %function = getelementptr i64, ptr %team, i64 16
  %given = getelementptr i64, ptr %team, i64 17
  store ptr %body, ptr %function
  store ptr %closure, ptr %given
  store atomic i64 0, ptr %done monotonic, align 8
  %before = load atomic i64, ptr %team monotonic, align 8
  %old = lshr i64 %before, 40
  %generation = add i64 %old, 1
  %high = shl i64 %generation, 40
  %middle = shl i64 %n, 20
  %new = or i64 %high, %middle
  store atomic i64 %new, ptr %team release, align 8
  br label %take
take:
  %ticket = atomicrmw add ptr %team, i64 1 acq_rel
  %part = and i64 %ticket, 1048575
  %mine = icmp ult i64 %part, %n
  br i1 %mine, label %work, label %wait
work:
  call void %body(ptr %closure, i64 %part, ptr %scratch)
  %finished = atomicrmw add ptr %done, i64 1 acq_rel
  br label %take
wait:
  %spins = phi i64 [0, %take], [%spun, %still], [%spun, %lend]
  %spun = add i64 %spins, 1
  %ready = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %ready, %n
  br i1 %all, label %end, label %still
still:
  %few = and i64 %spun, 1023
  %long = icmp eq i64 %few, 0
  br i1 %long, label %lend, label %wait
lend:
  call void @yield(ptr %team)
  br label %wait
end:
  ret void
}

define internal void @yield(ptr %team) noinline nounwind {
  %place = getelementptr i64, ptr %team, i64 22
  %how = load ptr, ptr %place
  %none = icmp eq ptr %how, null
  br i1 %none, label %end, label %lend
lend:
  %told = call i32 %how()
  br label %end
end:
  ret void
}

define void @"serve"(ptr %table) nounwind {
  %first = load i64, ptr %table
  %team = inttoptr i64 %first to ptr
  %done = getelementptr i64, ptr %team, i64 8
  %function = getelementptr i64, ptr %team, i64 16
  %given = getelementptr i64, ptr %team, i64 17
  %memory = getelementptr i64, ptr %team, i64 18
  %room = getelementptr i64, ptr %team, i64 19
  %came = getelementptr i64, ptr %team, i64 20
  %leave = getelementptr i64, ptr %team, i64 21
  %me = atomicrmw add ptr %came, i64 1 acq_rel
  %base = load ptr, ptr %memory
  %size = load i64, ptr %room
  %offset = mul i64 %me, %size
  %scratch = getelementptr i8, ptr %base, i64 %offset
  br label %look
look:
  %spins = phi i64 [0, %0], [0, %work], [0, %take], [%spun, %idle], [%spun, %lend]
  %spun = add i64 %spins, 1
  %seen = load atomic i64, ptr %team acquire, align 8
  %next = and i64 %seen, 1048575
  %up = lshr i64 %seen, 20
  %parts = and i64 %up, 1048575
  %open = icmp ult i64 %next, %parts
  br i1 %open, label %take, label %rest
take:
  %ticket = atomicrmw add ptr %team, i64 1 acq_rel
  %part = and i64 %ticket, 1048575
  %high = lshr i64 %ticket, 20
  %n = and i64 %high, 1048575
  %mine = icmp ult i64 %part, %n
  br i1 %mine, label %work, label %look
work:
  %body = load ptr, ptr %function
  %closure = load ptr, ptr %given
  call void %body(ptr %closure, i64 %part, ptr %scratch)
  %finished = atomicrmw add ptr %done, i64 1 acq_rel
  br label %look
rest:
  %stop = load atomic i64, ptr %leave acquire, align 8
  %go = icmp ne i64 %stop, 0
  br i1 %go, label %end, label %idle
idle:
  %few = and i64 %spun, 1023
  %long = icmp eq i64 %few, 0
  br i1 %long, label %lend, label %look
lend:
  call void @yield(ptr %team)
  br label %look
end:
  ret void
}
"""


class OutlinedBody:
    """A body while it is written, a function of the module. Names are those of the function around it, so that a value of that one is called the same
    in here, where it is read from the closure.

    entry    where its variables are made
    part     its number
    scratch  memory of the thread
    """

    def __init__(self, outer: ir.Function):
        self._outer = outer
        self.function = ir.Function(outer.module, _BODY, outer.module.get_unique_name(f"{outer.name}.part"))
        self.function.linkage = "internal"
        self.function.attributes.add("nounwind")
        self.function.attributes.add("noinline")
        self.function.scope = outer.scope
        for argument in self.function.args:
            argument.name = "argument"
        self.closure, self.part, self.scratch = self.function.args
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._start = self.function.append_basic_block("start")

    @property
    def start(self) -> ir.Block:
        return self._start

    def close(self, builder: ir.IRBuilder, variables: ir.IRBuilder) -> Value:
        """What the body reads of the function around it, put into a closure by its `builder`, and read from there; `variables` are made elsewhere."""
        met = [x for block in self.function.blocks for instruction in block.instructions for x in _operands(instruction)]
        outside = {id(x): x for x in met if self._is_outside(x)}.values()
        variable = lambda x: isinstance(x, ir.AllocaInstr)
        written = {id(i.operands[1]) for block in self.function.blocks for i in block.instructions if isinstance(i, ir.StoreInstr)}
        assert not any(variable(x) and id(x) in written for x in outside), "a body carries nothing from part to part"
        if not outside:
            self.entry.branch(self._start)
            return ir.Constant(POINTER, None)
        kind = ir.LiteralStructType([x.allocated_type if variable(x) else x.type for x in outside])
        place: Any = variables.alloca(kind)
        place.align, zero = _ALIGNED, ir.IntType(32)(0)
        here = self.entry.bitcast(self.closure, kind.as_pointer())
        for k, x in enumerate(outside):
            field = lambda at, base, k=k: at.gep(base, [zero, ir.IntType(32)(k)])
            value = builder.load(x) if variable(x) else x
            builder.store(value, field(builder, place), align=_alignment(value.type))
            value = self.entry.load(field(self.entry, here), align=_alignment(value.type))
            if variable(x):
                copy = self.entry.alloca(x.allocated_type)
                self.entry.store(value, copy)
                value = copy
            value._name = x.name  # the name by which the body refers to it, set before any text is made
        self.entry.branch(self._start)
        return builder.bitcast(place, POINTER)

    def _is_outside(self, x: Any) -> bool:
        return (isinstance(x, ir.Instruction) and x.function is not self.function) or (isinstance(x, ir.Argument) and x.parent is self._outer)


def _alignment(kind: ir.Type) -> int | None:
    """That of a vector in a closure; None for what has its natural one."""
    if not isinstance(kind, ir.VectorType):
        return None
    bits = {"double": 64, "float": 32}.get(str(kind.element)) or kind.element.width
    return min(_ALIGNED, bits * kind.count // 8) if bits > 1 else None


def _operands(instruction: ir.Instruction) -> list:
    return [value for value, _ in instruction.incomings] if isinstance(instruction, ir.PhiInstr) else list(instruction.operands)


@contextmanager
def written_apart(code: Any, outer: ir.Function) -> Iterator[OutlinedBody]:
    """A body, into which `code` is written; afterwards it goes on where it was."""
    body, before = OutlinedBody(outer), code.builder.block
    code.builder.position_at_end(body.start)
    yield body
    code.builder.ret_void()
    code.builder.position_at_end(before)


def team_size(builder: ir.IRBuilder, team: Value) -> Value:
    """How many threads there are, the calling one included."""
    return builder.call(_THREADS, [team])


def share(builder: ir.IRBuilder, team: Value, body: OutlinedBody, closure: Value, parts: Value, scratch: Value) -> None:
    """All parts, by the calling thread and those of the team, if there is one."""
    builder.call(_SHARE, [team, body.function, closure, parts, scratch])
