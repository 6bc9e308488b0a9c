"""Final states of many trajectories with increments from a table: what studies of order and of averages ask an engine for.

    z_i ↦ z_i after n steps of h from t0,      step k of trajectory i with ΔW = table[i, k]

Number and length of the trajectories are data: one program serves them all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import partition
from bismut.engines.engine import Course, Schedule
from bismut.ensembles.task import build_task, native
from bismut.ensembles.trajectory import MAX_OPERATIONS
from bismut.mechanics import Scheme, State

_ROWS = 2**16  # of a table at least, so that studies of different sizes share a program


def native_final_states(scheme: Scheme, states: State, h: float, t0: float, table: np.ndarray, steps: int) -> State | None:
    """The states after so many steps, NaN where one was not solved; None if only XLA can compute them.

    states   with trajectories along the first axis
    table    increments (trajectories, most, channels), of which the first `steps` are used
    """
    paths, most, channels = table.shape
    rows = max(_ROWS, 1 << (paths * most - 1).bit_length())
    flat = np.zeros((rows, channels), scheme.system.dtype)
    flat[: paths * most] = table.reshape(paths * most, channels)
    shared = (scheme, *jax.device_put((flat, np.asarray(most, np.int32))))
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf)[1:], leaf.dtype), states)
    program = native("final states", shared, one, lambda: build_task(shared, one, scheme.system.dtype, draw=_row), MAX_OPERATIONS)
    if program is None:
        return None
    course, (numbers, _) = Course(h, t0), partition(shared)
    batch = program.begin(course, numbers, np.arange(paths, dtype=np.uint64), states)
    batch, _ = program.advance(course, numbers, batch, Schedule(1, steps))
    return jax.device_put(program.states(batch))


def _row(trajectory, k, h, shared):
    """The increment of a step, as a draw of one."""
    del h
    _, flat, most = shared
    row = trajectory[0].astype(jnp.int32) * most + k[0].astype(jnp.int32)
    return jax.lax.dynamic_slice(flat, (row, jnp.zeros_like(row)), (1, flat.shape[1]))
