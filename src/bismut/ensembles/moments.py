"""Count, mean, second moment and range of a stream, mergeable in any grouping (Chan, Golub & LeVeque).

n = n_a + n_b,   δ = m_b − m_a,   m = m_a + δ n_b/n,   M2 = M2_a + M2_b + δ² n_a n_b/n
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class Moments(NamedTuple):
    """Statistics over trajectories."""

    n: Array | np.ndarray
    mean: Array | np.ndarray
    second: Array | np.ndarray
    low: Array | np.ndarray
    high: Array | np.ndarray


def gather(values: Float[Array, "n ..."], counted: Bool[Array, " n"]) -> Moments:
    """The moments of those values that are counted."""
    weight = counted.reshape(-1, *[1] * (values.ndim - 1))
    n = jnp.sum(counted)
    safe = jnp.where(weight, values, 0.0)
    mean = jnp.sum(safe, 0) / jnp.maximum(n, 1)
    second = jnp.sum(jnp.where(weight, (values - mean) ** 2, 0.0), 0)
    low, high = jnp.min(jnp.where(weight, values, jnp.inf), 0), jnp.max(jnp.where(weight, values, -jnp.inf), 0)
    return Moments(jnp.broadcast_to(n, mean.shape), mean, second, low, high)


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of both streams together."""
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    shift = b.mean - a.mean
    return Moments(n, a.mean + shift * share, a.second + b.second + shift**2 * a.n * share, np.minimum(a.low, b.low), np.maximum(a.high, b.high))
