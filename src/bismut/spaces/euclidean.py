"""ℝⁿ:  q ⊕ v = q + v,  q1 ⊖ q0 = q1 − q0. The translation group; its bracket and dτ are trivial."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bismut.registry import SPACES
from bismut.spaces.space import Group, check_dimension, check_retraction


class Flat(Group):
    """Abelian groups written additively."""

    def using(self, retraction):
        check_retraction(retraction)  # every retraction is the addition
        return self

    def zero(self, dtype: Any = float):
        return self.origin(dtype)

    def cells(self):
        return (1,)

    def translation(self, q, direction):
        return jnp.broadcast_to(jnp.asarray(direction, q.dtype), q.shape)

    def right_rotation(self, q, axis):
        return jnp.zeros_like(q)

    def covector(self, q, slope):
        return slope

    def tau(self, x):
        return x

    def tau_inv(self, g):
        return g

    def multiply(self, g, h):
        return g + h

    def inverse(self, g):
        return -g

    def dtau_inv(self, x, y):
        return y

    def dtau_inv_adjoint(self, x, mu):
        return mu

    def Ad(self, g, x):
        return x

    def Ad_star(self, g, mu):
        return mu

    def bracket(self, x, y):
        return jnp.zeros_like(y)

    def ad_star(self, x, mu):
        return jnp.zeros_like(mu)


@SPACES.register
@dataclass(frozen=True)
class Euclidean(Flat):
    """ℝⁿ. Points and velocities are arrays of shape (n,)."""

    n: int
    points_are = "vectors"

    def __post_init__(self):
        check_dimension("Euclidean", self.n)

    def origin(self, dtype: Any = float):
        return jnp.zeros(self.n, dtype)

    def random(self, key):
        return jax.random.normal(key, (self.n,))

    def left_rotation(self, q, axis):
        if self.n == 3:
            return jnp.cross(jnp.asarray(axis, q.dtype), q)
        if self.n == 2:
            return jnp.asarray(axis, q.dtype) * jnp.array([-q[1], q[0]])
        return super().left_rotation(q, axis)

    def hint(self, shape):
        return "Write the single coordinate as an array of one number, or use Circle() for an angle." if shape == () and self.n == 1 else ""

    def __repr__(self):
        return f"Euclidean({self.n})"
