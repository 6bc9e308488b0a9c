"""Section crossings: where a function of the state changes its sign, located between steps.

    g(z(s)) = 0,    z(s) = φ_{s h}(s ΔW)(z_k),    0 < s ≤ 1

The state between two steps is that of a shorter step of the same scheme, driven by the same share of the increment: at s = 0 it is the state before
and at s = 1 the state after. While the run goes on only the states before a crossing are kept; increments are functions of the step, so they are
drawn again at the end and s is located there, by regula falsi with halving (Illinois), once per crossing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.compile_cache import compiled
from bismut.ensembles.observable import measure, value_of
from bismut.ensembles.observers.report import ObserverReport, component_axes
from bismut.ensembles.observers.watcher import Clock, Setting, Watcher
from bismut.errors import ShapeError
from bismut.flows import flow, kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path, counter
from bismut.registry import OBSERVERS

_TURNS = 12  # of regula falsi; its error shrinks by more than half the digits in two
_TOGETHER = 256  # crossings located by one call


class SectionMemory(NamedTuple):
    """Looks so far, the last state and value, how many crossings there were, and state and look before each of the first so many. The last place is
    where a look without a crossing writes."""

    looks: Any
    last: Any
    value: Any
    count: Any
    before: Any
    at: Any


class Crossings(NamedTuple):
    """Per trajectory: how many there were, and time and what was asked for at the first so many."""

    count: Any
    times: np.ndarray
    values: np.ndarray


class Section(Watcher):
    """Crossings of g(state) = 0: upwards, downwards or both."""

    function: Any = eqx.field(static=True)
    at: Any = eqx.field(static=True)
    direction: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)

    def bound(self, scheme, name, example):
        shape, _ = (measure(function, scheme, name, example) for function in (self.function, self.at))
        if shape != ():
            raise ShapeError(f"observe[{name!r}]: the section must be one number g(state), got an array of shape {shape}.")
        return self

    def begin(self, scheme, state, t):
        room = lambda leaf: jnp.zeros((self.capacity + 1, *jnp.shape(leaf)), leaf.dtype)
        value = value_of(self.function, scheme, state, t)
        zero = jnp.zeros((), jnp.int32)
        return SectionMemory(zero, state, value, zero, jax.tree.map(room, state), jnp.zeros(self.capacity + 1, jnp.int32))

    def look(self, memory, scheme, state, t):
        value = value_of(self.function, scheme, state, t)
        up, down = (memory.value < 0) & (value >= 0), (memory.value > 0) & (value <= 0)
        crossed = up if self.direction > 0 else down if self.direction < 0 else up | down
        place = jnp.where(crossed, jnp.minimum(memory.count, self.capacity), self.capacity)
        put = lambda array, new: jax.lax.dynamic_update_index_in_dim(array, new, place, 0)
        before = jax.tree.map(put, memory.before, memory.last)
        at = put(memory.at, memory.looks - 1)  # the crossing lies in the step that led here
        return SectionMemory(memory.looks + 1, state, value, memory.count + crossed.astype(jnp.int32), before, at), ()

    def close(self, tally, memory, ended):
        count = np.asarray(memory.count)
        known = np.arange(self.capacity) < count[:, None]
        which = np.argwhere(known)
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[tuple(which.T)], memory.before)
        steps = ended.first + np.asarray(memory.at)[tuple(which.T)].astype(np.int64)
        located = self._located(states, steps, ended.trajectories[which[:, 0]], ended.setting, ended.h, ended.t0)
        shape = jax.eval_shape(lambda s: value_of(self.at, ended.setting.scheme, s, 0.0), jax.tree.map(lambda leaf: leaf[0], memory.last)).shape
        times, values = np.full(known.shape, np.nan), np.full((*known.shape, *shape), np.nan)
        times[known], values[known] = located if len(which) else (times[known], values[known])
        return Crossings(count, times, values)

    def _located(self, states, steps, trajectories, setting: Setting, h: float, t0: float):
        """Times and values of crossings, some at a time; the last few are padded so that one program does for all."""
        times, values = [], []
        dtype = setting.scheme.system.dtype
        for first in range(0, len(steps), _TOGETHER):
            part = np.minimum(np.arange(first, first + _TOGETHER), len(steps) - 1)
            few = jax.tree.map(lambda leaf, part=part: leaf[part], states)
            index = counter(steps[part]), counter(trajectories[part])
            time, value = _locate(self.function, self.at, setting.scheme, setting.path, few, *index, np.asarray(h, dtype), np.asarray(t0, dtype))
            here = len(steps) - first
            times.append(np.asarray(time)[:here])
            values.append(np.asarray(value)[:here])
        return (np.concatenate(times), np.concatenate(values)) if times else (np.zeros(0), np.zeros(0))

    def merge(self, a, b):
        return Crossings(*(np.concatenate([x, y]) for x, y in zip(a, b, strict=True)))

    def report(self, name, summary, clock: Clock):
        shape = summary.values.shape[2:]
        total = int(np.sum(summary.count))
        missed = int(np.sum(np.maximum(summary.count - self.capacity, 0)))
        variables = {
            "count": (("trajectory",), summary.count),
            "time": (("trajectory", "crossing"), summary.times),
            "value": (("trajectory", "crossing", *component_axes(name, shape)), summary.values),
            "missed": ((), np.asarray(missed)),
        }
        text = f"{total} crossings" + (f", {missed} of them beyond the capacity of {self.capacity} per trajectory" if missed else "")
        return ObserverReport(name, variables, {}, text)

    def summary_bytes(self, row, looks, trajectories):
        return 8 * 4 * self.capacity * trajectories


@compiled
def _locate(function: Callable, at: Callable, scheme: Scheme, path: Path, states: State, steps, trajectories, h, t0):
    """The time of each crossing, and what was asked for there."""
    stepper, g = flow(scheme), lambda state, t: value_of(function, scheme, state, t)

    def locate(state, k, trajectory):
        t = kernel.time(t0, h, k)
        dW = path.increment(trajectory, k, scheme.channels, h, scheme.system.dtype, clipped=scheme.path_channels)

        def between(s):
            part = jnp.maximum(s, jnp.finfo(h.dtype).eps)
            return stepper.advance(state, part * h, part * dW, t)[0], t + part * h

        def narrow(_, ends):
            a, b, ga, gb, side = ends
            s = jnp.where(gb != ga, b - gb * (b - a) / (gb - ga), 0.5 * (a + b))
            gs = g(*between(s))
            right = gs * gb > 0  # the root lies to the left of s
            ga = jnp.where(right & (side > 0), 0.5 * ga, ga)  # an end that stays twice counts half
            gb_ = jnp.where(~right & (side < 0), 0.5 * gb, gb)
            return (
                jnp.where(right, a, s),
                jnp.where(right, s, b),
                jnp.where(right, ga, gs),
                jnp.where(right, gs, gb_),
                jnp.where(right, 1.0, -1.0).astype(h.dtype),
            )

        zero, one = jnp.zeros((), h.dtype), jnp.ones((), h.dtype)
        a, b, ga, gb, _ = jax.lax.fori_loop(0, _TURNS, narrow, (zero, one, g(state, t), g(*between(one)), zero))
        z, time = between(jnp.where(jnp.abs(ga) < jnp.abs(gb), a, b))
        return time, value_of(at, scheme, z, time)

    return jax.vmap(locate)(states, steps, trajectories)


@OBSERVERS.register
@checked()
def section(of: Callable, *, at: Callable, direction: int = 1, capacity: int = 100) -> Section:
    """Crossings of of(state) = 0, and the value of at(state) there.

    direction  1 counts crossings from below, −1 from above, 0 both
    capacity   crossings kept per trajectory; more are counted, but not kept
    """
    return Section(of, at, direction, capacity, every=1)
