"""Derivatives by any number of parameters, backwards, in memory that does not grow with time.

    λ_N = ∂O/∂z_N,      λ_k = λ_{k+1} ∂φ/∂z,      dO/dθ = Σ_k λ_{k+1} ∂φ/∂θ

The way back needs the states of the way there. Noise is a function, so any stretch of a trajectory can be made again from any state on it: a fixed
number of states is kept, s of them, and with at most r passes over each stretch

    (s + r)!/(s! r!)  stretches

are turned around, 2925 with s = 24 and r = 3 (Griewank & Walther). Stretches are made again by the native engine, to the bit. (Steps could be undone
instead: but a bath forgets, its undoing amplifies round-off by e^{γt}, and a state would have to be kept every few 1/γ: memory that grows with time.)
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled, partition
from bismut.engines.engine import Course, Schedule
from bismut.ensembles.observable import value_of
from bismut.ensembles.starts import start_at
from bismut.ensembles.task import build_task, increments_of, native_or_xla
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path, advance, counter
from bismut.response.parameters import Parameters
from bismut.response.tangents import mass_dependent_momenta, start_momentum

STRETCH = 64  # steps turned around at a time
SLOTS = 24  # states kept
_BLOCK, _FEW = 256, 32  # trajectories of a block


class Backward(NamedTuple):
    """Of every trajectory that finished: mean over looks of O (n, M), its gradient (n, P, M), how many failed, states kept at most, passes, and the
    engine of the way there; the way back is XLA's."""

    value: np.ndarray
    gradient: np.ndarray
    failed: int
    held: int
    passes: int
    engine: str


class _LookTimes(NamedTuple):
    """When O is looked at: after steps burn_in + every, burn_in + 2 every, ..., up to the last, each with weight 1/count."""

    burn_in: Any
    every: Any
    last: Any


def passes_for(stretches: int, slots: int = SLOTS) -> int:
    """How often a stretch is made again at most."""
    r = 0
    while comb(slots + r, r) < stretches:
        r += 1
    return r


class _Way:
    """A block of trajectories, there and back."""

    def __init__(self, forward: Any, turn: Any, ends: list[int]):
        self.forward, self.turn, self.ends = forward, turn, ends
        self.held = self.most = 0

    def back(self, a: int, b: int, state: Any, slots: int, cotangent: Any) -> Any:
        """The cotangent at stretch a from that at stretch b; `state` is the one at a."""
        self.held += 1
        self.most = max(self.most, self.held)
        while b - a > 1:
            r = passes_for(b - a, slots)
            middle = a + max(1, min(b - a - 1, comb(slots + r - 1, max(r - 1, 0)))) if slots else b - 1
            cotangent = self.back(middle, b, self.forward(state, self.ends[a], self.ends[middle]), max(slots - 1, 0), cotangent)
            b = middle
        self.held -= 1
        return self.turn(state, self.ends[a], cotangent)


