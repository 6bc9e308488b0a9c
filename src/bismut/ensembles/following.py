"""One trajectory step by step, by an engine: what `trajectory` does where nothing is differentiated or mapped over.

The state that the engine sees is (state, how the step before was solved), and a watch hands both over after every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import Memory, key, split
from bismut.engines.choice import choose, native_program
from bismut.engines.engine import Course, Program, Task, Watch
from bismut.ensembles.task import bytes_of
from bismut.flows import Solve, kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path

_ROWS = 2**22  # bytes of steps that are handed over at a time

LONGEST = 15_000  # operations of a step beyond which XLA, for one trajectory, has its code sooner

_PROGRAMS = Memory(32)


class Followed(NamedTuple):
    """States after every `every` steps, how these were solved, and the step that failed, −1 for none."""

    states: State
    solve: Solve
    failed: int


def follow(
    scheme: Scheme, state: State, path: Path, number: int, h: float, t0: float, records: int, every: int, mode: str = "auto"
) -> Followed | None:
    """The trajectory; None if only XLA can compute it, which is an error if the native engine was asked for."""
    numbers, whole = split((scheme, path))
    program = _PROGRAMS.get(
        (jax.default_backend(), mode, key((scheme, path, state))), lambda: _program(state, numbers, whole, scheme.system.dtype, mode)
    )
    if program is None:
        return None
    course = Course(h, t0, path.phase)
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], (state, _fresh(scheme.system.dtype)))
    batch = program.watch(course, numbers, program.begin(course, numbers, np.array([number], np.uint64), one))
    chunk = max(1, _ROWS // (bytes_of(one) * every)) * every
    parts, done = [], 0
    while done < records * every:
        steps = min(chunk, records * every - done)
        batch, (rows,) = program.advance(course, numbers, batch, steps, 1, (1,), done)
        parts.append(_recorded(jax.tree.map(lambda leaf: leaf[:, 0], rows), every, done, int(batch.failed[0])))
        done += steps
    states, solve = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return Followed(states, solve, int(batch.failed[0]))


def _fresh(dtype) -> Solve:
    return Solve(*jax.device_put((np.zeros((), dtype), np.array(True), np.zeros((), int))))


def _recorded(rows: Any, every: int, done: int, failed: int) -> tuple[State, Solve]:
    """The last state of each interval, and the worst of how its steps were solved; what comes after a failure counts no more."""
    states, solve = rows
    after = (failed >= 0) & (done + np.arange(len(solve.residual)) > failed)
    interval = lambda x: x.reshape(-1, every)
    worst = interval(np.where(after, 0, solve.residual)).max(1)
    summary = Solve(worst, interval(solve.converged).all(1), interval(solve.iterations).sum(1))
    return jax.tree.map(lambda leaf: leaf[every - 1 :: every], states), summary


def _program(state: State, numbers: Any, whole: Any, dtype, mode: str) -> Program | None:
    def draw(trajectory, k, h, numbers):
        scheme, path = whole(numbers)
        return path.draw(trajectory, k, scheme.channels, h, dtype, scheme.clipped)

    shapes = lambda tree: jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), tree)
    _, path = whole(numbers)
    task = Task(
        begin=lambda both, t, numbers: (kernel.begin(whole(numbers)[0], both[0], t), both[1]),
        step=lambda carry, dW, h, t, numbers: kernel.step(whole(numbers)[0], carry[0], h, dW, t),
        state=lambda carry: (carry[0].state, carry[1]),
        draw=draw,
        per=path.per,
        watches=(Watch(lambda both, t, numbers: (), lambda memory, both, t, numbers: ((), both)),),
        example=shapes((state, _fresh(dtype))),
        numbers=shapes(numbers),
        dtype=np.dtype(dtype),
    )
    return choose("native", task).engine.compile(task) if mode == "native" else native_program(task, LONGEST)
