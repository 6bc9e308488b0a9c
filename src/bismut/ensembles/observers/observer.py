"""Your own observer: three functions of one trajectory.

    init(state) → memory,      update(memory, state) → memory   at every look,      finish(memory) → value

The memory is any tree of arrays whose shapes stay the same; what `finish` returns is reported as statistics over trajectories. Each function may
also name an argument `t`, the time.

    furthest = bm.Observer(init=lambda s: jnp.abs(s.q[0]), update=lambda m, s: jnp.maximum(m, jnp.abs(s.q[0])), finish=lambda m: m, every=1)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.ensembles import moments
from bismut.ensembles.observers.records import standard_error, statistics
from bismut.ensembles.observers.report import Report, short
from bismut.ensembles.observers.watcher import Watcher
from bismut.errors import ShapeError


def _same(memory):
    return memory


class Observer(Watcher):
    """A memory per trajectory, looked after by three functions; reported as mean, std, stderr, min, max and count over trajectories."""

    init: Callable = eqx.field(static=True)
    update: Callable = eqx.field(static=True)
    finish: Callable = eqx.field(static=True, default=_same)

    def bound(self, scheme, name, example):
        dtype = scheme.system.dtype
        t = jnp.zeros((), dtype)
        try:
            memory = jax.eval_shape(lambda: _typed(_called(self.init, example, t=t), dtype))
            again = jax.eval_shape(lambda m: _typed(_called(self.update, m, example, t=t), dtype), memory)
            value = jax.eval_shape(lambda m: _called(self.finish, m, t=t), memory)
        except Exception as problem:
            raise ShapeError(f"observe[{name!r}] fails on a state of {scheme.space}: {problem}") from problem
        if jax.tree.structure(again) != jax.tree.structure(memory) or jax.tree.map(jnp.shape, again) != jax.tree.map(jnp.shape, memory):
            raise ShapeError(f"observe[{name!r}].update must return a memory like the one it was given, {memory}, but {again} came.")
        if not hasattr(value, "shape"):
            raise ShapeError(f"observe[{name!r}].finish must return one array, but a {type(value).__name__} came.")
        return self

    def begin(self, setting, sight):
        return jax.vmap(lambda state: _typed(_called(self.init, state, t=sight.t), setting.scheme.system.dtype))(sight.state)

    def look(self, memory, setting, sight):
        dtype = setting.scheme.system.dtype
        return jax.vmap(lambda m, state: _typed(_called(self.update, m, state, t=sight.t), dtype))(memory, sight.state)

    def end(self, memory, setting, sight, index):
        values = jax.vmap(lambda m: jnp.asarray(_called(self.finish, m, t=sight.t), setting.scheme.system.dtype))(memory)
        return moments.gather(values, sight.counted)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock):
        variables = statistics(name, summary, ())
        return Report(name, variables, {}, f"mean {short(variables['mean'][1])} ± {short(variables['stderr'][1])}")

    def error(self, summary):
        return standard_error(summary)


def _called(function: Callable, *arguments, t) -> Any:
    """The function, with the time if it names it."""
    try:
        timed = "t" in inspect.signature(function).parameters
    except ValueError:
        timed = False
    return function(*arguments, t=t) if timed else function(*arguments)


def _typed(memory, dtype):
    """Real numbers of the memory in the precision of the run, whole numbers as they are."""
    cast = lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    return jax.tree.map(lambda leaf: cast(jnp.asarray(leaf)), memory)
