"""What an engine does: the step of one trajectory in, a program that advances many out.

    begin  state ↦ carry                          draw  (trajectory, k) ↦ ΔW of a few steps
    step   (carry, ΔW, h, t) ↦ carry              look  (memory, state, t) ↦ (memory, row)

All of them are functions of one trajectory, with the numbers that all trajectories share (parameters, friction factors, seeds ...) as their last
argument. An engine compiles them once. A program then advances whole batches of trajectories, and hands back what the watches saw, row by row. What
it computes for a trajectory is a function of (course, numbers, number of the trajectory, start) and of nothing else: not of its neighbours, and not
of how a run is cut into calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np


class Watch(NamedTuple):
    """One who looks at a trajectory now and then.

    begin   (state, t, numbers) ↦ memory, a tree of arrays; () for none
    look    (memory, state, t, numbers) ↦ (memory, row), the row a tree of arrays; () for none
    """

    begin: Callable
    look: Callable


class Task(NamedTuple):
    """What is to be compiled. Trees may hold any arrays; shapes and types are those of the examples.

    begin     (state, t, numbers) ↦ carry: the state, and what its next step uses again
    step      (carry, dW, h, t, numbers) ↦ carry; a step that fails makes the state NaN
    state     carry ↦ state, by structure alone
    draw      (trajectory, k, h, numbers) ↦ dW (per, m), the increments of the group of `per` successive steps in which step k lies;
              trajectory and k are 64-bit counters as pairs (low, high) of uint32
    per       how many steps one draw serves
    watches   what is observed
    example   a state, or its shapes
    numbers   what all trajectories share, or its shapes
    dtype     of h, t, dW: float64 or float32
    """

    begin: Callable
    step: Callable
    state: Callable
    draw: Callable
    per: int
    watches: tuple[Watch, ...]
    example: Any
    numbers: Any
    dtype: np.dtype


class Course(NamedTuple):
    """What a run shares beside its numbers: step size, time at step 0, and the place of step 0 in its group of draws."""

    h: float
    t0: float
    phase: int = 0

    def time(self, k: int) -> float:
        return self.t0 + self.h * k


class Schedule(NamedTuple):
    """`ticks` times `stride` steps. After each stride watch i looks if the steps since the watch began, `passed` before the call, are a multiple of
    every[i] (0: never); before the first step those look that `first` names, for whom it is a multiple too. So many `threads` may work on it."""

    ticks: int
    stride: int
    every: tuple[int, ...] = ()
    passed: int = 0
    first: tuple[bool, ...] = ()
    threads: int = 1

    def after(self, ticks: int) -> Schedule:
        """What is left after some of the ticks."""
        return self._replace(ticks=self.ticks - ticks, passed=self.passed + ticks * self.stride, first=())


class Batch(NamedTuple):
    """Trajectories on their way: their numbers (n,) as uint64; the step they have reached; at which step each ceased to be finite (n,), −1 where it
    did not; their carries, and the memories of their watches, in a form of the engine's own."""

    trajectories: np.ndarray
    step: int
    failed: np.ndarray
    carry: Any
    memory: Any = None


@runtime_checkable
class Executable(Protocol):
    """A compiled task. A batch can be advanced again from where it was, but its watches remember only one way: their memories are handed on. Threads
    may share a program."""

    def places(self, count: int) -> int:
        """For how many trajectories the work is done if there are so many: vectors are filled up."""
        ...

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        """Trajectories, by their numbers, at states with a leading axis, of length 1 if all begin alike; without watches."""
        ...

    def watch(self, course: Course, numbers: Any, batch: Batch) -> Batch:
        """The batch with its watches begun, now."""
        ...

    def advance(self, course: Course, numbers: Any, batch: Batch, schedule: Schedule) -> tuple[Batch, list]:
        """The batch after the steps of a schedule, and the rows of each watch: a tree of arrays (looks, n, ...)."""
        ...

    def states(self, batch: Batch) -> Any:
        """The states, trajectories along the first axis, as NumPy arrays."""
        ...

    def memory(self, batch: Batch, which: int) -> Any:
        """What a watch remembers, trajectories along the first axis, as NumPy arrays."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Makes programs."""

    name: str

    @property
    def machine(self) -> str:
        """What programs are made for: processor and compiler. It decides how fast they are."""
        ...

    @property
    def arithmetic(self) -> str:
        """What decides how numbers are rounded: "fused" or "plain"; or, where no more is promised, the machine."""
        ...

    def lower(self, task: Task) -> Lowered | Refusal:
        """The task, ready to be compiled; or why this engine cannot take it. Only wrong input is an exception."""
        ...


class Refusal(NamedTuple):
    """Why an engine does not take a task; `preferred` where that is what its scheme asks for, `together` where watches are too long only together
    with the rest."""

    text: str
    preferred: bool = False
    together: bool = False


class Lowered(NamedTuple):
    """A task that an engine takes.

    engine      the one that takes it
    compile     () ↦ the program; each call compiles
    why         how it is run, or why by this engine
    together    how many trajectories are advanced side by side at least
    operations  of a step of one trajectory, if that is known
    observers   watches that XLA computes from recorded states, by their positions, each with the reason
    instead     whether another engine was preferred
    """

    engine: Engine
    compile: Callable[[], Executable]
    why: str
    together: int = 1
    operations: int | None = None
    observers: tuple[tuple[int, str], ...] = ()
    instead: bool = False


def consecutive_rows(parts: Sequence) -> Any:
    """Rows of one watch that follow each other; () if there are none."""
    there = [rows for rows in parts if jax.tree.leaves(rows)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *there) if len(there) > 1 else there[0] if there else ()
