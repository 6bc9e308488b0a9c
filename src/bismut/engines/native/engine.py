"""The native engine: a task as machine code, and batches in memory.

A batch holds every leaf of its carries as an array (entries, n), trajectories side by side, n a multiple of the widest vector; places past the last
trajectory repeat it. A program copies the carries, which are few, and changes what watches remember in place.
"""

from __future__ import annotations

import ctypes
import threading
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from llvmlite import ir

from bismut.engines.engine import Batch, Course, Task
from bismut.engines.native import control, elementwise, indexing, linear, reducing, repeated, shaping  # noqa: F401  their rules are registered
from bismut.engines.native.loops import operations, write_advance, write_begin, write_watch
from bismut.engines.native.target import Machine, fuses, processor
from bismut.engines.native.tracing import Jaxprs, Traced, trace
from bismut.engines.native.walk import Refused, unknown

WIDTHS = {"float64": 8, "float32": 16}  # trajectories side by side: one wide register, or two narrow ones, which hide each other's waiting
LINE = 64  # bytes
PADDED = 16  # trajectories are filled up to a multiple of the widest vector


class Native:
    """Steps as machine code through LLVM, for the processor at hand; `width` trajectories side by side, by default those of a wide register;
    steps of more than `longest` scalar operations are refused."""

    name = "native"

    @property
    def machine(self) -> str:
        return processor()

    def __init__(self, width: int | None = None, longest: int | None = None):
        self._width, self._longest = width, longest
        self._last: tuple[Task, Written | str] | None = None
        self._lock = threading.Lock()

    def refusal(self, task: Task) -> str | None:
        """Why a task cannot be taken: what it has that there is no code for."""
        written = self._written(task)
        return written if isinstance(written, str) else None

    def compile(self, task: Task) -> NativeProgram:
        written = self._written(task)
        if isinstance(written, str):
            raise Refused(written)
        return NativeProgram(task, written)

    def _written(self, task: Task) -> Written | str:
        """The code of a task, or why there is none. Whoever asks first for the one is likely to ask for the other."""
        with self._lock:
            if self._last is None or self._last[0] is not task:
                self._last = (task, write(task, self._width or WIDTHS[np.dtype(task.dtype).name], self._longest))
            return self._last[1]


class Written(NamedTuple):
    """A task as code that is not yet compiled, and how many bytes of workspace and entries of the table each function wants."""

    text: str
    needs: dict[str, tuple[int, int]]
    jaxprs: Jaxprs
    width: int


def write(task: Task, width: int, longest: int | None = None) -> Written | str:
    jaxprs = trace(task)
    length = operations(jaxprs.step.jaxpr.jaxpr)
    if longest is not None and length > longest:
        return f"its step has {length} operations, more than {longest}"
    closed = [jaxprs.begin, jaxprs.step, jaxprs.draw, *(part for pair in jaxprs.watches for part in pair)]
    missing = sorted(set().union(*(unknown(part.jaxpr) for part in closed)))
    if missing:
        return f"there is no machine code for {', '.join(missing)}"
    if any(isinstance(value, Tracer) for part in closed for value in part.jaxpr.consts):
        return "a function closes over a number that JAX traces"
    module, common = ir.Module(), (width, fuses(), np.dtype(task.dtype))
    try:
        frames = [
            write_begin(module, jaxprs, *common),
            write_watch(module, jaxprs, *common),
            write_advance(module, jaxprs, task.per, *common),
        ]
    except Refused as reason:
        return f"there is no machine code for {reason}"
    return Written(str(module), {frame.function.name: (frame.size, frame.entries) for frame in frames}, jaxprs, width)


