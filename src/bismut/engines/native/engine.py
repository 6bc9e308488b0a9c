"""The native engine: a task as machine code, and how it is called.

A program copies the carries, which are few, and changes what watches remember in place.
"""

from __future__ import annotations

import ctypes
from array import array
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np
from llvmlite import ir

from bismut.engines.engine import Batch, Course, Lowered, Refusal, Schedule, Task
from bismut.engines.native import factorisations  # noqa: F401  registers its operations
from bismut.engines.native.batches import ColumnBatch, RowBatch, copy, room
from bismut.engines.native.list_memory import ListMemory, was_checked
from bismut.engines.native.loops import crowded, short_enough, write_advance, write_begin, write_watch
from bismut.engines.native.target import Machine, check, chosen_arithmetic, processor
from bismut.engines.native.thread_team import help_of
from bismut.engines.native.tracing import Programs, trace
from bismut.engines.split import alone
from bismut.errors import BismutError
from bismut.programs import Refused, closed_over, equations, operation_count
from bismut.programs.codegen.frame import Frame, TooLong
from bismut.programs.codegen.neighbours import ListFacts
from bismut.programs.codegen.parallel import SERVICE
from bismut.programs.codegen.walk import unknown

WIDTHS = {"float64": 16, "float32": 32}  # trajectories side by side: two wide registers, which hide each other's waiting
LONG_CODE = 6_500_000  # characters, for many trajectories: up to here LLVM takes 8 s at the most, with 9 million it took 41, with 12 million 77
LONG_PROGRAM = 12_000  # equations of a step: 8000 take 3 s to write, 4.9 million characters, and the time grows with their square
REMEDY = "sums over pairs or items are short where they are written with arrays, or as a pair_potential"
FEW = 4  # trajectories, which get vectors of their own width: 2.6 to 2.9 times faster than those of 16 lanes; 2 lanes measured alike, 8 give 1.9
# Where lanes are bodies, sums over bodies are sums over lanes, so that their number is no choice: bits depend on it.
OVER_BODIES = {"float64": 8, "float32": 16}


class Native:
    """Steps as machine code through LLVM, for the processor at hand; `width` trajectories side by side, by default those of a wide register;
    steps of more than `longest` scalar operations are refused, and those for which LLVM would take minutes, unless one is `patient`. The
    `arithmetic` is "fused" where the processor has that, unless "plain" is asked for."""

    name = "native"

    @property
    def machine(self) -> str:
        return processor()

    @property
    def arithmetic(self) -> str:
        return self._arithmetic

    def __init__(self, width: int | None = None, longest: int | None = None, patient: bool = True, arithmetic: str | None = None):
        self._width, self._longest, self._patient = width, longest, patient
        self._arithmetic = chosen_arithmetic(arithmetic)

    def lower(self, task: Task) -> Lowered | Refusal:
        written = self._write(task)
        if isinstance(written, Refusal):
            return written
        why, together = "one machine loop over trajectories", min(written.width, WIDTHS["float64"])
        if written.across:
            lists = {facts.description for needs in written.needs.values() for facts in needs.lists}
            why, together = f"one machine loop over bodies, near ones from a cell list ({'; '.join(sorted(lists))})", 1
        # Megabytes of code, used once: lowered tasks are kept by the dozen, and a second compilation writes it anew.
        ready = [written]

        def compiled() -> NativeProgram:
            try:
                code = ready.pop()
            except IndexError:  # another thread may have been faster, or the program was evicted since
                code = self._write(task)
            assert isinstance(code, Written), code
            return NativeProgram(task, code)

        return Lowered(self, compiled, why, together, written.operations)

    def _write(self, task: Task) -> Written | Refusal:
        written = self._written(task, self._width or WIDTHS[np.dtype(task.dtype).name])
        if isinstance(written, Refusal) or self._patient:
            return written
        length = self._widest_length(task, written)
        if length > LONG_CODE:
            why = f"its code would be {length / 1e6:.0f} MB long, for which LLVM takes half a minute or more; {REMEDY}"
            watches = (self._written(alone(task, watch), written.width) for watch in task.watches)
            return Refusal(why, together=length - LONG_CODE <= sum(len(one.text) for one in watches if isinstance(one, Written)))
        return written

    def _written(self, task: Task, width: int) -> Written | Refusal:
        return write(task, width, self._arithmetic, self._longest, self._patient)

    def _widest_length(self, task: Task, written: Written) -> int:
        """Characters of the code for many trajectories: with few, constants are shorter, and their number would decide which engine runs them. It is
        written only where the limit is not far off: it is longer by no more than the ratio of the widths."""
        widest, length = WIDTHS[np.dtype(task.dtype).name], len(written.text)
        if written.across or written.width >= widest or length > LONG_CODE or length * widest <= LONG_CODE * written.width:
            return length
        wide = self._written(task, widest)
        return len(wide.text) if isinstance(wide, Written) else length


