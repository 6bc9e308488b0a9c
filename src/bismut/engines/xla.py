"""The task through jit(vmap): for GPUs and other accelerators, for what the native engine does not know, and as its judge.

Trajectories are padded to one width, chosen when the program is made, so that the last, smaller block of a run compiles nothing again; more than that
many are taken in pieces. Two programs are compiled: one that begins, and one that advances and looks.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.engines.engine import Batch, Course, Lowered, Schedule, Task, consecutive_rows
from bismut.noise import numpy_counter

log = logging.getLogger(__name__)

_ROWS = 64  # looks that one call keeps
_BYTES = 2**24  # of rows that one call keeps


class Piece(NamedTuple):
    """As many trajectories as the program is wide: how many of them are real, their numbers, where they are, and the step since the beginning at
    which each ceased to be finite."""

    real: int
    index: Any
    carry: Any
    memory: Any
    failed: Any


class Pieces(NamedTuple):
    """All of a batch, and the step at which it began."""

    first: int
    each: tuple[Piece, ...]


@dataclass(frozen=True)
class Xla:
    """XLA, whatever the device; `width` is the number of trajectories of one piece."""

    width: int = 2048
    name = "xla"

    @property
    def machine(self) -> str:
        return f"{jax.devices()[0].device_kind}, XLA"

    @property
    def arithmetic(self) -> str:
        return self.machine  # how XLA rounds is its own affair: nothing is promised from one machine to another

    def lower(self, task: Task) -> Lowered:
        return Lowered(self, lambda: XlaProgram(task, self.width), "asked for")


class XlaProgram:
    """A task as two compiled functions."""

    def __init__(self, task: Task, width: int):
        self.task, self.width = task, width
        self._step = jax.jit(task.step)  # traced once, wherever it stands
        self._start, self._run = jax.jit(self._begun), jax.jit(self._advanced)
        self._compiling, self._known = threading.Lock(), set()

    # What is compiled.

    def _begun(self, numbers, h, t0, k, states):
        t = t0 + h * _real(k, self.task.dtype)
        carry = jax.vmap(lambda state: self.task.begin(state, t, numbers))(states)
        memory = tuple(jax.vmap(lambda state, w=watch: w.begin(state, t, numbers))(states) for watch in self.task.watches)
        return carry, memory

    def _advanced(self, numbers, h, t0, phase, index, k, since, carry, memory, failed, ticks, stride, every, passed):
        """`ticks` times `stride` steps from step k, which is `since` after the beginning."""
        task = self.task
        place = lambda k: (k[0] + phase) % np.uint32(task.per)

        def one(dW, word, now):
            carry, failed, k, since = now
            t = t0 + h * _real(k, task.dtype)
            carry = jax.vmap(lambda c, w: self._step(c, w, h, t, numbers))(carry, dW[:, word])
            lost = (failed < 0) & ~jax.vmap(_finite)(task.state(carry))
            return carry, jnp.where(lost, since, failed), _next(k), since + 1

        def group(end, now):
            """The steps that share a draw, up to before `end`."""
            dW = jax.vmap(lambda i: task.draw(i, now[2], h, numbers))(index)
            first = place(now[2]).astype(jnp.int32)
            last = jnp.minimum(first + end - now[3], task.per)
            return jax.lax.fori_loop(first, last, lambda word, now: one(dW, word, now), now)

        def tick(_, carried):
            now, memory, rows, passed = carried
            end = now[3] + stride
            now = jax.lax.while_loop(lambda now: now[3] < end, lambda now: group(end, now), now)
            passed = passed + stride
            t = t0 + h * _real(now[2], task.dtype)
            looked = [
                self._look(i, watch, task.state(now[0]), t, numbers, memory[i], rows[i], every[i], passed) for i, watch in enumerate(task.watches)
            ]
            return now, tuple(m for m, _ in looked), tuple(r for _, r in looked), passed

        states = task.state(carry)
        blank = tuple(self._blank(watch, states, t0, numbers, m) for watch, m in zip(task.watches, memory, strict=True))
        (carry, failed, _, _), memory, rows, _ = jax.lax.fori_loop(0, ticks, tick, ((carry, failed, k, since), memory, blank, passed))
        return carry, memory, failed, rows

    def _look(self, i, watch, states, t, numbers, memory, rows, every, passed):
        def look(both):
            memory, (number, stored) = both
            memory, row = jax.vmap(lambda m, state: watch.look(m, state, t, numbers))(memory, states)
            return memory, (number + 1, jax.tree.map(lambda all_, new: all_.at[number].set(new), stored, row))

        due = (every > 0) & (passed % jnp.maximum(every, 1) == 0)
        return jax.lax.cond(due, look, lambda both: both, (memory, rows))

    def _blank(self, watch, states, t, numbers, memory):
        _, row = jax.eval_shape(jax.vmap(lambda m, state: watch.look(m, state, t, numbers)), memory, states)
        return jnp.zeros((), jnp.int32), jax.tree.map(lambda leaf: jnp.zeros((self._room(row), *leaf.shape), leaf.dtype), row)

    @staticmethod
    def _room(row) -> int:
        """How many looks one call keeps."""
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(row))
        return int(max(1, min(_ROWS, _BYTES // max(size, 1))))

    # What is called.

    def places(self, count: int) -> int:
        return -(-count // self.width) * self.width

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        trajectories = np.asarray(trajectories, np.uint64)
        pieces = []
        for first in range(0, len(trajectories), self.width):
            part = slice(first, first + self.width)
            few = jax.tree.map(lambda leaf, part=part: self._padded(leaf if len(leaf) == 1 else np.asarray(leaf)[part]), states)
            carry, memory = self._call(self._start, numbers, *self._clock(course), numpy_counter(step), few)
            index = self._padded(trajectories[part])
            pieces.append(Piece(len(trajectories[part]), numpy_counter(index), carry, memory, np.full(self.width, -1, np.int32)))
        return self._batch(trajectories, step, Pieces(step, tuple(pieces)), None)

    def watch(self, course: Course, numbers: Any, batch: Batch) -> Batch:
        restart = lambda piece: self._call(self._start, numbers, *self._clock(course), numpy_counter(batch.step), self.task.state(piece.carry))[1]
        each = tuple(piece._replace(memory=restart(piece)) for piece in batch.carry.each)
        return self._batch(batch.trajectories, batch.step, batch.carry._replace(each=each), True)

    def advance(self, course: Course, numbers: Any, batch: Batch, schedule: Schedule) -> tuple[Batch, list]:
        """A look before the first step is a tick without steps."""
        parts: list = []
        if any(schedule.first):
            batch, rows = self._ticks(course, numbers, batch, Schedule(1, 0, tuple(map(int, schedule.first)), 0))
            parts.append(rows)
        if schedule.ticks or not parts:
            batch, rows = self._ticks(course, numbers, batch, schedule)
            parts.append(rows)
        return batch, [consecutive_rows(rows) for rows in zip(*parts, strict=True)]

    def _ticks(self, course: Course, numbers: Any, batch: Batch, schedule: Schedule) -> tuple[Batch, list]:
        every, since = schedule.every, batch.step - batch.carry.first
        pieces, parts = zip(*(self._piece(course, numbers, batch.step, since, piece, schedule) for piece in batch.carry.each), strict=True)
        rows = [jax.tree.map(lambda *parts: np.concatenate(parts, 1), *watch) if any(every) else () for watch in zip(*parts, strict=True)]
        step = batch.step + schedule.ticks * schedule.stride
        batch = self._batch(batch.trajectories, step, batch.carry._replace(each=pieces), batch.memory)
        return batch, [row if due else () for row, due in zip(rows, every, strict=True)]

    def _piece(self, course: Course, numbers: Any, step: int, since: int, piece: Piece, schedule: Schedule) -> tuple[Piece, list]:
        every, stride = schedule.every, schedule.stride
        rows_of: list[list] = [[] for _ in every]
        looking = [e for e in every if e]
        most = max(1, self._most * min(looking) // max(stride, 1)) if looking else schedule.ticks
        while True:
            now = min(schedule.ticks, most)
            data = (np.uint32(course.phase), piece.index, numpy_counter(step), np.int32(since), piece.carry, piece.memory, piece.failed)
            amounts = (np.int32(now), np.int32(stride), np.asarray(every, np.int32), np.int32(schedule.passed))
            carry, memory, failed, rows = self._call(self._run, numbers, *self._clock(course), *data, *amounts)
            piece = piece._replace(carry=carry, memory=memory, failed=failed)
            for mine, (number, row) in zip(rows_of, rows, strict=True):
                mine.append(jax.tree.map(lambda leaf, n=int(number), real=piece.real: np.asarray(leaf)[:n, :real], row))
            schedule, step, since = schedule.after(now), step + now * stride, since + now * stride
            if not schedule.ticks:
                return piece, [jax.tree.map(lambda *parts: np.concatenate(parts), *mine) for mine in rows_of]

    def states(self, batch: Batch) -> Any:
        return self._joined(batch, lambda piece: self.task.state(piece.carry))

    def memory(self, batch: Batch, which: int) -> Any:
        return self._joined(batch, lambda piece: piece.memory[which])

    def _joined(self, batch: Batch, of) -> Any:
        parts = [jax.tree.map(lambda leaf, n=piece.real: np.asarray(leaf)[:n], of(piece)) for piece in batch.carry.each]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def _batch(self, trajectories, step: int, pieces: Pieces, memory) -> Batch:
        failed = np.concatenate([np.asarray(piece.failed[: piece.real]) for piece in pieces.each]).astype(np.int64)
        return Batch(trajectories, step, np.where(failed < 0, -1, failed + pieces.first), pieces, memory)

    def _call(self, function, *arguments):
        """A call; the first on each device alone, so that threads do not compile the same thing twice."""
        place = function, jax.config.values["jax_default_device"]
        if place in self._known:
            return function(*arguments)
        with self._compiling:
            clock = time.perf_counter()
            result = function(*arguments)
            log.debug("XLA compiled and ran %s in %.2f s", getattr(function, "__name__", "a program").strip("_"), time.perf_counter() - clock)
            self._known.add(place)
        return result

    def _clock(self, course: Course):
        return np.asarray(course.h, self.task.dtype), np.asarray(course.t0, self.task.dtype)

    def _padded(self, leaf: np.ndarray) -> np.ndarray:
        missing = self.width - len(leaf)
        return np.concatenate([leaf, np.broadcast_to(leaf[-1:], (missing, *leaf.shape[1:]))]) if missing else leaf

    @property
    def _most(self) -> int:
        """Looks that fit into one call, over all watches."""
        if not hasattr(self, "_looks"):
            task, watches = self.task, self.task.watches
            many = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((self.width, *leaf.shape), leaf.dtype), task.example)
            t = jax.ShapeDtypeStruct((), task.dtype)

            def row(watch):
                one = lambda state, t, numbers: watch.look(watch.begin(state, t, numbers), state, t, numbers)[1]
                return jax.eval_shape(jax.vmap(one, (0, None, None)), many, t, task.numbers)

            self._looks = min([self._room(row(watch)) for watch in watches], default=_ROWS)
        return self._looks


def _real(k, dtype):
    return k[0].astype(dtype) + jnp.asarray(2.0**32, dtype) * k[1].astype(dtype)


def _next(k):
    low = k[0] + np.uint32(1)
    return low, k[1] + (low == 0).astype(jnp.uint32)


def _finite(state):
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]).all()
