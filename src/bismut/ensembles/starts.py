"""The states in which trajectories begin: all the same, each one of a batch, or with random momenta.

    p = ∂L/∂v(q, 0, t0) + √(kT M(q, t0)) z,      z the normals of the trajectory

Random momenta are the beginning of a task that takes no step, one program for any number of trajectories: by the native engine, or by XLA where that
has no code for it (half a second to compile for every size of block).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled, partition, program_key
from bismut.engines.engine import Course, Task
from bismut.ensembles.checks import check_start, example_of
from bismut.ensembles.task import build_task, native, shapes_of
from bismut.errors import DomainError
from bismut.mechanics import Maxwell, Scheme, Start, State, start_on, time_of
from bismut.noise import Index, Path, counter, numpy_counter
from bismut.spaces import Point
from bismut.tracing import nothing_traced, traced

_AT_A_TIME = 256  # trajectories that XLA draws together, so that it compiles once

Sampler = Callable[[Any, Any], State]


class StartStates(NamedTuple):
    """A start as a run uses it: for one system, at one time.

    start  a state, or Maxwell momenta
    batch  the leading axis of its arrays, if it holds a start for each trajectory
    t0     the time at which the run begins
    """

    start: State | Maxwell
    batch: tuple[int, ...]
    t0: Any

    @property
    def example(self) -> State:
        """The shapes of one state."""
        return example_of(self.start, self.batch)

    def sampler(self, path: Path, native_code: bool = True, arithmetic: str | None = None) -> Sampler:
        """The function (numbers of trajectories, their places in the batch) ↦ their states, of length 1 if all begin alike."""
        start = self.start
        if isinstance(start, Maxwell):
            draw = _maxwell_sampler(start, path, bool(self.batch), self.t0, native_code, arithmetic)
            return lambda numbers, places: draw(numbers, _rows(start.q, places) if self.batch else None)
        if self.batch:
            return lambda numbers, places: _rows(start, places)
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], start)
        return lambda numbers, places: one

    def one(self, path: Path, trajectory: Any = 0, arithmetic: str | None = None) -> State:
        """The state of one trajectory; of a batch, the one that belongs to it."""
        known = not traced(trajectory)
        if known and (isinstance(trajectory, bool) or not isinstance(trajectory, int | np.integer) or trajectory < 0):
            raise DomainError(f"trajectory must be a whole number ≥ 0, got {trajectory!r}.")
        if self.batch and known and trajectory >= self.batch[0]:
            raise DomainError(f"There are starts for {self.batch[0]} trajectories, but trajectory {trajectory} was requested.")
        if isinstance(self.start, Maxwell):
            number = (np if known else jnp).asarray([trajectory])
            return jax.tree.map(lambda leaf: leaf[0], self.many(path, number, arithmetic=arithmetic))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[trajectory], self.start) if self.batch else self.start

    def many(self, path: Path, trajectories: Any, places: np.ndarray | None = None, arithmetic: str | None = None) -> State:
        """The states of many trajectories along a first axis; of a batch, those at the places given, by default the numbers of the trajectories."""
        at: Any = trajectories.astype(np.int64) if places is None else places
        if self.batch or isinstance(self.start, Maxwell):
            return self.sampler(path, arithmetic=arithmetic)(trajectories, at)
        array = jnp if traced(self.start) else np
        return jax.tree.map(lambda leaf: array.broadcast_to(array.asarray(leaf), (len(at), *np.shape(leaf))), self.start)


def start_at(scheme: Scheme, start: Any, t0: Any, remedy: str = "Give t0={:g}, or the start another t.") -> StartStates:
    """The start of a run that begins at t0, checked. One that names no time is made for t0, and one that another scheme made gets the momenta of this
    one: the velocity or the temperature stays."""
    if isinstance(start, Start | Maxwell):
        own = start.t
        elsewhen = scheme.system.time_dependent and (traced(own, t0) or not np.isclose(t0, 0.0 if own is None else own, rtol=1e-9, atol=1e-12))
        if elsewhen and own is not None and not traced(own, t0):
            raise DomainError(f"The start was made for t = {own:g}, but the run begins at t0 = {t0:g}. {remedy.format(own)}")
        if (elsewhen and own is None) or not _made_by(scheme, start):
            start = start_on(scheme, start, t0)
    batch = check_start(scheme, start, t0)
    return StartStates(start.state, batch, t0)


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
    return program_key(a) == program_key(b) and all(np.array_equal(x, y) for x, y in pairs)


def _rows(tree: Any, at: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[at] if traced(leaf, at) else np.asarray(leaf)[at], tree)  # JAX would compile the selection


def _maxwell_sampler(
    start: Maxwell, path: Path, own_points: bool, t0: Any, native_code: bool, arithmetic: str | None
) -> Callable[[Any, Point | None], State]:
    """The function (numbers of trajectories, their points) ↦ their states; without points, unless each has its own."""
    one = _timeless(start, own_points)
    dtype = start.system.dtype
    t = jnp.asarray(t0, dtype) if traced(t0) else jax.device_put(np.asarray(t0, dtype))
    if not nothing_traced() or traced((start, path, t0)):
        return lambda trajectories, q: _spread(one, path, counter(trajectories), q, t)
    shared, point = (one, path), shapes_of(one.q) if own_points else None
    numbers, _ = partition(shared)
    program = native("start", shared, point, lambda: _task(shared, point, dtype), arithmetic=arithmetic) if native_code else None

    def draw(trajectories: Any, q: Point | None) -> State:
        if not nothing_traced() or traced((trajectories, q)):
            return _spread(one, path, counter(trajectories), q, t)
        if program is None:
            return _few_at_a_time(one, path, trajectories, q, t)
        return program.states(program.begin(Course(1.0, float(t0)), numbers, trajectories, (numpy_counter(trajectories), q)))

    return draw


def _timeless(start: Maxwell, own_points: bool) -> Maxwell:
    """Its points and its time are data."""
    place = jax.tree.map(_first, start.q) if own_points else start.q
    return eqx.tree_at(lambda maxwell: (maxwell.q, maxwell.t), start, (place, None), is_leaf=lambda value: value is None)


def maxwell_task(start: Maxwell, path: Path) -> tuple[Task, tuple]:
    """The task that draws momenta at one point, from the numbers of trajectories as pairs of words; and the numbers that all of them share."""
    shared = (_timeless(start, own_points=False), path)
    return _task(shared, None, start.system.dtype), partition(shared)[0]


def _first(leaf: Any) -> Any:
    return leaf[0] if traced(leaf) else jax.device_put(np.asarray(leaf)[0])


def _task(shared: tuple[Maxwell, Path], point: Point | None, dtype: Any) -> Task:
    """A task that never takes a step; what it begins with is the number of a trajectory, and its point if it has its own."""

    def begin(state, t, shared):
        (start, path), (trajectory, q) = shared, state
        return start.draw(path, trajectory, start.q if q is None else q, t)

    word = jax.ShapeDtypeStruct((), np.dtype(np.uint32))
    return build_task(
        shared,
        ((word, word), point),
        dtype,
        draw=lambda trajectory, k, h, shared: jnp.zeros((1, 0), dtype),
        begin=begin,
        step=lambda carry, dW, h, t, shared: carry,
        state=lambda carry: carry,
    )


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
