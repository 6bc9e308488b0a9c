"""Quantiles of an observable over trajectories and time, without knowing its range.

    bin j = [j 2^e, (j + 1) 2^e),     e the smallest exponent for which all values met so far fit into 4096 bins

When a value falls outside, e is raised and bins are joined in pairs. Which e that is depends only on the least and largest value, not on their
order, so blocks merge exactly and in any grouping. A quantile is right to one bin, which is between 1/4096 and 1/1024 of the whole range.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.errors import DomainError

BINS = 4096
_FINEST = -1000


class Sketch(NamedTuple):
    """Counts of bins first, first + 1, ... of width 2^e. An empty one has low > high."""

    counts: Any
    first: Any
    e: Any
    low: Any
    high: Any


def empty(dtype) -> Sketch:
    zero = jnp.zeros((), jnp.int32)
    return Sketch(jnp.zeros(BINS, jnp.int32), jnp.zeros((), dtype), zero + _FINEST, jnp.asarray(jnp.inf, dtype), jnp.asarray(-jnp.inf, dtype))


def _exponent(low, high, xp) -> Any:
    """The smallest e with floor(high/2^e) − floor(low/2^e) < BINS, and not so small that the quotients are no whole numbers."""
    digits = 52 if low.dtype == np.float64 else 23
    span, size = xp.maximum(high - low, 0), xp.maximum(xp.abs(low), xp.abs(high))
    _, wide = xp.frexp(span)
    _, large = xp.frexp(size)
    e = xp.where(span > 0, wide - 12, _FINEST)  # 2^(wide−1) ≤ span: at least 2048 bins are filled
    e = xp.maximum(xp.maximum(e, large - digits + 1), _FINEST)
    fits = xp.floor(xp.ldexp(high, -e)) - xp.floor(xp.ldexp(low, -e)) < BINS
    return xp.where(fits, e, e + 1)


def add(sketch: Sketch, x: Float[Array, " n"], counted) -> Sketch:
    """The sketch with the counted values added."""
    low = jnp.minimum(sketch.low, jnp.min(jnp.where(counted, x, jnp.inf)))
    high = jnp.maximum(sketch.high, jnp.max(jnp.where(counted, x, -jnp.inf)))
    some = low <= high
    e = jnp.where(some, _exponent(jnp.where(some, low, 0), jnp.where(some, high, 0), jnp), sketch.e)
    e = jnp.maximum(e, sketch.e).astype(jnp.int32)
    first = jnp.floor(jnp.ldexp(jnp.where(some, low, 0), -e))
    centres = sketch.first + jnp.arange(BINS)
    moved = jnp.clip(jnp.floor(jnp.ldexp(centres, sketch.e - e)) - first, 0, BINS - 1).astype(jnp.int32)
    counts = jnp.zeros(BINS, jnp.int32).at[moved].add(sketch.counts)
    place = jnp.clip(jnp.floor(jnp.ldexp(jnp.where(counted, x, low), -e)) - first, 0, BINS - 1).astype(jnp.int32)
    return Sketch(counts.at[place].add(counted.astype(jnp.int32)), first, e, low, high)


def merge(a: Sketch, b: Sketch) -> Sketch:
    """The sketch of both streams, on the host."""
    if b.low > b.high:
        return a
    if a.low > a.high:
        return b
    low, high = min(a.low, b.low), max(a.high, b.high)
    e = max(int(_exponent(np.asarray(low), np.asarray(high), np)), int(a.e), int(b.e))
    first = np.floor(np.ldexp(low, -e))
    counts = np.zeros(BINS, np.int64)
    for part in (a, b):
        centres = part.first + np.arange(BINS)
        place = np.clip(np.floor(np.ldexp(centres, int(part.e) - e)) - first, 0, BINS - 1).astype(int)
        np.add.at(counts, place, np.asarray(part.counts, np.int64))
    return Sketch(counts, first, np.asarray(e), np.asarray(low), np.asarray(high))


def quantile(sketch: Sketch, p: Sequence[float]) -> np.ndarray:
    """Values below which a share p lies, interpolated within a bin."""
    counts = np.asarray(sketch.counts, np.int64)
    if not counts.sum():
        return np.full(len(p), np.nan)
    edges = np.ldexp(np.asarray(sketch.first, float) + np.arange(BINS + 1), int(sketch.e))
    total = np.concatenate([[0], np.cumsum(counts)])
    found = np.interp(np.asarray(p) * total[-1], total, edges)
    return np.clip(found, float(sketch.low), float(sketch.high))


class Quantiles(Measuring):
    """Quantiles of every component of an observable."""

    levels: tuple[float, ...] = eqx.field(static=True)

    def begin(self, setting, sight):
        x = self.values(sight)
        one = empty(setting.scheme.system.dtype)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*x.shape[1:], *leaf.shape)), one)

    def look(self, memory, setting, sight):
        return _each(memory, self.values(sight), sight.counted)

    def merge(self, a, b):
        shape = a.e.shape
        parts = [merge(*(Sketch(*(leaf[i] for leaf in s)) for s in (a, b))) for i in np.ndindex(shape)]
        return Sketch(*(np.stack(leaves).reshape((*shape, *np.shape(leaves[0]))) for leaves in zip(*parts, strict=True)))

    def report(self, name, summary, clock):
        shape = summary.e.shape
        values = np.stack([quantile(Sketch(*(leaf[i] for leaf in summary)), self.levels) for i in np.ndindex(shape)])
        values = np.moveaxis(values.reshape(*shape, len(self.levels)), -1, 0)
        axes = component_axes(name, shape)
        variables = {"quantile": (("level", *axes), values), "min": (axes, np.asarray(summary.low)), "max": (axes, np.asarray(summary.high))}
        variables["count"] = (axes, np.asarray(summary.counts).sum(-1))
        return Report(name, variables, {"level": np.asarray(self.levels)}, f"quantiles {short(values)}")


def _each(memory: Sketch, x: Float[Array, "n ..."], counted) -> Sketch:
    """A sketch per component."""
    shape = x.shape[1:]
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(shape) :]), memory)
    new = jax.vmap(add, (0, 1, None))(flat, x.reshape(x.shape[0], -1), counted)
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), new)


def quantiles(of, *, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), every: int | None = None) -> Quantiles:
    """Quantiles of a function of a State over trajectories and time; `levels` are the shares that lie below."""
    if not levels or any(not 0 <= p <= 1 for p in levels):
        raise DomainError(f"levels must lie between 0 and 1, but {levels} came.")
    return Quantiles(of, tuple(float(p) for p in levels), every=every)
