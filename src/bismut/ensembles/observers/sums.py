"""Long sums in the precision of the run.

    s ← s + x,        in single precision with what was lost in rounding carried along (Kahan)

Ten million samples added in single precision without that stop growing.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Sum(NamedTuple):
    """A sum, and in single precision what rounding took from it."""

    total: Any
    lost: Any


def zero(like) -> Sum:
    blank = jnp.zeros_like(like)
    return Sum(blank, blank if blank.dtype == np.float32 else ())


def add(to: Sum, x: jax.Array) -> Sum:
    if isinstance(to.lost, tuple):
        return Sum(to.total + x, ())
    x = x - to.lost
    total = to.total + x
    return Sum(total, (total - to.total) - x)


def value(of: Sum) -> np.ndarray:
    """On the host, in double precision."""
    total = np.asarray(of.total, float)
    return total if isinstance(of.lost, tuple) else np.asarray(total - np.asarray(of.lost, float))
