"""Steps by the native engine; what it has no code for is made by XLA from the states that it records.

    native   (state, t) at every look, as the row of a watch that it cannot take
    XLA      (memory, state, t) ↦ (memory, row), look by look, for all trajectories of a batch at once

So an observer never decides who makes the steps. This is the one place where watches are shared out between engines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.engines.engine import Batch, Course, Executable, Schedule, Task, Watch, consecutive_rows

_BYTES = 2**24  # of states that are recorded before they are looked at
_LEAST = 16  # trajectories for which XLA's code is made


class Memories(NamedTuple):
    """What the watches of each engine remember; those of XLA with trajectories along the first axis, by their places among all."""

    native: Any
    others: dict[int, Any]


def recorded(task: Task, others: tuple[int, ...]) -> Task:
    """The task with watches that record states in place of some."""
    record = Watch(lambda state, t, numbers: (), lambda memory, state, t, numbers: ((), (state, t)))
    return task._replace(watches=tuple(record if i in others else watch for i, watch in enumerate(task.watches)))


def alone(task: Task, watch: Watch) -> Task:
    """A task that only looks: it tells whether an engine has code for a watch."""
    still = lambda carry, dW, h, t, numbers: carry
    nothing = lambda trajectory, k, h, numbers: np.zeros((1, 0), task.dtype)
    return task._replace(begin=lambda state, t, numbers: state, step=still, state=lambda carry: carry, draw=nothing, per=1, watches=(watch,))


class SplitProgram:
    """The program of the native engine, and one of XLA for each watch that is not in it."""

    def __init__(self, native: Executable, task: Task, others: tuple[int, ...]):
        self._native, self._others, self._dtype = native, others, task.dtype
        self._size = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(task.example))
        self._begin = {i: jax.jit(jax.vmap(task.watches[i].begin, (0, 0, None))) for i in others}
        self._look = {i: jax.jit(jax.vmap(task.watches[i].look, (0, 0, 0, None))) for i in others}
        self._compiling, self._called = threading.Lock(), set[Any]()

    def places(self, count: int) -> int:
        return self._native.places(count)

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        return self._native.begin(course, numbers, trajectories, states, step)

    def states(self, batch: Batch) -> Any:
        return self._native.states(batch)

    def memory(self, batch: Batch, which: int) -> Any:
        return batch.memory.others[which] if which in self._others else self._native.memory(_natively(batch), which)

    def watch(self, course: Course, numbers: Any, batch: Batch) -> Batch:
        new, states = self._native.watch(course, numbers, _natively(batch)), self.states(batch)
        times = np.full(len(batch.trajectories), course.time(batch.step), self._dtype)
        others = {i: self._call(self._begin[i], numbers, states, times) for i in self._others}
        return new._replace(memory=Memories(new.memory, others))

    def advance(self, course: Course, numbers: Any, batch: Batch, schedule: Schedule) -> tuple[Batch, list]:
        others = dict(batch.memory.others) if batch.memory is not None else {}
        batch, parts = _natively(batch), []
        most = max(1, _BYTES // max(1, self._size * len(batch.trajectories)))
        while True:
            now = min(schedule.ticks, most)
            batch, rows = self._native.advance(course, numbers, batch, schedule._replace(ticks=now))
            for i in self._others:
                others[i], rows[i] = self._looked(i, others.get(i, ()), rows[i], numbers)
            parts.append(rows)
            schedule = schedule.after(now)
            if not schedule.ticks:
                break
        memory = None if batch.memory is None else Memories(batch.memory, others)
        return batch._replace(memory=memory), [consecutive_rows(rows) for rows in zip(*parts, strict=True)]

    def _looked(self, which: int, memory: Any, rows: Any, numbers: Any) -> tuple[Any, Any]:
        """What a watch remembers and saw, from the states and times at its looks."""
        states, times = rows
        rows_seen = []
        for k in range(len(times)):
            memory, row = self._call(self._look[which], numbers, memory, jax.tree.map(lambda leaf, k=k: leaf[k], states), times[k])
            rows_seen.append(row)
        return memory, jax.tree.map(lambda *leaves: np.stack(leaves), *rows_seen) if rows_seen else ()

    def _call(self, function: Callable, numbers: Any, *given: Any) -> Any:
        """function(*given, numbers) for as many trajectories as there are; filled up, so that batches of about one size share a program. The first
        call is made alone, so that threads do not compile the same thing twice."""
        count = len(jax.tree.leaves(given)[0])
        width = max(_LEAST, 1 << (count - 1).bit_length())
        filled = jax.tree.map(lambda leaf: np.concatenate([leaf, np.repeat(np.asarray(leaf)[-1:], width - count, 0)]), given)
        place = function, width, jax.config.values["jax_default_device"]
        if place in self._called:
            out = function(*filled, numbers)
        else:
            with self._compiling:
                out = function(*filled, numbers)
                self._called.add(place)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], out)


def _natively(batch: Batch) -> Batch:
    """The batch as the native engine knows it."""
    return batch._replace(memory=batch.memory.native) if isinstance(batch.memory, Memories) else batch
