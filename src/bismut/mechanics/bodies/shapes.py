"""Bodies made of points.

    M = Σ m_n,    c = Σ m_n y_n / M,    I = Σ m_n (|z_n|² 1 − z_n z_nᵀ),   z_n = y_n − c,    A = axes with Aᵀ I A = diag(I₁, I₂, I₃)

A body frame is most pleasant at the centre of mass and along principal axes: the inertia is three numbers there. The points are moved into that
frame, and `axes` leads back: a cloud that would lie in space turned by Q, as it was given, is the body with orientation R = Q A.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bismut.arguments import float_array
from bismut.errors import DomainError, ShapeError
from bismut.formatting import brief


class Body(NamedTuple):
    """A rigid body, or K of them along a first axis (`stack_bodies`). `rigid_bodies` takes its mass and moments.

    mass     M, shape ()
    moments  principal moments of inertia, (3,)
    axes     A, (3, 3), a rotation whose columns are the principal axes in the frame in which the points were given
    centre   c, (3,), in that frame
    points   (n, 3), from the centre of mass along principal axes
    masses   (n,)
    """

    mass: np.ndarray
    moments: np.ndarray
    axes: np.ndarray
    centre: np.ndarray
    points: np.ndarray
    masses: np.ndarray

    def __repr__(self) -> str:
        several = f"{len(self.mass)} bodies, " if np.ndim(self.mass) else ""
        return f"Body({several}mass={brief(self.mass)}, moments={brief(self.moments)}, {np.shape(self.points)[-2]} points)"

    @property
    def inertia(self) -> np.ndarray:
        """I about the centre of mass, in the axes in which the points were given."""
        return np.einsum("...ia,...a,...ja->...ij", self.axes, self.moments, self.axes)

    def principal(self, Q):
        """R = Q A: the orientation of the principal axes when the cloud, as given, is rotated by Q."""
        return jnp.einsum("...ij,...jk->...ik", Q, jnp.asarray(self.axes))

    def as_given(self, R):
        """Q = R Aᵀ: how the cloud, as given, is rotated when the principal axes have orientation R."""
        return jnp.einsum("...ij,...kj->...ik", R, jnp.asarray(self.axes))


def body(points: Any, masses: Any = 1.0) -> Body:
    """The rigid body of a point cloud.

    points  (n, 3), a length, from any origin and in any axes
    masses  (n,), or one number for all
    """
    points, masses = float_array(points, "points"), float_array(masses, "masses")
    if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
        raise ShapeError(f"points must have shape (n, 3), one row for each point, got {points.shape}.")
    if masses.shape not in ((), (len(points),)):
        raise ShapeError(f"masses must be one number or ({len(points)},), one for each point, got shape {masses.shape}.")
    masses = np.broadcast_to(masses, len(points)).copy()
    if not np.isfinite(points).all() or not np.isfinite(masses).all() or (masses < 0).any() or masses.sum() <= 0:
        raise DomainError(f"A body needs finite points, masses ≥ 0 and some mass, got masses {masses.tolist()} with points {points.tolist()}.")
    mass = masses.sum()
    centre = masses @ points / mass
    z = points - centre
    inertia = np.einsum("n,nk,nk->", masses, z, z) * np.eye(3) - np.einsum("n,ni,nj->ij", masses, z, z)
    moments, axes = principal_axes(inertia)
    return Body(mass, moments, axes, centre, z @ axes, masses)


def stack_bodies(shapes: Sequence[Body]) -> Body:
    """K bodies as one `Body` with a first axis K; those with fewer points than others are padded with massless points at their centres.

    With several = stack_bodies([...]): rigid_bodies(mass=several.mass, inertia=several.moments, ...)
    """
    if len(shapes) == 0 or not all(isinstance(shape, Body) and np.ndim(shape.mass) == 0 for shape in shapes):
        raise ShapeError("stack_bodies needs a list of single bodies, [body(points, masses), ...].")
    most = max(len(shape.masses) for shape in shapes)

    def filled(array):
        return np.pad(array, [(0, most - len(array)), *((0, 0) for _ in array.shape[1:])])

    full = [shape._replace(points=filled(shape.points), masses=filled(shape.masses)) for shape in shapes]
    return Body(*(np.stack(column) for column in zip(*full, strict=True)))


def points_of(x, R, points):
    """y = x + R z: where body-fixed points z, (n, 3) for all bodies or (K, n, 3), lie in space; (3,) and (3, 3) are one body, leading axes many."""
    x = jnp.asarray(x)
    return x[..., None, :] + jnp.einsum("...ij,...nj->...ni", R, jnp.asarray(points, x.dtype))


def principal_axes(inertia: Any) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (3,) and axes A, a rotation, with Aᵀ I A diagonal: of all such A the one nearest to 1.

    A matrix that is diagonal to round-off keeps its axes, so that equal moments do not turn the body arbitrarily.
    """
    inertia = np.asarray(inertia, float)
    if inertia.shape != (3, 3) or not np.allclose(inertia, inertia.T, rtol=1e-10, atol=1e-12 * np.abs(inertia).max(initial=0)):
        raise ShapeError(f"An inertia matrix is symmetric, (3, 3), got {inertia.tolist()}.")
    if np.abs(inertia - np.diag(np.diag(inertia))).max() <= 4 * np.finfo(float).eps * np.abs(inertia).max():
        return np.diag(inertia).copy(), np.eye(3)
    moments, axes = np.linalg.eigh(inertia)
    order = list(max(permutations(range(3)), key=lambda p: np.abs(axes[range(3), list(p)]).sum()))
    moments, axes = moments[order], axes[:, order]
    axes = axes * np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, np.argmin(np.diag(axes))] *= -1
    return moments, axes
