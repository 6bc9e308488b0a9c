"""Count, mean, second moment and range of a stream, mergeable in any grouping (Chan, Golub & LeVeque); and long sums (Kahan).

n = n_a + n_b,   δ = m_b − m_a,   m = m_a + δ n_b/n,   M2 = M2_a + M2_b + δ² n_a n_b/n

Moments are computed on the host and in double precision, whatever the precision of the run; sums within the compiled program, in its precision.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_LOCAL = threading.local()
_REUSED = 2**20  # bytes of an array that a thread may keep between runs


class Moments(NamedTuple):
    """Statistics over trajectories."""

    n: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    low: np.ndarray
    high: np.ndarray


def gather(values, counted: np.ndarray | None = None, axis: int = 0) -> Moments:
    """The moments along an axis of those values that are counted; `counted` has the axes of the values up to this one."""
    values = np.asarray(values, float)
    # Trajectories last and close together: a row is summed in pairs, the same way whatever is beside it.
    values = values.transpose(*range(axis), *range(axis + 1, values.ndim), axis)
    if values.strides[-1] != values.itemsize:
        values = np.ascontiguousarray(values)
    with np.errstate(over="ignore", invalid="ignore"):  # of a trajectory about to fail; infinity says so
        return _all(values) if counted is None or counted.all() else _some(values, counted, axis)


def _some(values: np.ndarray, counted: np.ndarray, axis: int) -> Moments:
    weight = counted.reshape(*counted.shape[:axis], *[1] * (values.ndim - counted.ndim), counted.shape[axis])
    n = np.broadcast_to(weight.sum(-1), values.shape[:-1])
    safe = np.where(weight, values, 0.0)
    mean = safe.sum(-1) / np.maximum(n, 1)
    second = (np.where(weight, safe - mean[..., None], 0.0) ** 2).sum(-1)
    return Moments(n, mean, second, np.where(weight, values, np.inf).min(-1), np.where(weight, values, -np.inf).max(-1))


def _all(values: np.ndarray) -> Moments:
    n = values.shape[-1]
    mean = values.sum(-1) / n
    deviation = np.subtract(values, mean[..., None], out=scratch(values.shape))
    second = np.multiply(deviation, deviation, out=deviation).sum(-1)  # `einsum` would take the terms in an order of the processor's
    return Moments(np.full(mean.shape, n), mean, second, values.min(-1), values.max(-1))


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of both streams together."""
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    with np.errstate(invalid="ignore"):  # two infinite means
        shift = np.where(a.mean == b.mean, 0.0, b.mean - a.mean)
    return Moments(n, a.mean + shift * share, a.second + b.second + shift**2 * a.n * share, np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def joined(parts: list[Moments]) -> Moments:
    """Moments that follow each other along the first axis."""
    return parts[0] if len(parts) == 1 else Moments(*(np.concatenate(leaves) for leaves in zip(*parts, strict=True)))


class Joint(NamedTuple):
    """Number, means (..., d) and scatter (..., d, d) of several quantities over trajectories."""

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray


def gather_joint(values: np.ndarray, counted: np.ndarray) -> Joint:
    """Of values (n, ..., d)."""
    some = np.asarray(values, float)[counted]
    mean = some.mean(0) if len(some) else np.zeros(some.shape[1:])
    deviation = some - mean
    scatter = np.zeros((*some.shape[1:], some.shape[-1]))
    for i in range(some.shape[-1]):
        scatter[..., i, :] = (deviation[..., i : i + 1] * deviation).sum(0)
    return Joint(np.asarray(len(some)), mean, scatter)


def merge_joint(a: Joint, b: Joint) -> Joint:
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    shift = b.mean - a.mean
    return Joint(n, a.mean + shift * share, a.scatter + b.scatter + a.n * share * shift[..., :, None] * shift[..., None, :])


class KahanSum(NamedTuple):
    """A long sum, s ← s + x; in single precision with what rounding took from it, without which ten million samples stop growing."""

    total: Any
    lost: Any

    @classmethod
    def zero(cls, like: Any) -> KahanSum:
        blank = jnp.zeros_like(like)
        return cls(blank, blank if blank.dtype == np.float32 else ())

    def add(self, x: jax.Array) -> KahanSum:
        if isinstance(self.lost, tuple):
            return KahanSum(self.total + x, ())
        x = x - self.lost
        total = self.total + x
        return KahanSum(total, (total - self.total) - x)

    def value(self) -> np.ndarray:
        """On the host, in double precision."""
        total = np.asarray(self.total, float)
        return total if isinstance(self.lost, tuple) else np.asarray(total - np.asarray(self.lost, float))


def scratch(shape: tuple[int, ...], dtype: Any = float) -> np.ndarray:
    """An array of any content, valid until this thread asks again.

    Fresh memory for every portion of rows costs more than what is computed in it: the system hands out pages one by one (3 ns a number against 0.4).
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array: np.ndarray | None = getattr(_LOCAL, "array", None)
    if array is None or array.size < size:
        array = _LOCAL.array = np.empty(size, np.uint8)
    return array[:size].view(dtype).reshape(shape)


def release_scratch() -> None:
    """Free it if it is large: threads outlive a run."""
    if getattr(_LOCAL, "array", None) is not None and _LOCAL.array.size > _REUSED:
        del _LOCAL.array
