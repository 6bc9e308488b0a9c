"""Your own observer: three functions of one trajectory.

    init(state) → memory  at the start,      update(memory, state) → memory  at every look after it,      finish(memory) → value

The memory is any tree of arrays whose shapes stay the same; what `finish` returns is reported as statistics over trajectories. Each function may
also name an argument `t`, the time.

    furthest = bm.Observer(init=lambda s: jnp.abs(s.q[0]), update=lambda m, s: jnp.maximum(m, jnp.abs(s.q[0])), finish=lambda m: m, every=1)
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import Rule
from bismut.compile_cache import compiled
from bismut.ensembles import moments
from bismut.ensembles.observable import with_time
from bismut.ensembles.observers.records import standard_error, statistics
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.errors import ShapeError
from bismut.formatting import with_error
from bismut.user_errors import reason_of

_TAKES = {"init": "a State", "update": "the memory and a State", "finish": "the memory"}


def _same(memory):
    return memory


class Observer(Watcher):
    """A memory per trajectory, maintained by three functions; reported as mean, std, stderr, min, max and count over trajectories."""

    init: Callable = eqx.field(static=True)
    update: Callable = eqx.field(static=True)
    finish: Callable = eqx.field(static=True, default=_same)

    def __check_init__(self):
        for name in ("init", "update", "finish"):
            Rule(f"a function of {_TAKES[name]}", callable).check(getattr(self, name), name)

    sees_start = False  # `init` does

    def bound(self, scheme, name, example):
        dtype = scheme.system.dtype
        t = jnp.zeros((), dtype)
        try:
            memory = jax.eval_shape(lambda state: _typed(with_time(self.init, state, t=t), dtype), example)
            after = jax.eval_shape(lambda m, state: _typed(with_time(self.update, m, state, t=t), dtype), memory, example)
            value = jax.eval_shape(lambda m: with_time(self.finish, m, t=t), memory)
        except Exception as problem:
            raise ShapeError(f"observe[{name!r}] fails on a state of {scheme.space}: {reason_of(problem)}.") from problem
        if jax.tree.structure(after) != jax.tree.structure(memory) or jax.tree.map(jnp.shape, after) != jax.tree.map(jnp.shape, memory):
            raise ShapeError(f"observe[{name!r}].update must return a memory like the one it was given, {memory}, got {after}.")
        if not hasattr(value, "shape"):
            raise ShapeError(f"observe[{name!r}].finish must return one array, got a {type(value).__name__}.")
        return self

    def begin(self, scheme, state, t):
        return _typed(with_time(self.init, state, t=t), scheme.system.dtype)

    def look(self, memory, scheme, state, t):
        return _typed(with_time(self.update, memory, state, t=t), scheme.system.dtype), ()

    def close(self, tally, memory, ended):
        # Padded to a whole block, so that the last, smaller one compiles nothing again.
        n, end = len(ended.finished), ended.t0 + ended.h * (ended.first + ended.steps)
        padded = jax.tree.map(lambda leaf: np.concatenate([leaf, np.broadcast_to(leaf[-1:], (ended.size - n, *leaf.shape[1:]))]), memory)
        values = np.asarray(_finished(self.finish, padded, np.asarray(end, ended.setting.scheme.system.dtype)))[:n]
        return moments.gather(values, ended.finished)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock):
        variables = statistics(name, summary, ())
        return ObserverReport(name, variables, {}, f"mean {with_error(variables['mean'][1], variables['stderr'][1])}")

    def error(self, summary):
        return standard_error(summary)


@compiled
def _finished(finish: Callable, memory, t):
    return jax.vmap(lambda m: jnp.asarray(with_time(finish, m, t=t)))(memory)


def _typed(memory, dtype):
    """Real numbers of the memory in the precision of the run, whole numbers as they are."""
    cast = lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    return jax.tree.map(lambda leaf: cast(jnp.asarray(leaf)), memory)