class Needs(NamedTuple):
    """What a function wants: bytes of workspace, entries of the table, lists of neighbours; bytes of scratch memory for each thread that helps, None
    where none can."""

    workspace: int
    entries: int
    lists: list[ListFacts]
    scratch: int | None = None


class Written(NamedTuple):
    """A task as code that is not yet compiled; what each function wants; and how many operations a step has, its share of a draw included."""

    text: str
    needs: dict[str, Needs]
    programs: Programs
    width: int
    across: bool
    operations: int
    tables: dict[str, np.ndarray]  # large constants


def write(task: Task, width: int, arithmetic: str, longest: int | None = None, patient: bool = True, threads: bool = True) -> Written | Refusal:
    """The task as code, in which other `threads` may help where lanes are bodies."""
    try:
        programs = trace(task)
    except Refused as reason:
        return Refusal(f"there is no machine code for {reason}")
    except BismutError:  # it tells the user what to change
        raise
    except Exception as problem:  # whatever it is, XLA can be asked instead: where the user's own function fails, it fails there too
        return Refusal(f"its program could not be read ({type(problem).__name__}: {problem})")
    try:
        length = operation_count(programs.step.program)
        if longest is not None and length > longest:
            return Refusal(f"its step has {length} operations, more than {longest}", preferred=True)
        several = sum(1 for _ in equations(programs.step.program))
        if several > LONG_PROGRAM and not patient:
            return Refusal(f"its step is a list of {several} operations, which take minutes to compile, with XLA too; {REMEDY}")
        closed = [programs.begin, programs.step, programs.draw, *(part for pair in programs.watches for part in pair)]
        missing = sorted(set().union(*(unknown(part.program) for part in closed)))
        if missing:
            return Refusal(f"there is no machine code for {', '.join(missing)}")
        if any(closed_over(part.program) for part in closed):
            return Refusal("a function closes over a number that JAX traces")
        across = crowded(programs.step.program)
        width = OVER_BODIES[np.dtype(task.dtype).name] if across else width
        common = width, arithmetic == "fused", np.dtype(task.dtype), across, threads
        try:
            module, frames = _functions(task, programs, *common, short=not across and short_enough(programs))
        except TooLong:
            module, frames = _functions(task, programs, *common, short=False)
        text = str(module) + (SERVICE if across and threads else "")
        check(text)
    except Refused as reason:
        return Refusal(f"there is no machine code for {reason}")
    except Exception as problem:  # whatever it is, XLA can be asked instead
        return Refusal(f"its machine code could not be written ({type(problem).__name__}: {problem})")
    tables = {name: values for frame in frames for name, values in frame.tables.items()}
    facts = lambda frame: [near.facts for near in frame.lists.values()]
    needs = {f.function.name: Needs(f.size, f.entries, facts(f), None if f.team is None else f.scratch) for f in frames}
    return Written(text, needs, programs, width, across, length + operation_count(programs.draw.program) // task.per, tables)


def _functions(task: Task, programs: Programs, *common: Any, short: bool) -> tuple[ir.Module, list[Frame]]:
    """The functions of a program, with arrays written out where it is short."""
    module = ir.Module()
    frames = [
        write_advance(module, programs, task.per, *common, short=short),
        write_begin(module, programs, *common, short=short),
        write_watch(module, programs, *common, short=short),
    ]
    return module, frames


class SharedNumbers(NamedTuple):
    """What all trajectories of the last call shared, as arrays, and where these lie."""

    course: Course | None
    numbers: Any
    arrays: list[np.ndarray]
    addresses: list[int]


class NativeProgram:
    """Functions of the machine, and how they are called."""

    def __init__(self, task: Task, written: Written):
        self.programs, self.dtype, self.batches = written.programs, np.dtype(task.dtype), (RowBatch if written.across else ColumnBatch)(written.width)
        machine = Machine(written.text, tables=written.tables)
        self._functions = {name: (machine.function(name, ctypes.c_void_p), needs) for name, needs in written.needs.items()}
        self._serve = machine.function("serve", ctypes.c_void_p) if any(needs.scratch is not None for needs in written.needs.values()) else None
        self._list_memories = {name: [ListMemory(facts) for facts in needs.lists] for name, needs in written.needs.items()}
        self._unchecked = True  # a list of neighbours is checked once after a beginning
        self._state_tree = jax.tree.structure(task.state(self.programs.begin.structure.unflatten(self.programs.carry)))
        self._shared = SharedNumbers(None, None, [], [])

    # Calls.

    def _call(self, name: str, course: Course, numbers: Any, n: int, *entries: Any, threads: int = 1) -> bool:
        """Entries are whole numbers or arrays, in the order of the table. Whether all went well: if a list of neighbours was full, there is more
        room for it now, and the call is to be made again, with all that it changed as it was."""
        memories, shared = self._list_memories[name], self._shared
        if shared.numbers is not numbers or shared.course != course:
            shared = self._shared = self._known(course, numbers)
        lists = [memory.arguments(self._unchecked) for memory in memories]
        self._run(name, [self.batches.groups(n), n], shared, [*entries, *(x for arguments in lists for x in arguments)], threads)
        if not lists:
            return True
        fitted = [memory.settle(arguments) for memory, arguments in zip(memories, lists, strict=True)]
        self._unchecked = self._unchecked and not any(was_checked(arguments) for arguments in lists)
        return all(fitted)

    def _run(self, name: str, sizes: list[int], shared: SharedNumbers, own: list, threads: int = 1) -> None:
        """A function of the machine, called with its table: a workspace, the threads that help, and all that it reads and writes, as addresses or
        whole numbers."""
        function, needs = self._functions[name]
        workspace = room((needs.workspace,), np.uint8)
        with nullcontext() if needs.scratch is None else help_of(threads - 1, self._serve, needs.scratch) as team:
            helpers = [] if team is None else [_entry(team)]
            table = array("q", [_entry(workspace), *helpers, *sizes, *shared.addresses, *map(_entry, own)])
            assert len(table) == needs.entries, f"the table of {name} has {needs.entries} entries, {len(table)} came"
            function(table.buffer_info()[0])

    def _known(self, course: Course, numbers: Any) -> SharedNumbers:
        leaves = jax.tree.leaves(numbers)
        plain = [np.ascontiguousarray(np.asarray(leaf), aval.dtype) for leaf, aval in zip(leaves, self.programs.numbers, strict=True)]
        arrays = [np.array([course.h], self.dtype), np.array([course.t0], self.dtype), *plain]
        return SharedNumbers(course, numbers, arrays, [_entry(x) for x in arrays])

    # The interface of an engine.

    def places(self, count: int) -> int:
        return self.batches.places(count)

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        n, self._unchecked = self.batches.places(len(trajectories)), True
        given = [self.batches.filled(np.asarray(leaf), aval, n) for leaf, aval in zip(jax.tree.leaves(states), self.programs.state, strict=True)]
        carry = self.batches.empty(self.programs.carry, n)
        while not self._call("begin", course, numbers, n, step, *given, *carry):
            pass
        return Batch(np.asarray(trajectories, np.uint64), step, np.full(len(trajectories), -1, np.int64), carry)

    def watch(self, course: Course, numbers: Any, batch: Batch) -> Batch:
        n = self.batches.places(len(batch.trajectories))
        memory = [self.batches.memory(first.shapes, n) for first, _ in self.programs.watches]
        while any(memory) and not self._call("watch", course, numbers, n, batch.step, *batch.carry, *(c for part in memory for c in part)):
            pass
        return batch._replace(memory=memory)

    def advance(self, course: Course, numbers: Any, batch: Batch, schedule: Schedule) -> tuple[Batch, list]:
        ticks, stride, every, passed, first = schedule[:5]
        count, lead, after = len(batch.trajectories), any(first), passed + ticks * stride
        n = self.batches.places(count)
        carry = [copy(c) for c in batch.carry]
        failed = _filled(batch.failed, n)
        rows, entries = [], []
        for i, ((begin, look), each) in enumerate(zip(self.programs.watches, every, strict=True)):
            now = lead and first[i]
            left = 0 if now else each - passed % each if each else -1
            looks = int(now) + (after // each - passed // each if each else 0)
            assert not (each and ticks) or (each - passed % each) % stride == 0, "a stride passes over a look"
            assert not (each and now) or passed % each == 0, "a first look is out of turn"
            mine = batch.memory[i] if batch.memory is not None else self.batches.memory(begin.shapes, n)
            row = self.batches.empty(look.shapes[len(begin.shapes) :], n, looks)
            rows.append(row)
            entries += [each, left, *mine, *row]
        arguments = batch.step, int(lead), ticks, stride, course.phase, _filled(batch.trajectories, n), failed, *carry, *entries
        before = [copy(c) for part in batch.memory or () for c in part] if self._list_memories["advance"] else []
        if not self._call("advance", course, numbers, n, *arguments, threads=schedule.threads):
            for here, old in zip((c for part in batch.memory or () for c in part), before, strict=True):
                here[...] = old
            return self.advance(course, numbers, batch, schedule)
        new = Batch(batch.trajectories, batch.step + ticks * stride, failed[:count], carry, batch.memory)
        return new, [self._rows(i, row, count) for i, row in enumerate(rows)]

    def _rows(self, which: int, rows: list, count: int) -> Any:
        first, look = self.programs.watches[which]
        avals = look.shapes[len(first.shapes) :]
        leaves = [self.batches.shaped(x, aval, count) for x, aval in zip(rows, avals, strict=True)]
        result = look.structure.unflatten([*[None] * len(first.shapes), *leaves])
        return result[1]

    def states(self, batch: Batch) -> Any:
        leaves = [self.batches.shaped(batch.carry[i], self.programs.carry[i], len(batch.trajectories)) for i in self.programs.where]
        return self._state_tree.unflatten(leaves)

    def memory(self, batch: Batch, which: int) -> Any:
        first, _ = self.programs.watches[which]
        leaves = [self.batches.recalled(x, aval, len(batch.trajectories)) for x, aval in zip(batch.memory[which], first.shapes, strict=True)]
        return first.structure.unflatten(leaves)


def _entry(x: Any) -> int:
    return x.ctypes.data if isinstance(x, np.ndarray) else int(x)


def _filled(x: np.ndarray, n: int) -> np.ndarray:
    new = np.empty(n, x.dtype)
    new[: len(x)] = x
    new[len(x) :] = x[-1]
    return new
