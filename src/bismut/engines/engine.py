"""What an engine does: the step of one trajectory in, a program that advances many out.

    begin  state ↦ carry                    step  (carry, ΔW, h, t) ↦ carry                    look  (state, t) ↦ values

All three are functions of one trajectory, with the numbers that all trajectories share (parameters, friction factors, ...) as their last argument.
An engine compiles them once. A program then advances whole batches of trajectories, draws their noise, and hands back what the looks saw, row by
row. What it computes for a trajectory is a function of (numbers, path, number of the trajectory, start) and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class Task(NamedTuple):
    """What is to be compiled. Trees may hold any arrays; shapes and types are those of the examples.

    begin     (state, t, numbers) ↦ carry: the state, and what its next step uses again
    step      (carry, dW, h, t, numbers) ↦ carry; a step that fails makes the state NaN
    state     carry ↦ state, by structure alone
    looks     (state, t, numbers) ↦ values, a tree of arrays, each
    example   a state, or its shapes
    numbers   what all trajectories share, or its shapes
    channels  Wiener processes
    clipped   how many of them, counted from the first, a bounded path clips
    substeps  fine increments in one of a step
    bounded   whether the path is
    dtype     of h, t, dW: float64 or float32
    """

    begin: Callable
    step: Callable
    state: Callable
    looks: tuple[Callable, ...]
    example: Any
    numbers: Any
    channels: int
    clipped: int
    substeps: int
    bounded: bool
    dtype: np.dtype


class Course(NamedTuple):
    """What a run shares beside its numbers: step size, time at step 0, seed and shift of the path (64-bit whole numbers)."""

    h: float
    t0: float
    seed: int
    shift: int


class Seen(NamedTuple):
    """What one look saw, look after look: values (looks, trajectories, ...), and who was finite then (looks, trajectories)."""

    values: Any
    finite: np.ndarray


class Batch(NamedTuple):
    """Trajectories on their way: their numbers (n,) as uint64, the step they have reached, and their carries, in a form of the engine's own."""

    trajectories: np.ndarray
    step: int
    carry: Any


class Program(Protocol):
    """A compiled task. Nothing is changed in place: a batch can be advanced again from where it was."""

    def begin(self, course: Course, numbers: Any, trajectories: np.ndarray, states: Any, step: int = 0) -> Batch:
        """Trajectories, by their numbers, at states with a leading axis."""
        ...

    def advance(
        self, course: Course, numbers: Any, batch: Batch, ticks: int, stride: int, every: tuple[int, ...], since: int
    ) -> tuple[Batch, list[Seen]]:
        """`ticks` times `stride` steps. After each stride, look i is taken if the steps since step `since` are a multiple of every[i] (0: never)."""
        ...

    def look(self, course: Course, numbers: Any, batch: Batch, which: int) -> Seen:
        """One look, now."""
        ...

    def states(self, batch: Batch) -> Any:
        """The states, trajectories along the first axis, as NumPy arrays."""
        ...


class Engine(Protocol):
    """Makes programs."""

    name: str

    def refusal(self, task: Task) -> str | None:
        """Why this engine cannot take the task, in words; None if it can."""
        ...

    def compile(self, task: Task) -> Program: ...