class NativeProgram:
    """Functions of the machine, and how they are called."""

    def __init__(self, task: Task, written: Written):
        self.jaxprs, self.width, self.dtype = written.jaxprs, written.width, np.dtype(task.dtype)
        machine = Machine(written.text)
        self._functions = {name: (machine.function(name, ctypes.c_void_p), *needs) for name, needs in written.needs.items()}
        self._state_tree = jax.tree.structure(task.example)
        self._numbers: tuple[Any, list] = (None, [])  # those of the last call, as NumPy arrays

    # Calls.

    def _call(self, name: str, course: Course, numbers: Any, n: int, *entries: Any) -> None:
        """Entries are whole numbers or arrays, in the order of the table."""
        function, size, count = self._functions[name]
        known = self._numbers
        if known[0] is not numbers:
            plain = [self._plain(leaf, aval) for leaf, aval in zip(jax.tree.leaves(numbers), self.jaxprs.numbers, strict=True)]
            known = self._numbers = numbers, plain
        real = lambda x: np.array([x], self.dtype)
        workspace = _room((size,), np.uint8)
        held = [workspace, n // self.width, n, real(course.h), real(course.t0), *known[1], *entries]
        table = np.array([_entry(x) for x in held], np.int64)
        assert len(table) == count, f"the table of {name} has {count} entries, {len(table)} came"
        function(table.ctypes.data)

    def _plain(self, leaf: Any, aval: Any) -> np.ndarray:
        return np.ascontiguousarray(np.asarray(leaf), dtype=aval.dtype)

    # The interface of an engine.

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        n = -(-len(trajectories) // PADDED) * PADDED
        given = [_column(np.asarray(leaf), aval, n) for leaf, aval in zip(jax.tree.leaves(states), self.jaxprs.state, strict=True)]
        carry = _columns(self.jaxprs.carry, n)
        self._call("begin", course, numbers, n, step, *given, *carry)
        return Batch(np.asarray(trajectories, np.uint64), step, np.full(len(trajectories), -1, np.int64), carry)

    def watch(self, course: Course, numbers: Any, batch: Batch) -> Batch:
        n = _width(batch)
        memory = [self._memory(first, n) for first, _ in self.jaxprs.watches]
        self._call("watch", course, numbers, n, batch.step, *batch.carry, *(c for part in memory for c in part))
        return batch._replace(memory=memory)

    def _memory(self, first: Traced, n: int) -> list[np.ndarray]:
        return [_room((n // self.width, aval.size, self.width), aval.dtype) for aval in first.shapes]

    def look(self, course: Course, numbers: Any, batch: Batch, due: tuple[bool, ...]) -> tuple[Batch, list]:
        return self._run(course, numbers, batch, 1, 0, [(1, 0) if mark else (0, -1) for mark in due], [int(mark) for mark in due])

    def advance(self, course: Course, numbers: Any, batch: Batch, ticks: int, stride: int, every: tuple[int, ...], passed: int) -> tuple[Batch, list]:
        turns, looks = [], []
        for each in every:
            left = each - passed % each if each else -1
            turns.append((each, left))
            looks.append(sum(1 for k in range(1, ticks + 1) if (passed + k * stride) % each == 0) if each else 0)
            assert not each or left % stride == 0, "a stride passes over a look"
        return self._run(course, numbers, batch, ticks, stride, turns, looks)

    def _run(self, course, numbers, batch: Batch, ticks: int, stride: int, turns: list, looks: list) -> tuple[Batch, list]:
        n = _width(batch)
        carry = [_copy(c) for c in batch.carry]
        failed = _filled(batch.failed, n)
        rows, entries = [], []
        for i, ((first, look), (each, left), count) in enumerate(zip(self.jaxprs.watches, turns, looks, strict=True)):
            mine = batch.memory[i] if batch.memory is not None else self._memory(first, n)
            seen = [_room((count, aval.size, n), aval.dtype) for aval in look.shapes[len(first.shapes) :]]
            rows.append(seen)
            entries += [each, left, *mine, *seen]
        self._call("advance", course, numbers, n, batch.step, ticks, stride, course.phase, _filled(batch.trajectories, n), failed, *carry, *entries)
        count = len(batch.trajectories)
        new = Batch(batch.trajectories, batch.step + ticks * stride, failed[:count], carry, batch.memory)
        return new, [self._rows(i, seen, count) for i, seen in enumerate(rows)]

    def _rows(self, which: int, seen: list, count: int) -> Any:
        first, look = self.jaxprs.watches[which]
        avals = look.shapes[len(first.shapes) :]
        leaves = [np.moveaxis(_shaped(x[..., :count], aval, lead=1), -1, 1) for x, aval in zip(seen, avals, strict=True)]
        whole = look.structure.unflatten([*[None] * len(first.shapes), *leaves])
        return whole[1]

    def states(self, batch: Batch) -> Any:
        count = len(batch.trajectories)
        leaves = [np.moveaxis(_shaped(batch.carry[i][:, :count], self.jaxprs.carry[i], lead=0), -1, 0) for i in self.jaxprs.where]
        return self._state_tree.unflatten(leaves)

    def memory(self, batch: Batch, which: int) -> Any:
        first, _ = self.jaxprs.watches[which]
        count = len(batch.trajectories)
        whole = lambda x, aval: np.moveaxis(x, 1, 2).reshape(-1, *aval.shape)[:count]
        return first.structure.unflatten([whole(x, aval) for x, aval in zip(batch.memory[which], first.shapes, strict=True)])


def _entry(x: Any) -> int:
    return x.ctypes.data if isinstance(x, np.ndarray) else int(x)


def _width(batch: Batch) -> int:
    return -(-len(batch.trajectories) // PADDED) * PADDED


def _columns(avals, n: int) -> list[np.ndarray]:
    return [_room((aval.size, n), aval.dtype) for aval in avals]


def _room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that begins where a line of the cache does, so that a vector lies in one line."""
    size = prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    return raw[first : first + size].view(dtype).reshape(shape)


def _copy(x: np.ndarray) -> np.ndarray:
    new = _room(x.shape, x.dtype)
    new[...] = x
    return new


def _column(leaf: np.ndarray, aval: Any, n: int) -> np.ndarray:
    """An array with trajectories first as (entries, n)."""
    flat = leaf.astype(aval.dtype, copy=False).reshape(leaf.shape[0], -1).T
    return np.ascontiguousarray(np.concatenate([flat, np.repeat(flat[:, -1:], n - leaf.shape[0], 1)], 1))


def _filled(x: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([x, np.repeat(x[-1:], n - len(x))])


def _shaped(x: np.ndarray, aval: Any, lead: int) -> np.ndarray:
    return x.reshape(*x.shape[:lead], *aval.shape, x.shape[-1])
