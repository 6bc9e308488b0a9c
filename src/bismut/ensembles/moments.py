"""Count, mean, second moment and range of a stream, mergeable in any grouping (Chan, Golub & LeVeque).

n = n_a + n_b,   δ = m_b − m_a,   m = m_a + δ n_b/n,   M2 = M2_a + M2_b + δ² n_a n_b/n

On the host and in double precision, whatever the precision of the run.
"""

from typing import NamedTuple

import numpy as np

from bismut.ensembles.scratch import scratch


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
        return _whole(values) if counted is None or counted.all() else _some(values, counted, axis)


def _some(values: np.ndarray, counted: np.ndarray, axis: int) -> Moments:
    weight = counted.reshape(*counted.shape[:axis], *[1] * (values.ndim - counted.ndim), counted.shape[axis])
    n = np.broadcast_to(weight.sum(-1), values.shape[:-1])
    safe = np.where(weight, values, 0.0)
    mean = safe.sum(-1) / np.maximum(n, 1)
    second = (np.where(weight, safe - mean[..., None], 0.0) ** 2).sum(-1)
    return Moments(n, mean, second, np.where(weight, values, np.inf).min(-1), np.where(weight, values, -np.inf).max(-1))


def _whole(values: np.ndarray) -> Moments:
    n = values.shape[-1]
    mean = values.sum(-1) / n
    apart = np.subtract(values, mean[..., None], out=scratch(values.shape))
    second = np.einsum("...n,...n->...", apart, apart)
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
    kept = np.asarray(values, float)[counted]
    mean = kept.mean(0) if len(kept) else np.zeros(kept.shape[1:])
    apart = kept - mean
    return Joint(np.asarray(len(kept)), mean, np.einsum("n...i,n...j->...ij", apart, apart))


def merge_joint(a: Joint, b: Joint) -> Joint:
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    shift = b.mean - a.mean
    return Joint(n, a.mean + shift * share, a.scatter + b.scatter + a.n * share * shift[..., :, None] * shift[..., None, :])