def backward(
    scheme: Scheme,
    start: Any,
    of: Any,
    parameters: Parameters,
    path: Path,
    *,
    step: float,
    steps: int,
    every: int,
    burn_in: int,
    first: int,
    trajectories: int,
    t0: float,
    slots: int = SLOTS,
) -> Backward:
    """Values and gradients of single trajectories."""
    dtype = scheme.system.dtype
    theta, h, begin = jnp.asarray(parameters.vector(scheme), dtype), jnp.asarray(step, dtype), jnp.asarray(t0, dtype)
    starts, total = start_at(scheme, start, t0), burn_in + (steps // every) * every
    looks = _LookTimes(*(jnp.asarray(n, jnp.uint32) for n in (burn_in, every, total)))
    count = steps // every
    ends = [*range(0, total, STRETCH), total]
    shared = (scheme, path)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), starts.example)
    program, engine = native_or_xla("stretch", shared, one, lambda: build_task(shared, one, dtype, **increments_of(path, dtype)), _BLOCK)
    course, (numbers, _) = Course(float(step), float(t0), path.phase), partition(shared)
    values, gradients, failed, most = [], [], 0, 0
    width = _FEW if trajectories <= _FEW else _BLOCK  # blocks are filled up, so that two programs serve all numbers
    for offset in range(0, trajectories, width):
        real = min(width, trajectories - offset)
        which = np.minimum(np.arange(offset, offset + width), trajectories - 1)
        index = (first + which).astype(np.uint64)
        states = jax.tree.map(np.asarray, starts.many(path, index, which))
        n = width

        def forward(state, a, b, index=index):
            batch = program.begin(course, numbers, index, state, a)
            batch, _ = program.advance(course, numbers, batch, Schedule(1, b - a))
            return program.states(batch)

        def turn(state, a, cotangent, index=index):
            return _turned(scheme, of, parameters, path, theta, state, counter(index), jnp.asarray(a, jnp.uint32), h, begin, looks, cotangent)

        size = jax.eval_shape(lambda s: jnp.ravel(value_of(of, scheme, s, begin)), one).shape[0]
        blank = jax.tree.map(lambda leaf, n=n, size=size: np.zeros((n, size, *leaf.shape[1:]), leaf.dtype), states)
        zero = (blank, np.zeros((n, size, parameters.count)), np.zeros((n, size)))
        way = _Way(forward, turn, ends)
        at_start, gradient, value = way.back(0, len(ends) - 1, states, slots, zero)
        gradient = np.asarray(gradient) + _through_start(scheme, start, parameters, theta, path, first + which, which, t0, at_start)
        value, gradient = np.asarray(value) / count, np.moveaxis(gradient, 1, 2) / count
        good = np.isfinite(value).all(1) & np.isfinite(gradient).all((1, 2)) & (np.arange(width) < real)
        values.append(value[good])
        gradients.append(gradient[good])
        failed, most = failed + real - int(good.sum()), max(most, way.most)
    return Backward(np.concatenate(values), np.concatenate(gradients), failed, most, passes_for(len(ends) - 1, slots), engine)


@compiled
def _turned(
    scheme: Scheme, of: Any, parameters: Parameters, path: Path, theta, states: State, index: Any, a, h, t0, looks: _LookTimes, cotangent: Any
):
    """One stretch from step a, there and back: cotangents (n, M, ...) of its first state, gradients and values with what it adds."""
    dtype = scheme.system.dtype
    after, gradient, value = cotangent

    def walk(theta, state, i):
        new = parameters.put(scheme, theta)

        def one(now, _):
            carry, k, total = now
            t = kernel.time(t0, h, k)
            dW = path.increment(i, k, scheme.channels, h, dtype, clipped=scheme.path_channels)
            stepped = kernel.step(new, carry, h, dW, t)[0]
            inside = k[0] < looks.last
            carry = jax.tree.map(lambda a, b: jnp.where(inside, a, b), stepped, carry)
            k = advance(k, 1)
            seen = inside & (k[0] > looks.burn_in) & ((k[0] - looks.burn_in) % looks.every == 0)
            O = jnp.ravel(value_of(of, new, carry.state, kernel.time(t0, h, k)))
            return (carry, k, total + jnp.where(seen, O, 0.0)), None

        begun = kernel.begin(new, state, kernel.time(t0, h, (a, jnp.zeros_like(a))))
        blank = jnp.zeros(jax.eval_shape(lambda: jnp.ravel(value_of(of, new, state, t0))).shape, dtype)
        (carry, _, total), _ = jax.lax.scan(one, (begun, (a, jnp.zeros_like(a)), blank), length=STRETCH)
        return carry.state, total

    def back(state, i, after):
        (_, total), pull = jax.vjp(lambda theta, state: walk(theta, state, i), theta, state)
        directions = jnp.eye(total.shape[0], dtype=dtype)
        slope, before = jax.vmap(lambda after, e: pull((after, e)))(after, directions)
        return before, slope, total

    before, slope, total = jax.vmap(back)(states, index, after)
    return before, gradient + slope, value + total


def _through_start(scheme: Scheme, start: Any, parameters: Parameters, theta, path: Path, numbers, places, t0: float, at_start: State) -> np.ndarray:
    """What the start itself owes to the parameters, λ_0 ∂z_0/∂θ: (n, M, P)."""
    if not mass_dependent_momenta(start):
        return np.zeros(())
    return np.asarray(_pulled_start(scheme, start, parameters, theta, path, counter(numbers), t0, at_start.p))


@compiled
def _pulled_start(scheme: Scheme, start: Any, parameters: Parameters, theta, path: Path, index: Any, t0: float, momenta: Any) -> Any:
    def one(i, cotangents):
        pull = jax.vjp(lambda theta: start_momentum(parameters.put(scheme, theta), start, path, i, t0), theta)[1]
        return jax.vmap(lambda c: pull(c)[0])(cotangents)

    return jax.vmap(one)(index, momenta)
