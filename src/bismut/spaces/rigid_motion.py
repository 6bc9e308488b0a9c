"""Rigid motions of the plane and of space.

SE(3), x = (w, v):

    exp x = (exp w, dexp_w v)                       dexp⁻¹_x = [[D, 0], [∂_v D, D]],   D = dexp⁻¹_w on SO(3)
    cay x = (cay w, (1 − ŵ/2)⁻¹ v)                  dcay⁻¹_x = [[1 − ŵ/2 + wwᵀ/4, 0], [−½(1 − ŵ/2)v̂, 1 − ŵ/2]]

The lower block of dexp⁻¹ is the derivative of D in the direction v, because ad_x = [[ŵ, 0], [v̂, ŵ]] and dexp⁻¹ is a power series in it.
Points are pairs (R, x) of a rotation matrix and a position; velocities are (angular, linear) in the body frame, one array.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.registry import SPACES
from bismut.spaces import rotation, series
from bismut.spaces.rotation import SO2, SO3, RetractedGroup, cross, orthonormal
from bismut.spaces.space import Group
from bismut.tracing import traced


class _RigidMotion(RetractedGroup):
    """A semidirect product of rotations and translations."""

    points_are = "pairs (R, x)"
    rotations: ClassVar[Group]

    def cells(self):
        return (self.dim,)

    def translation(self, q, direction):
        R, _ = q
        turn = jax.tree.leaves(self.rotations.zero(R.dtype))[0]
        return jnp.concatenate([jnp.ravel(turn), R.T @ jnp.asarray(direction, R.dtype)])

    def left_rotation(self, q, axis):
        # Ad_{g⁻¹} of the turn (axis, 0)
        turn = jnp.ravel(jnp.asarray(axis, q[0].dtype))
        return self.Ad(self.inverse(q), jnp.concatenate([turn, jnp.zeros(q[1].shape[0], q[0].dtype)]))

    def right_rotation(self, q, axis):
        turn = jnp.ravel(jnp.asarray(axis, q[0].dtype))
        return jnp.concatenate([turn, jnp.zeros(q[1].shape[0], q[0].dtype)])

    def move(self, q, velocity, time=1.0):
        R, x = super().move(q, velocity, time)
        return orthonormal(R), x

    def multiply(self, g, h):
        (R, x), (S, y) = g, h
        return R @ S, R @ y + x

    def inverse(self, g):
        R, x = g
        return R.T, -(R.T @ x)

    def random(self, key):
        turn, shift = jax.random.split(key)
        return self.rotations.random(turn), jax.random.normal(shift, jax.eval_shape(self.origin)[1].shape)

    def project(self, q):
        return self.rotations.project(q[0]), q[1]

    def check(self, q, name="q"):
        if not isinstance(q, tuple) or len(q) != 2:
            raise ShapeError(f"{name} must be a pair (R, x) on {self}; a homogeneous matrix becomes one with from_matrix(g).")
        batch = self.rotations.check(q[0], f"{name}[0]")
        want = (*batch, jax.eval_shape(self.origin)[1].shape[0])
        if np.shape(q[1]) != want:
            raise ShapeError(f"{name}[1] has shape {np.shape(q[1])}, but the position that belongs to {name}[0] has shape {want}.")
        if not traced(q[1]) and not np.isfinite(np.asarray(q[1])).all():
            raise DomainError(f"{name}[1] holds values that are not finite.")
        return batch

    def from_matrix(self, g):
        """The pair (R, x) of a homogeneous matrix."""
        g = jnp.asarray(g)
        return g[:-1, :-1], g[:-1, -1]

    def matrix(self, q):
        """The homogeneous matrix [[R, x], [0, 1]]."""
        R, x = q
        last = jnp.zeros((1, R.shape[0] + 1), R.dtype).at[0, -1].set(1)
        return jnp.concatenate([jnp.concatenate([R, x[:, None]], axis=1), last])


@SPACES.register
@dataclass(frozen=True, repr=False)
class SE3(_RigidMotion):
    """Rigid motions of space. Points are pairs (R (3, 3), x (3,)), velocities arrays (6,): body angular, then body linear velocity."""

    rotations = SO3()

    def origin(self, dtype: Any = float):
        return jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros(6, dtype)

    @property
    def casimirs(self):
        return {"|P|²": lambda m: m[3:] @ m[3:], "Π·P": lambda m: m[:3] @ m[3:]}

    def tau(self, x):
        w, v = x[:3], x[3:]
        if self.retraction == "exp":
            z, wv = w @ w, cross(w, v)
            return rotation.exp(w), v + series.versine(z) * wv + series.residue(z) * cross(w, wv)
        return rotation.cayley(w), (v + 0.5 * cross(w, v) + 0.25 * w * (w @ v)) / (1 + 0.25 * (w @ w))

    def tau_inv(self, g):
        R, x = g
        if self.retraction == "exp":
            w = rotation.log(R)
            return jnp.concatenate([w, rotation.dexp_inv(w, x)])
        w = rotation.cayley_inv(R)
        return jnp.concatenate([w, x - 0.5 * cross(w, x)])

    def dtau_inv(self, x, y):
        w, v, a, b = x[:3], x[3:], y[:3], y[3:]
        if self.retraction == "exp":
            Da, dDa = jax.jvp(lambda u: rotation.dexp_inv(u, a), (w,), (v,))
            return jnp.concatenate([Da, dDa + rotation.dexp_inv(w, b)])
        c = b - 0.5 * cross(v, a)
        return jnp.concatenate([rotation.dcayley_inv(w, a), c - 0.5 * cross(w, c)])

    def nudge(self, q, e):
        R, x = q
        return self.rotations.nudge(R, e[:3]), x + R @ e[3:]

    def Ad(self, g, x):
        R, y = g
        w = R @ x[:3]
        return jnp.concatenate([w, R @ x[3:] + cross(y, w)])

    def bracket(self, x, y):
        return jnp.concatenate([cross(x[:3], y[:3]), cross(x[:3], y[3:]) + cross(x[3:], y[:3])])


@SPACES.register
@dataclass(frozen=True, repr=False)
class SE2(_RigidMotion):
    """Rigid motions of the plane. Points are pairs (R (2, 2), x (2,)), velocities arrays (3,): angular, then body linear velocity.

    A subgroup of SE(3): every formula is SE(3)'s, restricted to rotations about the third axis and translations normal to it.
    """

    rotations = SO2()

    @property
    def _large(self) -> SE3:
        return SE3(self.retraction)

    def origin(self, dtype: Any = float):
        return jnp.eye(2, dtype=dtype), jnp.zeros(2, dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros(3, dtype)

    @property
    def casimirs(self):
        return {"|P|²": lambda m: m[1:] @ m[1:]}

    def tau(self, x):
        R, y = self._large.tau(_lift(x))
        return R[:2, :2], y[:2]

    def tau_inv(self, g):
        return _drop(self._large.tau_inv(_lift_point(g)))

    def dtau_inv(self, x, y):
        return _drop(self._large.dtau_inv(_lift(x), _lift(y)))

    def Ad(self, g, x):
        return _drop(self._large.Ad(_lift_point(g), _lift(x)))

    def bracket(self, x, y):
        return _drop(self._large.bracket(_lift(x), _lift(y)))


def _lift(x):
    o = jnp.zeros_like(x[0])
    return jnp.array([o, o, x[0], x[1], x[2], o])


def _drop(x):
    return x[2:5]


def _lift_point(g):
    R, x = g
    return jnp.eye(3, dtype=R.dtype).at[:2, :2].set(R), jnp.zeros(3, x.dtype).at[:2].set(x)
