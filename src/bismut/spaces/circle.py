"""The circle and the torus: angles added and wrapped to [−π, π].

    q ⊕ v = wrap(q + v),    q1 ⊖ q0 = wrap(q1 − q0),    wrap(x) = x − 2π round(x/2π)

The representative stays small, so angles lose no digits however often they wind. Use Euclidean(1) to keep the winding
number.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bismut.registry import SPACES
from bismut.spaces.euclidean import Flat
from bismut.spaces.space import check_dimension

_TURN = 2 * jnp.pi


def wrap(x):
    return x - _TURN * jnp.round(x / _TURN)


class _Angles(Flat):
    points_are = "angles"

    def multiply(self, g, h):
        return wrap(g + h)

    def tau_inv(self, g):
        return wrap(g)

    def project(self, q):
        return wrap(q)


@SPACES.register
@dataclass(frozen=True)
class Circle(_Angles):
    """One angle. Points and velocities are numbers (arrays of shape ())."""

    def origin(self, dtype: Any = float):
        return jnp.zeros((), dtype)

    def random(self, key):
        return jax.random.uniform(key, (), minval=-jnp.pi, maxval=jnp.pi)


@SPACES.register
@dataclass(frozen=True)
class Torus(_Angles):
    """n angles. Points and velocities are arrays of shape (n,)."""

    n: int

    def __post_init__(self):
        check_dimension("Torus", self.n)

    def origin(self, dtype: Any = float):
        return jnp.zeros(self.n, dtype)

    def random(self, key):
        return jax.random.uniform(key, (self.n,), minval=-jnp.pi, maxval=jnp.pi)

    def __repr__(self):
        return f"Torus({self.n})"
