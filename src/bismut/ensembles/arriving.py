"""Where many trajectories arrive, each with increments from a table: what studies of order and of averages ask an engine for.

    z_i ↦ z_i after n steps of h from t0,      step k of trajectory i with ΔW = table[i, k]

Number and length of the trajectories are data: one program serves them all.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import Memory, key, split
from bismut.engines.choice import native_program
from bismut.engines.engine import Course, Program, Task
from bismut.ensembles.following import LONGEST
from bismut.flows import kernel
from bismut.mechanics import Scheme, State

_ROWS = 2**16  # of a table at least, so that studies of different sizes share a program

_PROGRAMS = Memory(32)


def arrive(scheme: Scheme, states: State, h: float, t0: float, table: np.ndarray, steps: int) -> State | None:
    """The states after so many steps, NaN where one was not solved; None if only XLA can compute them.

    states   with trajectories along the first axis
    table    increments (trajectories, most, channels), of which the first `steps` are used
    """
    paths, most, m = table.shape
    rows = max(_ROWS, 1 << (paths * most - 1).bit_length())
    flat = np.zeros((rows, m), scheme.system.dtype)
    flat[: paths * most] = table.reshape(paths * most, m)
    given, whole = split((scheme, *jax.device_put((flat, np.asarray(most, np.int32)))))
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf)[1:], leaf.dtype), states)
    program = _PROGRAMS.get((jax.default_backend(), key((scheme, rows, m, one))), lambda: _program(one, given, whole, scheme.system.dtype))
    if program is None:
        return None
    course = Course(h, t0)
    batch = program.begin(course, given, np.arange(paths, dtype=np.uint64), states)
    batch, _ = program.advance(course, given, batch, 1, steps, (), 0)
    return jax.device_put(program.states(batch))


def _program(one: State, given: Any, whole: Any, dtype) -> Program | None:
    def draw(trajectory, k, h, given):
        del h
        _, flat, most = whole(given)
        row = trajectory[0].astype(jnp.int32) * most + k[0].astype(jnp.int32)
        return jax.lax.dynamic_slice(flat, (row, jnp.zeros_like(row)), (1, flat.shape[1]))

    task = Task(
        begin=lambda state, t, given: kernel.begin(whole(given)[0], state, t),
        step=lambda carry, dW, h, t, given: kernel.step(whole(given)[0], carry, h, dW, t)[0],
        state=lambda carry: carry.state,
        draw=draw,
        per=1,
        watches=(),
        example=one,
        numbers=jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), given),
        dtype=np.dtype(dtype),
    )
    return native_program(task, LONGEST)
