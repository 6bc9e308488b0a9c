"""Where trajectories begin: all at one state, each at one of a batch, or with random momenta.

    p = ∂L/∂v(q, 0, t0) + √(kT M(q, t0)) z,      z the normals of the trajectory

Momenta are drawn by one program for any number of trajectories: by the native engine, or by XLA where that has no code for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import Memory, compiled, key, split
from bismut.engines.choice import native_program
from bismut.engines.engine import Course, Program, Task
from bismut.ensembles.checks import check_start
from bismut.errors import DomainError
from bismut.mechanics import Maxwell, Scheme, Start, State, start_on, time_of
from bismut.noise import Index, Path, counter, words
from bismut.spaces import Point
from bismut.tracing import nothing_traced, traced

_PROGRAMS = Memory(32)
_AT_A_TIME = 256  # trajectories that XLA draws together, so that it compiles once

Draw = Callable[[Any, Point | None], State]
Starting = Callable[[Any, Any], State]


def start_at(scheme: Scheme, start: Any, t0: Any, remedy: str = "Give t0={:g}, or the start another t.") -> tuple[State | Maxwell, tuple[int, ...]]:
    """The start of a run that begins at t0, checked, and its batch axis, if it has one. One that names no time is made for t0, and one that another
    scheme made gets the momenta of this one: the velocity or the temperature stays."""
    if isinstance(start, Start | Maxwell):
        own = start.t
        elsewhen = scheme.system.time_dependent and (traced(own, t0) or not np.isclose(t0, 0.0 if own is None else own, rtol=1e-9, atol=1e-12))
        if elsewhen and own is not None and not traced(own, t0):
            raise DomainError(f"The start was made for t = {own:g}, but the run begins at t0 = {t0:g}. {remedy.format(own)}")
        if (elsewhen and own is None) or not _made_by(scheme, start):
            start = start_on(scheme, start, t0)
    batch = check_start(scheme, start, t0)
    return start.state, batch


def _made_by(scheme: Scheme, start: Start | Maxwell) -> bool:
    """Whether the momenta of a start are those of this scheme's system at the time of the start, to rounding."""
    if isinstance(start, Maxwell):
        return _equal(start.system, scheme.system)
    if start.velocity is None or traced(start, scheme):
        return start.velocity is None
    again: Any = start_on(scheme, start, time_of(start))
    eps = float(np.finfo(scheme.system.dtype).eps)
    pairs = list(zip(jax.tree.leaves(again.p), jax.tree.leaves(start.p), strict=True))
    largest = max((float(np.max(np.abs(x), initial=0.0)) for x, _ in pairs), default=0.0)
    return all(np.allclose(x, y, rtol=0.0, atol=1e3 * eps * largest) for x, y in pairs)


def _equal(a: Any, b: Any) -> bool:
    """Whether two systems are the same functions with the same numbers."""
    if a is b or traced(a, b):
        return a is b
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=False)
    return key(a) == key(b) and all(np.array_equal(x, y) for x, y in pairs)


def starting(start: State | Maxwell, path: Path, batch: tuple[int, ...], t0: Any, native: bool = True) -> Starting:
    """The function (numbers of trajectories, their places in the batch) ↦ their starts, of length 1 if all begin alike."""
    if isinstance(start, Maxwell):
        draw = drawing(start, path, bool(batch), t0, native)
        return lambda numbers, places: draw(numbers, _rows(start.q, places) if batch else None)
    if batch:
        return lambda numbers, places: _rows(start, places)
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], start)
    return lambda numbers, places: one


def one_start(start: State | Maxwell, path: Path, trajectory: Any, batch: tuple[int, ...], t0: Any) -> State:
    """The start of one trajectory; of a batch, the one that belongs to it."""
    known = not traced(trajectory)
    if known and (isinstance(trajectory, bool) or not isinstance(trajectory, int | np.integer) or trajectory < 0):
        raise DomainError(f"trajectory must be a whole number ≥ 0, got {trajectory!r}.")
    if batch and known and trajectory >= batch[0]:
        raise DomainError(f"There are starts for {batch[0]} trajectories, but trajectory {trajectory} was requested.")
    if isinstance(start, Maxwell):
        number = (np if known else jnp).asarray([trajectory])
        return jax.tree.map(lambda leaf: leaf[0], many_starts(start, path, number, batch, t0))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[trajectory], start) if batch else start


