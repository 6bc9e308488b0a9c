"""Unit quaternions (w, x, y, z), scalar first; formats that have it last say so themselves.

R ↔ ±q,     w ≥ 0 chosen;      (a ⊗ b) = (a₀b₀ − a·b,  a₀b + b₀a + a × b)
"""

import numpy as np
import scipy


def of_matrices(R: np.ndarray) -> np.ndarray:
    """(..., 3, 3) as (..., 4)."""
    flat = scipy.spatial.transform.Rotation.from_matrix(np.asarray(R, float).reshape(-1, 3, 3)).as_quat(canonical=True, scalar_first=True)
    return flat.reshape(*R.shape[:-2], 4)


def matrices(q: np.ndarray) -> np.ndarray:
    """(..., 4) of any length but 0 as (..., 3, 3)."""
    flat = scipy.spatial.transform.Rotation.from_quat(np.asarray(q, float).reshape(-1, 4), scalar_first=True).as_matrix()
    return flat.reshape(*np.shape(q)[:-1], 3, 3)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ⊗ b, along the last axis."""
    w = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], -1, keepdims=True)
    return np.concatenate([w, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])], -1)


def conjugate(q: np.ndarray) -> np.ndarray:
    return q * np.array([1.0, -1.0, -1.0, -1.0])
