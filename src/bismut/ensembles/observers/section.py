"""Section crossings: where a function of the state changes its sign, located between steps.

    g(z(s)) = 0,    z(s) = φ_{s h}(s ΔW)(z_k),    0 < s ≤ 1

The state between two steps is that of a shorter step of the same scheme, driven by the same share of the increment: at s = 0 it is the state before
and at s = 1 the state after. While the run goes on only the states before a crossing are kept; increments are functions of the step, so they are
drawn again at the end and s is found there, by regula falsi with halving (Illinois), once per crossing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.observable import Measure, measure
from bismut.ensembles.observers.report import Report, component_axes
from bismut.ensembles.observers.watcher import Clock, Watcher
from bismut.errors import DomainError, ShapeError
from bismut.flows import flow

_TURNS = 12  # of regula falsi; its error shrinks by more than half the digits in two


class Kept(NamedTuple):
    """The last state and value; how many crossings there were; and state and step before each of the first so many."""

    last: Any
    value: Any
    count: Any
    before: Any
    step: Any


class Crossings(NamedTuple):
    """Per trajectory: how many there were, and time and what was asked for at the first so many."""

    count: Any
    times: Any
    values: Any


class Section(Watcher):
    """Crossings of g(state) = 0: upwards, downwards or both."""

    function: Any = eqx.field(static=True)
    at: Any = eqx.field(static=True)
    direction: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    measures: tuple[Measure, ...] = ()

    def bound(self, scheme, name, example):
        measures = tuple(measure(function, scheme, name, example) for function in (self.function, self.at))
        if measures[0].shape(example) != ():
            raise ShapeError(f"observe[{name!r}]: the section must be one number g(state), but an array of shape {measures[0].shape(example)} came.")
        return eqx.tree_at(lambda w: w.measures, self, measures, is_leaf=lambda x: x == ())

    def begin(self, setting, sight):
        n = sight.counted.shape[0]
        before = jax.tree.map(lambda leaf: jnp.zeros((n, self.capacity, *leaf.shape[1:]), leaf.dtype), sight.state)
        value = self.measures[0](sight.state, sight.t)
        return Kept(sight.state, value, jnp.zeros(n, jnp.int32), before, jnp.zeros((n, self.capacity, 2), jnp.uint32))

    def look(self, memory, setting, sight):
        value = self.measures[0](sight.state, sight.t)
        up, down = (memory.value < 0) & (value >= 0), (memory.value > 0) & (value <= 0)
        crossed = (up if self.direction > 0 else down if self.direction < 0 else up | down) & sight.counted
        # The crossing lies in the step that led here.
        low = sight.step[0] - jnp.uint32(1)
        step = jnp.stack([low, sight.step[1] - (sight.step[0] == 0).astype(jnp.uint32)])
        rows = jnp.arange(memory.count.shape[0])
        place = jnp.where(crossed, memory.count, self.capacity)  # past the end: dropped
        put = lambda kept, new: kept.at[rows, place].set(new, mode="drop")
        before = jax.tree.map(put, memory.before, memory.last)
        steps = put(memory.step, jnp.broadcast_to(step, (rows.shape[0], 2)))
        return Kept(sight.state, value, memory.count + crossed, before, steps)

    def end(self, memory, setting, sight, index):
        scheme, path, h = setting.scheme, setting.path, setting.h
        stepper, (g, at) = flow(scheme), self.measures

        def locate(state, step, trajectory):
            k = (step[0], step[1])
            dW, t = path.increment(trajectory, k, scheme.channels, h, scheme.system.dtype, clipped=scheme.clipped), setting.time(k)

            def between(s):
                part = jnp.maximum(s, jnp.finfo(h.dtype).eps)
                return stepper.advance(state, part * h, part * dW, t)[0], t + part * h

            def narrow(_, ends):
                a, b, ga, gb, side = ends
                s = jnp.where(gb != ga, b - gb * (b - a) / (gb - ga), 0.5 * (a + b))
                z, time = between(s)
                gs = g.one(z, time)
                right = gs * gb > 0  # the root lies to the left of s
                ga = jnp.where(right & (side > 0), 0.5 * ga, ga)  # an end that stays twice counts half
                gb_ = jnp.where(~right & (side < 0), 0.5 * gb, gb)
                return (
                    jnp.where(right, a, s),
                    jnp.where(right, s, b),
                    jnp.where(right, ga, gs),
                    jnp.where(right, gs, gb_),
                    jnp.where(right, 1.0, -1.0),
                )

            zero, one = jnp.zeros((), h.dtype), jnp.ones((), h.dtype)
            end, time = between(one)
            start = (zero, one, g.one(state, t), g.one(end, time), zero)
            a, b, ga, gb, _ = jax.lax.fori_loop(0, _TURNS, narrow, start)
            z, time = between(jnp.where(jnp.abs(ga) < jnp.abs(gb), a, b))
            return time, at.one(z, time)

        each = jax.vmap(jax.vmap(locate, (0, 0, None)))
        times, values = each(memory.before, memory.step, index)
        known = jnp.arange(self.capacity) < memory.count[:, None]
        hide = lambda x: jnp.where(known.reshape(*known.shape, *[1] * (x.ndim - 2)), x, jnp.nan)
        return Crossings(memory.count, hide(times), hide(values))

    def merge(self, a, b):
        return Crossings(*(np.concatenate([x, y]) for x, y in zip(a, b, strict=True)))

    def report(self, name, summary, clock: Clock):
        summary = Crossings(*(np.asarray(part)[: clock.trajectories] for part in summary))
        shape = summary.values.shape[2:]
        total = int(np.sum(summary.count))
        missed = int(np.sum(np.maximum(summary.count - self.capacity, 0)))
        variables = {
            "count": (("trajectory",), summary.count),
            "time": (("trajectory", "crossing"), summary.times),
            "value": (("trajectory", "crossing", *component_axes(name, shape)), summary.values),
            "missed": ((), np.asarray(missed)),
        }
        words = f"{total} crossings" + (f", {missed} of them beyond the capacity of {self.capacity} per trajectory" if missed else "")
        return Report(name, variables, {}, words)


def section(of: Callable, *, at: Callable, direction: int = 1, capacity: int = 100) -> Section:
    """Crossings of of(state) = 0, and the value of at(state) there.

    direction  1 counts crossings from below, −1 from above, 0 both
    capacity   crossings kept per trajectory; more are counted, but not kept
    """
    if direction not in (-1, 0, 1) or not isinstance(capacity, int) or capacity < 1:
        raise DomainError(f"direction must be −1, 0 or 1 and capacity a whole number ≥ 1, but {direction} and {capacity} came.")
    return Section(of, at, direction, capacity, every=1)
