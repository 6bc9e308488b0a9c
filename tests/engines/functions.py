"""Any function of arrays through the native engine: a step that computes it."""

import jax
import jax.numpy as jnp
import numpy as np

from bismut.engines.engine import Course, Lowered, Schedule, Task
from bismut.engines.native.engine import Native


def task_of(function, one, numbers=()) -> Task:
    """A task whose step computes function(*one, *numbers), flat, beside what it is given."""
    kinds = jax.tree.leaves(jax.eval_shape(function, *one, *numbers))
    blank = [jnp.zeros(kind.shape, kind.dtype) for kind in kinds]
    return Task(
        begin=lambda state, t, numbers: (state, blank),
        step=lambda carry, dW, h, t, numbers: (carry[0], jax.tree.leaves(function(*carry[0], *numbers))),
        state=lambda carry: carry[0],
        draw=lambda trajectory, k, h, numbers: jnp.zeros((1, 0)),
        per=1,
        watches=(),
        example=one,
        numbers=list(numbers),
        dtype=np.dtype(float),
    )


def evaluate(function, *arrays, numbers=(), width: int | None = None):
    """function(*arrays, *numbers) for every entry of the first axis of the arrays; numbers are shared."""
    one = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in arrays]
    kinds, structure = jax.tree.flatten(jax.eval_shape(function, *one, *numbers))
    task = task_of(function, one, numbers)
    lowered, course = Native(width).lower(task), Course(1.0, 0.0)
    assert isinstance(lowered, Lowered), lowered
    program = lowered.compile()
    batch = program.begin(course, list(numbers), np.arange(len(arrays[0]), dtype=np.uint64), list(arrays))
    batch, _ = program.advance(course, list(numbers), batch, Schedule(1, 1))
    count = len(arrays[0])
    found = [c[:, :count].T.reshape(count, *kind.shape) for c, kind in zip(batch.carry[len(one) :], kinds, strict=True)]
    return structure.unflatten(found)
