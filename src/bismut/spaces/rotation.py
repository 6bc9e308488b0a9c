"""Rotations of the plane and of space.

SO(3), θ = |x|:

    exp x  = 1 + (sin θ/θ) x̂ + ((1−cos θ)/θ²) x̂²        dexp⁻¹_x = 1 − x̂/2 + ((1 − (θ/2)cot(θ/2))/θ²) x̂²
    cay x  = 1 + (x̂ + x̂²/2)/(1 + θ²/4)                   dcay⁻¹_x = 1 − x̂/2 + x xᵀ/4

Points are rotation matrices; the velocity is the angular velocity in the body frame. Cayley needs no trigonometry and is the default.
Both inverses go through the unit quaternion, which is accurate for every angle; cay⁻¹ is infinite at half a turn.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError
from bismut.registry import SPACES
from bismut.spaces import series
from bismut.spaces.space import Group, check_retraction

# The Levi-Civita symbol as the matrix of x ↦ x̂. Contractions with constants keep programs short; zeros in them cost nothing once folded.
_HAT = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _HAT[_i, _k, _j], _HAT[_k, _i, _j] = 1.0, -1.0


def hat(x: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The matrix of x × ·, by contraction with a constant: programs are four times shorter than with components, and native code folds the zeros."""
    return jnp.asarray(_HAT, x.dtype) @ x


