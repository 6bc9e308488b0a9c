"""The functions of a task as programs, traced once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut import programs
from bismut.engines.engine import Task
from bismut.programs import TracedFunction
from bismut.programs.decomposition import simplified


class Programs(NamedTuple):
    """All functions of a task."""

    begin: TracedFunction
    step: TracedFunction
    draw: TracedFunction
    watches: list[tuple[TracedFunction, TracedFunction]]  # begin and look
    state: list  # what is asked for of a task
    carry: list
    numbers: list
    where: list[int]  # which leaves of a carry are its state
    channels: int


def shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), tree)


def _traced(function: Callable, *arguments: Any) -> TracedFunction:
    traced = programs.trace(function, *arguments)
    return traced._replace(program=simplified(traced.program))


def trace(task: Task) -> Programs:
    state, numbers = shapes(task.example), shapes(task.numbers)
    real = jax.ShapeDtypeStruct((), task.dtype)
    word = jax.ShapeDtypeStruct((), np.uint32)
    begin = _traced(task.begin, state, real, numbers)
    carry = begin.structure.unflatten(begin.shapes)
    draw = _traced(task.draw, (word, word), (word, word), real, numbers)
    channels = draw.shapes[0].shape[1]
    step = _traced(task.step, carry, jax.ShapeDtypeStruct((channels,), task.dtype), real, real, numbers)
    if [(s.shape, s.dtype) for s in step.shapes] != [(s.shape, s.dtype) for s in begin.shapes] or step.structure != begin.structure:
        raise TypeError(f"A step must return a carry like the one it was given, {begin.shapes}, got {step.shapes}.")
    watches = []
    for watch in task.watches:
        first = _traced(watch.begin, state, real, numbers)
        look = _traced(lambda memory, *rest, watch=watch: watch.look(memory, *rest), first.structure.unflatten(first.shapes), state, real, numbers)
        watches.append((first, look))
    where = jax.tree.leaves(task.state(begin.structure.unflatten(range(len(begin.shapes)))))
    return Programs(begin, step, draw, watches, jax.tree.leaves(state), begin.shapes, jax.tree.leaves(numbers), where, channels)