def many_starts(start: State | Maxwell, path: Path, trajectories: Any, batch: tuple[int, ...], t0: Any, places: np.ndarray | None = None) -> State:
    """The starts of many trajectories along a first axis; of a batch, those at the places given, by default the numbers of the trajectories."""
    at: Any = trajectories.astype(np.int64) if places is None else places
    if batch or isinstance(start, Maxwell):
        return starting(start, path, batch, t0)(trajectories, at)
    array = jnp if traced(start) else np
    return jax.tree.map(lambda leaf: array.broadcast_to(array.asarray(leaf), (len(at), *np.shape(leaf))), start)


def _rows(tree: Any, at: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[at] if traced(leaf, at) else np.asarray(leaf)[at], tree)  # JAX would compile the selection


def drawing(start: Maxwell, path: Path, apart: bool, t0: Any, native: bool) -> Draw:
    """The function (numbers of trajectories, their points) ↦ their starts; without points, if they do not begin apart. By XLA, unless native code may
    draw them."""
    # Its points and its time are data.
    one = eqx.tree_at(lambda maxwell: (maxwell.q, maxwell.t), start, (jax.tree.map(_first, start.q) if apart else start.q, None), is_leaf=_nothing)
    t = jnp.asarray(t0, start.system.dtype) if traced(t0) else jax.device_put(np.asarray(t0, start.system.dtype))
    if not nothing_traced() or traced((start, path, t0)):
        return lambda trajectories, q: _spread(one, path, counter(trajectories), q, t)
    numbers, whole = split((one, path))
    point = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), one.q) if apart else None
    name = jax.default_backend(), key((one, path, point))
    program: Program | None = _PROGRAMS.get(name, lambda: _program(numbers, whole, point, start.system.dtype)) if native else None

    def draw(trajectories: Any, q: Point | None) -> State:
        if not nothing_traced() or traced((trajectories, q)):
            return _spread(one, path, counter(trajectories), q, t)
        if program is None:
            return _few_at_a_time(one, path, trajectories, q, t)
        return program.states(program.begin(Course(1.0, float(t0)), numbers, trajectories, (words(trajectories), q)))

    return draw


def _nothing(value: Any) -> bool:
    return value is None


def _first(leaf: Any) -> Any:
    return leaf[0] if traced(leaf) else jax.device_put(np.asarray(leaf)[0])


def _program(numbers: Any, whole: Any, point: Point | None, dtype: np.dtype) -> Program | None:
    """The beginning of a task that never takes a step; None if there is no native code for it."""

    def begin(given, t, numbers):
        (start, path), (trajectory, q) = whole(numbers), given
        return start.draw(path, trajectory, start.q if q is None else q, t)

    word = jax.ShapeDtypeStruct((), np.dtype(np.uint32))
    task = Task(
        begin=begin,
        step=lambda carry, dW, h, t, numbers: carry,
        state=lambda carry: carry,
        draw=lambda trajectory, k, h, numbers: jnp.zeros((1, 0), dtype),
        per=1,
        watches=(),
        example=((word, word), point),
        numbers=jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), numbers),
        dtype=np.dtype(dtype),
    )
    return native_program(task)


def _few_at_a_time(start: Maxwell, path: Path, trajectories: np.ndarray, q: Point | None, t: Any) -> State:
    """By XLA; the last of them are filled up."""
    parts = []
    for first in range(0, len(trajectories), _AT_A_TIME):
        places = np.minimum(np.arange(first, first + _AT_A_TIME), len(trajectories) - 1)
        there = jax.tree.map(lambda leaf, places=places: np.asarray(leaf)[places], q)
        parts.append(_spread(start, path, counter(trajectories[places]), there, t))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(trajectories)], *parts)


@compiled
def _spread(start: Maxwell, path: Path, index: Index, q: Point | None, t: Any) -> State:
    if q is None:
        return jax.vmap(lambda i: start.draw(path, i, start.q, t))(index)
    return jax.vmap(lambda i, place: start.draw(path, i, place, t))(index, q)
