"""How far directions are aligned.

    p = (1/N) Σ u_i                                  polar: a vector, |p| = P₁ along the direction of p
    Q = (1/N) Σ (d u_i u_iᵀ − 1)/(d − 1)             nematic: symmetric, traceless; its largest eigenvalue is P₂ along the director

in d = 2 or 3 dimensions. Of N independent directions the largest eigenvalue is about 1/√N, not 0: it is that of the configuration, and the director
is its own. n·Q n along a fixed n has the mean 0.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from bismut.errors import ShapeError
from bismut.programs.evaluation import evaluate
from bismut.tracing import traced


def nematic_tensor(directions):
    """Q of vectors (n, d), of which only the directions count: a matrix (d, d).

    directions  (n, 3), or (n, 2) in the plane
    """
    return _function(lambda u: _tensor(_units(u)), directions)


def nematic_order(directions):
    """The largest eigenvalue of Q: 1 if all directions are parallel or antiparallel, −1/2 never (of a plane of directions it is 1/4).

    directions  as for nematic_tensor
    """
    return _function(lambda u: largest_eigenvalue(_tensor(_units(u))), directions)


def polarisation(directions):
    """p = (1/N) Σ u_i, a vector (d,).

    directions  as for nematic_tensor
    """
    return _function(lambda u: jnp.mean(_units(u), 0), directions)


def _function(function, directions):
    if np.ndim(directions) != 2 or np.shape(directions)[1] not in (2, 3):
        raise ShapeError(f"directions must be vectors (n, 3), or (n, 2) in the plane, got shape {np.shape(directions)}.")
    return function(directions) if traced(directions) else evaluate(function, jnp.asarray(directions))


def _units(u):
    return u / jnp.sqrt(jnp.sum(u * u, 1))[:, None]


def _tensor(u):
    d = u.shape[1]
    return (d * (u.T @ u) / u.shape[0] - jnp.eye(d, dtype=u.dtype)) / (d - 1)


def largest_eigenvalue(Q):
    """Of a symmetric matrix without trace: λ = 2 √(tr Q²/6) cos(φ/3), cos φ = det(Q) / 2 (tr Q²/6)^{3/2}; in the plane √(Q₁₁² + Q₁₂²)."""
    if Q.shape[0] == 2:
        return jnp.sqrt(Q[0, 0] ** 2 + Q[0, 1] ** 2)
    size = jnp.sum(Q * Q) / 6
    scale = jnp.sqrt(jnp.where(size > 0, size, 1.0))
    A = Q / scale
    determinant = jnp.dot(A[0], jnp.cross(A[1], A[2]))
    one = jnp.ones((), Q.dtype)
    angle = jnp.arccos(jnp.clip(0.5 * determinant, -one, one))
    return jnp.where(size > 0, 2 * scale * jnp.cos(angle / 3), 0.0)
