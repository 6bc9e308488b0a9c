"""Rigid motions of bodies (x, R), with velocities along the axes of the body.

    (x, R) ⊕ (v, w) = (x + R V v, R exp w),      (exp w, V v) = exp (w, v) on SE(3)

The points are those of ℝ³ × SO(3), and the moves those of SE(3): here the two halves of a velocity may be coupled by constants that belong to a body.
Every verb is SE(3)'s, with the halves of points and velocities exchanged.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from bismut.spaces.euclidean import Euclidean
from bismut.spaces.rigid_motion import SE3
from bismut.spaces.rotation import SO3, RetractedGroup


@dataclass(frozen=True, repr=False)
class BodyMotion(RetractedGroup):
    """Rigid motions of space. Points are pairs (x (3,), R (3, 3)), velocities arrays (6,): linear, then angular velocity in the body."""

    retraction: str = "exp"

    @property
    def _motions(self) -> SE3:
        return SE3(self.retraction)

    def cells(self):
        return (6,)

    def origin(self, dtype: Any = float):
        return _swapped(self._motions.origin(dtype))

    def zero(self, dtype: Any = float):
        return jnp.zeros(6, dtype)

    def tau(self, x):
        return _swapped(self._motions.tau(_turned(x)))

    def tau_inv(self, g):
        return _turned(self._motions.tau_inv(_swapped(g)))

    def dtau_inv(self, x, y):
        return _turned(self._motions.dtau_inv(_turned(x), _turned(y)))

    def multiply(self, g, h):
        return _swapped(self._motions.multiply(_swapped(g), _swapped(h)))

    def inverse(self, g):
        return _swapped(self._motions.inverse(_swapped(g)))

    def Ad(self, g, x):
        return _turned(self._motions.Ad(_swapped(g), _turned(x)))

    def bracket(self, x, y):
        return _turned(self._motions.bracket(_turned(x), _turned(y)))

    def move(self, q, velocity, time=1.0):
        return _swapped(self._motions.move(_swapped(q), _turned(velocity), time))

    def nudge(self, q, e):
        return _swapped(self._motions.nudge(_swapped(q), _turned(e)))

    def random(self, key):
        return _swapped(self._motions.random(key))

    def project(self, q):
        return _swapped(self._motions.project(_swapped(q)))

    def check(self, q, name="q"):
        return (Euclidean(3) * SO3()).check(q, name)


def _swapped(q):
    return q[1], q[0]


def _turned(v):
    return jnp.concatenate([v[3:], v[:3]])
