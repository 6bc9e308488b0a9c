"""The native engine: a task as machine code, and how it is called.

A program copies the carries, which are few, and changes what watches remember in place.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from typing import Any, NamedTuple

import jax
import numpy as np
from llvmlite import ir

from bismut.engines.engine import Batch, Course, Task, TooLong
from bismut.engines.native import control, elementwise, indexing, linear, reducing, repeated, shaping  # noqa: F401  their rules are registered
from bismut.engines.native.batches import PADDED, Columns, Lines, copy, room
from bismut.engines.native.lists import Room, was_checked
from bismut.engines.native.loops import crowded, write_advance, write_begin, write_watch
from bismut.engines.native.neighbours import Facts
from bismut.engines.native.target import Machine, check, fuses, processor
from bismut.engines.native.tracing import Programs, trace
from bismut.engines.native.walk import unknown
from bismut.errors import BismutError
from bismut.programs import Refused, closed_over, operations

WIDTHS = {"float64": 16, "float32": 32}  # trajectories side by side: two wide registers, which hide each other's waiting
LONG_CODE = 6_500_000  # characters: up to here LLVM takes 8 s at the most, with 9 million it took 41, with 12 million 77
# Where lanes are bodies, sums over bodies are sums over lanes, so that their number is no choice: bits depend on it.
OVER_BODIES = {"float64": 8, "float32": 16}


class Native:
    """Steps as machine code through LLVM, for the processor at hand; `width` trajectories side by side, by default those of a wide register;
    steps of more than `longest` scalar operations are refused, and those for which LLVM would take minutes, unless one is `patient`."""

    name = "native"

    @property
    def machine(self) -> str:
        return processor()

    def __init__(self, width: int | None = None, longest: int | None = None, patient: bool = True):
        self._width, self._longest, self._patient = width, longest, patient
        self._last: tuple[Task, Written | str] | None = None
        self._lock = threading.Lock()

    def refusal(self, task: Task) -> str | None:
        """Why a task cannot be taken: what it has that there is no code for."""
        written = self._written(task)
        return written if isinstance(written, str) else None

    def manner(self, task: Task) -> tuple[str, int, int]:
        """How a task is run, in words, how many trajectories are advanced side by side, and how many operations a step of one has."""
        written = self._code(task)
        if not written.across:
            return "one machine loop over trajectories", PADDED, written.operations
        lists = {facts.words for *_, lists in written.needs.values() for facts in lists}
        return f"one machine loop over bodies, near ones from a cell list ({'; '.join(sorted(lists))})", 1, written.operations

    def compile(self, task: Task) -> NativeProgram:
        written = self._code(task, whole=True)
        program = NativeProgram(task, written)
        with self._lock:
            if self._last is not None and self._last[1] is written:
                self._last = task, written._replace(text="")  # megabytes, which nobody reads again, while many choices of an engine are remembered
        return program

    def _code(self, task: Task, whole: bool = False) -> Written:
        written = self._written(task, whole)
        if isinstance(written, str):
            raise Refused(written)
        return written

    def _written(self, task: Task, whole: bool = False) -> Written | str:
        """The code of a task, or why there is none. Whoever asks first for the one is likely to ask for the other. If it is wanted `whole`, its text
        is there: it is written again where it was compiled before, and since then forgotten by those who keep programs."""
        with self._lock:
            last = self._last
            if last is None or last[0] is not task or (whole and isinstance(last[1], Written) and not last[1].text):
                written = write(task, self._width or WIDTHS[np.dtype(task.dtype).name], self._longest)
                if isinstance(written, Written) and len(written.text) > LONG_CODE and not self._patient:
                    written = f"its code would be {len(written.text) / 1e6:.0f} MB long, for which LLVM takes half a minute or more; "
                    written += "sums over pairs or items are short where they are written with arrays, or as a pair_potential"
                last = self._last = (task, written)
            return last[1]


class Written(NamedTuple):
    """A task as code that is not yet compiled; how many bytes of workspace, entries of the table and lists of neighbours each function wants; and how
    many operations a step has, its share of a draw included."""

    text: str
    needs: dict[str, tuple[int, int, list[Facts]]]
    programs: Programs
    width: int
    across: bool
    operations: int
    tables: dict[str, np.ndarray]  # large constants


def write(task: Task, width: int, longest: int | None = None) -> Written | str:
    try:
        programs = trace(task)
    except Refused as reason:
        return f"there is no machine code for {reason}"
    except BismutError:  # it tells the user what to change
        raise
    except Exception as problem:  # whatever it is, XLA can be asked instead: where the user's own function fails, it fails there too
        return f"its program could not be read ({type(problem).__name__}: {problem})"
    length = operations(programs.step.program)
    if longest is not None and length > longest:
        return TooLong(f"its step has {length} operations, more than {longest}")
    closed = [programs.begin, programs.step, programs.draw, *(part for pair in programs.watches for part in pair)]
    missing = sorted(set().union(*(unknown(part.program) for part in closed)))
    if missing:
        return f"there is no machine code for {', '.join(missing)}"
    if any(closed_over(part.program) for part in closed):
        return "a function closes over a number that JAX traces"
    across = crowded(programs.step.program)
    width = OVER_BODIES[np.dtype(task.dtype).name] if across else width
    module, common = ir.Module(), (width, fuses(), np.dtype(task.dtype), across)
    try:
        frames = [
            write_begin(module, programs, *common),
            write_watch(module, programs, *common),
            write_advance(module, programs, task.per, *common),
        ]
        text = str(module)
        check(text)
    except Refused as reason:
        return f"there is no machine code for {reason}"
    except Exception as problem:  # whatever it is, XLA can be asked instead
        return f"its machine code could not be written ({type(problem).__name__}: {problem})"
    tables = {name: values for frame in frames for name, values in frame.tables.items()}
    needs = {frame.function.name: (frame.size, frame.entries, [near.facts for near in frame.lists.values()]) for frame in frames}
    return Written(text, needs, programs, width, across, length + operations(programs.draw.program) // task.per, tables)


class Shared(NamedTuple):
    """What all trajectories of the last call shared, as arrays, and where these lie."""

    course: Course | None
    numbers: Any
    arrays: list[np.ndarray]
    addresses: list[int]


class NativeProgram:
    """Functions of the machine, and how they are called."""

    def __init__(self, task: Task, written: Written):
        self.programs, self.dtype, self.batches = written.programs, np.dtype(task.dtype), (Lines if written.across else Columns)(written.width)
        machine = Machine(written.text, tables=written.tables)
        self._functions = {name: (machine.function(name, ctypes.c_void_p), *needs) for name, needs in written.needs.items()}
        self._rooms = {name: [Room(facts) for facts in lists] for name, (_, _, lists) in written.needs.items()}
        self._unchecked = True  # a list of neighbours is checked once after a beginning
        self._state_tree = jax.tree.structure(task.state(self.programs.begin.structure.unflatten(self.programs.carry)))
        self._shared = Shared(None, None, [], [])

    # Calls.

    def _call(self, name: str, course: Course, numbers: Any, n: int, *entries: Any) -> bool:
        """Entries are whole numbers or arrays, in the order of the table. Whether all went well: if a list of neighbours was full, there is more
        room for it now, and the call is to be made again, with all that it changed as it was."""
        function, size, count, lists = self._functions[name]
        shared = self._shared
        if shared.numbers is not numbers or shared.course != course:
            shared = self._shared = self._known(course, numbers)
        workspace = room((size,), np.uint8)
        shelves = [self._rooms[name][k].shelf(self._unchecked) for k in range(len(lists))]
        own = [*entries, *(x for shelf in shelves for x in shelf)]
        table = array("q", [_entry(workspace), self.batches.groups(n), n, *shared.addresses, *map(_entry, own)])
        assert len(table) == count, f"the table of {name} has {count} entries, {len(table)} came"
        function(table.buffer_info()[0])
        if not lists:
            return True
        fitted = [room.settle(shelf) for room, shelf in zip(self._rooms[name], shelves, strict=True)]
        self._unchecked = self._unchecked and not any(was_checked(shelf) for shelf in shelves)
        return all(fitted)

    def _known(self, course: Course, numbers: Any) -> Shared:
        leaves = jax.tree.leaves(numbers)
        plain = [np.ascontiguousarray(np.asarray(leaf), aval.dtype) for leaf, aval in zip(leaves, self.programs.numbers, strict=True)]
        arrays = [np.array([course.h], self.dtype), np.array([course.t0], self.dtype), *plain]
        return Shared(course, numbers, arrays, [_entry(x) for x in arrays])

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

    def advance(
        self,
        course: Course,
        numbers: Any,
        batch: Batch,
        ticks: int,
        stride: int,
        every: tuple[int, ...],
        passed: int,
        first: tuple[bool, ...] = (),
    ) -> tuple[Batch, list]:
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
            seen = self.batches.empty(look.shapes[len(begin.shapes) :], n, looks)
            rows.append(seen)
            entries += [each, left, *mine, *seen]
        given = batch.step, int(lead), ticks, stride, course.phase, _filled(batch.trajectories, n), failed, *carry, *entries
        remembered = [copy(c) for part in batch.memory or () for c in part] if self._rooms["advance"] else []
        if not self._call("advance", course, numbers, n, *given):
            for here, before in zip((c for part in batch.memory or () for c in part), remembered, strict=True):
                here[...] = before
            return self.advance(course, numbers, batch, ticks, stride, every, passed, first)
        new = Batch(batch.trajectories, batch.step + ticks * stride, failed[:count], carry, batch.memory)
        return new, [self._rows(i, seen, count) for i, seen in enumerate(rows)]

    def _rows(self, which: int, seen: list, count: int) -> Any:
        first, look = self.programs.watches[which]
        avals = look.shapes[len(first.shapes) :]
        leaves = [self.batches.shaped(x, aval, count) for x, aval in zip(seen, avals, strict=True)]
        whole = look.structure.unflatten([*[None] * len(first.shapes), *leaves])
        return whole[1]

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
