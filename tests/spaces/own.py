"""Spaces as a user writes them, with two verbs and nothing else, whose frames do not commute.

SO(3)        [e_i, e_j] = ε_ijk e_k        free bodies obey Euler's equations
Heisenberg   [e_1, e_2] = e_3              free motion: circles in the plane, seen from above
ℍ²           [e_1, e_2] = −e_1             free motion: the geodesics of the hyperbolic plane
"""

from dataclasses import dataclass

import jax.numpy as jnp

import bismut as bm


@dataclass(frozen=True)
class Rotations(bm.Space):
    """SO(3) by its two verbs alone; everything else follows by differentiation."""

    def origin(self, dtype=float):
        return jnp.eye(3, dtype=dtype)

    def zero(self, dtype=float):
        return jnp.zeros(3, dtype)

    def move(self, q, velocity, time=1.0):
        return bm.SO3().move(q, velocity, time)

    def subtract(self, q1, q0):
        return bm.SO3().subtract(q1, q0)


@dataclass(frozen=True)
class Heisenberg(bm.Space):
    """(x, y, z) with the frame ∂x − (y/2)∂z, ∂y + (x/2)∂z, ∂z."""

    def origin(self, dtype=float):
        return jnp.zeros(3, dtype)

    def zero(self, dtype=float):
        return jnp.zeros(3, dtype)

    def move(self, q, velocity, time=1.0):
        a, b, c = time * velocity
        return q + jnp.stack([a, b, c + 0.5 * (q[0] * b - q[1] * a)])

    def subtract(self, q1, q0):
        a, b, c = q1 - q0
        return jnp.stack([a, b, c - 0.5 * (q0[0] * b - q0[1] * a)])


@dataclass(frozen=True)
class HeisenbergInPieces(bm.Space):
    """The same, with points and velocities ((x, y), z): arrays that the ends of a step couple with each other."""

    def origin(self, dtype=float):
        return jnp.zeros(2, dtype), jnp.zeros(1, dtype)

    def zero(self, dtype=float):
        return self.origin(dtype)

    def move(self, q, velocity, time=1.0):
        (x, z), (a, c) = q, velocity
        return x + time * a, z + time * (c + 0.5 * (x[0] * a[1] - x[1] * a[0]))

    def subtract(self, q1, q0):
        a = q1[0] - q0[0]
        return a, q1[1] - q0[1] - 0.5 * (q0[0][0] * a[1] - q0[0][1] * a[0])


@dataclass(frozen=True)
class HalfPlane(bm.Space):
    """The hyperbolic plane, (x, y) with y > 0, and the frame y∂x, y∂y:   (x, y) ⊕ (a, b) = (x + y a e^{b/2}, y e^b)."""

    def origin(self, dtype=float):
        return jnp.array([0.0, 1.0], dtype)

    def zero(self, dtype=float):
        return jnp.zeros(2, dtype)

    def move(self, q, velocity, time=1.0):
        a, b = time * velocity
        return jnp.stack([q[0] + q[1] * a * jnp.exp(b / 2), q[1] * jnp.exp(b)])

    def subtract(self, q1, q0):
        return jnp.stack([(q1[0] - q0[0]) / jnp.sqrt(q0[1] * q1[1]), jnp.log(q1[1] / q0[1])])