def cross(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    return hat(a) @ b


def exp(x: Float[Array, "3"]) -> Float[Array, "3 3"]:
    z, k = x @ x, hat(x)
    return jnp.eye(3, dtype=x.dtype) + series.sinc(z) * k + series.versine(z) * (k @ k)


def log(R: Float[Array, "3 3"]) -> Float[Array, "3"]:
    s, v = _halves(R)
    n2 = v @ v
    # tan(θ/2) = |v|/s; near half a turn s → 0, so the angle is taken from the other side there.
    steep = n2 > s * s
    n = jnp.sqrt(jnp.where(steep, n2, 1.0))
    near = 2 * series.arctangent(n2 / jnp.where(steep, 1.0, s * s)) / jnp.where(steep, 1.0, s)
    far = 2 * jnp.arctan2(n, s) / n
    return jnp.where(steep, far, near) * v


def dexp_inv(x: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    xy = cross(x, y)
    return y - 0.5 * xy + series.cotangent(x @ x) * cross(x, xy)


def cayley(x: Float[Array, "3"]) -> Float[Array, "3 3"]:
    k = hat(x)
    return jnp.eye(3, dtype=x.dtype) + (k + 0.5 * (k @ k)) / (1 + 0.25 * (x @ x))


def cayley_inv(R: Float[Array, "3 3"]) -> Float[Array, "3"]:
    s, v = _halves(R)
    return 2 * v / s


def dcayley_inv(x: Float[Array, "3"], y: Float[Array, "3"]) -> Float[Array, "3"]:
    return y - 0.5 * cross(x, y) + 0.25 * x * (x @ y)


def _halves(R):
    """Scalar and vector part (s, v), s ≥ 0, of the unit quaternion of R.

    4 qqᵀ is linear in R; its row with the largest diagonal entry gives q without cancellation (Shepperd).
    """
    d = jnp.array([R[0, 0], R[1, 1], R[2, 2]])
    a = jnp.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    b = R + R.T
    trace = d[0] + d[1] + d[2]
    rows = [jnp.array([1 + trace, a[0], a[1], a[2]])]
    for i in range(3):
        row = [a[i], b[i, 0], b[i, 1], b[i, 2]]
        row[1 + i] = 1 + 2 * d[i] - trace
        rows.append(jnp.array(row))
    best, size = rows[0], rows[0][0]
    for i in range(1, 4):
        larger = rows[i][i] > size
        best, size = jnp.where(larger, rows[i], best), jnp.where(larger, rows[i][i], size)
    q = best / (2 * jnp.sqrt(size))
    q = jnp.where(q[0] < 0, -q, q)
    return q[0], q[1:]


class _Retraction(NamedTuple):
    """τ, τ⁻¹ and dτ⁻¹ of a group."""

    tau: Callable
    inv: Callable
    dinv: Callable


_RETRACTIONS = {"cayley": _Retraction(cayley, cayley_inv, dcayley_inv), "exp": _Retraction(exp, log, dexp_inv)}


def orthonormal(R: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """R (3 − RᵀR)/2 in single precision: a Newton–Schulz step to the polar factor, which squares the error of RᵀR = 1.

    Without it round-off adds up, to 3e−4 after 10⁶ steps; in double precision it is 1e−12 there, and the product is left as it is. Along the group
    the derivative is the identity.
    """
    return R - 0.5 * R @ (R.T @ R - jnp.eye(R.shape[-1], dtype=R.dtype)) if R.dtype == jnp.float32 else R


@dataclass(frozen=True, repr=False)
class RetractedGroup(Group):
    """A group with a choice of retraction, by name."""

    retraction: str = "cayley"

    def __post_init__(self):
        check_retraction(self.retraction)

    def using(self, retraction):
        return replace(self, retraction=retraction)

    def __repr__(self):
        return f"{type(self).__name__}()" if self.retraction == "cayley" else f'{type(self).__name__}("{self.retraction}")'


class _RotationGroup(RetractedGroup):
    """Rotation matrices."""

    points_are = "rotation matrices"

    def move(self, q, velocity, time=1.0):
        return orthonormal(super().move(q, velocity, time))

    def multiply(self, g, h):
        return g @ h

    def inverse(self, g):
        return g.T

    def violation(self, q):
        """Largest entry of |RᵀR − 1| and |det R − 1| over a batch of matrices."""
        defect = np.abs(np.swapaxes(q, -1, -2) @ q - np.eye(q.shape[-1])).max()
        return float(max(defect, np.abs(np.linalg.det(q) - 1).max()))


@SPACES.register
@dataclass(frozen=True, repr=False)
class SO3(_RotationGroup):
    """Rotations of space. Points are matrices (3, 3), velocities body angular velocities (3,)."""

    def origin(self, dtype: Any = float):
        return jnp.eye(3, dtype=dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros(3, dtype)

    def cells(self):
        return (3,)

    def translation(self, q, direction):
        return jnp.zeros(3, q.dtype)

    @property
    def casimirs(self):
        return {"|m|²": lambda m: m @ m}

    def left_rotation(self, q, axis):
        return q.T @ jnp.asarray(axis, q.dtype)

    def right_rotation(self, q, axis):
        return jnp.asarray(axis, q.dtype)

    def tau(self, x):
        return _RETRACTIONS[self.retraction].tau(x)

    def tau_inv(self, g):
        return _RETRACTIONS[self.retraction].inv(g)

    def dtau_inv(self, x, y):
        return _RETRACTIONS[self.retraction].dinv(x, y)

    def dtau_inv_adjoint(self, x, mu):
        # Both tangents have the form a(x) + b x̂ with a symmetric and even, so the adjoint is the same at −x.
        return _RETRACTIONS[self.retraction].dinv(-x, mu)

    def nudge(self, q, e):
        return q + q @ hat(e)

    def Ad(self, g, x):
        return g @ x

    def Ad_star(self, g, mu):
        return g.T @ mu

    def bracket(self, x, y):
        return cross(x, y)

    def ad_star(self, x, mu):
        return cross(mu, x)

    def random(self, key):
        return self.from_quaternion(jax.random.normal(key, (4,)))

    def project(self, q):
        u, _, vt = jnp.linalg.svd(jnp.asarray(q))
        turned = jnp.sign(jnp.linalg.det(u @ vt))[..., None, None]  # a reflection is undone along the shortest axis
        return u @ jnp.concatenate([vt[..., :2, :], turned * vt[..., 2:, :]], -2)

    def hint(self, shape):
        if shape[-1:] == (4,):
            return "A quaternion becomes one with SO3().from_quaternion(q)."
        return "A rotation vector becomes one with SO3().from_rotation_vector(x)." if shape == (3,) else ""

    def from_quaternion(self, quaternion: Float[Array, "4"]) -> Float[Array, "3 3"]:
        """The rotation of a quaternion (scalar first) of any non-zero length."""
        quaternion = jnp.asarray(quaternion)
        quaternion = quaternion / jnp.sqrt(quaternion @ quaternion)
        s, k = quaternion[0], hat(quaternion[1:])
        return jnp.eye(3, dtype=k.dtype) + 2 * s * k + 2 * (k @ k)

    def quaternion(self, R: Float[Array, "3 3"]) -> Float[Array, "4"]:
        """The unit quaternion, scalar first and not negative."""
        s, v = _halves(jnp.asarray(R))
        return jnp.concatenate([s[None], v])

    def from_rotation_vector(self, x: Float[Array | np.ndarray, "3"]) -> Float[Array, "3 3"]:
        """The rotation by the angle |x| about x."""
        return exp(jnp.asarray(x))

    def rotation_vector(self, R: Float[Array, "3 3"]) -> Float[Array, "3"]:
        """Axis times angle, the angle in [0, π]."""
        return log(jnp.asarray(R))

    def from_euler_angles(self, angles: Float[Array, "3"], axes: tuple[int, int, int] = (2, 1, 0)) -> Float[Array, "3 3"]:
        """Successive rotations about the body's own axes; by default yaw, pitch, roll."""
        axes = _euler_axes(axes)
        angles = jnp.asarray(angles)
        a, b, c = (exp(angle * jnp.eye(3, dtype=angles.dtype)[axis]) for angle, axis in zip(angles, axes, strict=True))
        return a @ b @ c

    def euler_angles(self, R: Float[Array, "3 3"], axes: tuple[int, int, int] = (2, 1, 0)) -> Float[Array, "3"]:
        """The angles that `from_euler_angles` takes; the first and last are not unique where the middle one aligns their axes."""
        i, j, last = _euler_axes(axes)
        R, k = jnp.asarray(R), 3 - i - j
        e = 1 if (i, j, k) in _EVEN else -1
        if last == i:
            first, second = jnp.arctan2(R[j, i], -e * R[k, i]), jnp.arctan2(jnp.hypot(R[j, i], R[k, i]), R[i, i])
        else:
            first, second = jnp.arctan2(-e * R[j, k], R[k, k]), jnp.arctan2(e * R[i, k], jnp.hypot(R[j, k], R[k, k]))
        # The last angle is what the first two leave, so that aligned axes give the rotation back too, whatever the first angle then is.
        unit = jnp.eye(3, dtype=R.dtype)
        rest = (exp(first * unit[i]) @ exp(second * unit[j])).T @ R
        a, b = (last + 1) % 3, (last + 2) % 3
        return jnp.array([first, second, jnp.arctan2(rest[b, a], rest[a, a])])


@SPACES.register
@dataclass(frozen=True, repr=False)
class SO2(_RotationGroup):
    """Rotations of the plane. Points are matrices (2, 2), the velocity is one number; an abelian group.

    The angle of τ(x) is x for exp and 2 arctan(x/2) for cay, so dcay⁻¹_x = 1 + x²/4.
    """

    def origin(self, dtype: Any = float):
        return jnp.eye(2, dtype=dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros((), dtype)

    def cells(self):
        return (1,)

    def translation(self, q, direction):
        return jnp.zeros((), q.dtype)

    def left_rotation(self, q, axis):
        return jnp.asarray(axis, q.dtype)

    right_rotation = left_rotation

    def tau(self, x):
        if self.retraction == "exp":
            return _turn(jnp.cos(x), jnp.sin(x))
        n = 1 + 0.25 * x * x
        return _turn((1 - 0.25 * x * x) / n, x / n)

    def tau_inv(self, g):
        c, s = 0.5 * (g[0, 0] + g[1, 1]), 0.5 * (g[1, 0] - g[0, 1])
        if self.retraction == "exp":
            return jnp.arctan2(s, c)
        far = c < 0  # towards half a turn 1 + c cancels; s/(1 + c) = (1 − c)/s
        return jnp.where(far, 2 * (1 - c) / jnp.where(far, s, 1.0), 2 * s / jnp.where(far, 1.0, 1 + c))

    def dtau_inv(self, x, y):
        return y if self.retraction == "exp" else (1 + 0.25 * x * x) * y

    def dtau_inv_adjoint(self, x, mu):
        return self.dtau_inv(x, mu)

    def Ad(self, g, x):
        return x

    def bracket(self, x, y):
        return jnp.zeros_like(y)

    def random(self, key):
        angle = jax.random.uniform(key, (), minval=-jnp.pi, maxval=jnp.pi)
        return _turn(jnp.cos(angle), jnp.sin(angle))

    def project(self, q):
        q = jnp.asarray(q)
        c, s = q[..., 0, 0] + q[..., 1, 1], q[..., 1, 0] - q[..., 0, 1]
        n = jnp.hypot(c, s)
        return jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2) / n[..., None, None]

    def hint(self, shape):
        return "For the angle itself use Circle()." if shape == () else ""


_EVEN = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


def _turn(c, s):
    return jnp.array([[c, -s], [s, c]])


def _euler_axes(axes) -> tuple[int, int, int]:
    i, j, k = axes
    if not {i, j, k} <= {0, 1, 2} or j in (i, k):
        raise DomainError(f"axes must be three of 0, 1, 2 with neighbours different, such as (2, 1, 0) or (2, 0, 2), got {tuple(axes)}.")
    return i, j, k
