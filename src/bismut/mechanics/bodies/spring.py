"""Springs between points fixed in bodies.

    U = Σ_s ½ k_s (|y_s − z_s| − l_s)²,      y_s = x_i + R_i a_s,   z_s = x_j + R_j b_s

A spring at rest length 0 is ½ k |y − z|², smooth where its ends meet; any other is not defined there.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers
from bismut.mechanics.bodies.terms import Potential


def springs(ends: Any, stiffness: Any = 1.0, length: Any = 0.0, points: Any = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))) -> Potential:
    """U = Σ ½ k (|y − z| − l)², with ends y, z fixed in two bodies each.

    ends       the numbers (i, j) of the two bodies of each spring, (S, 2)
    stiffness  k, energy / length², one for all springs or (S,)
    length     l, rest lengths, one for all springs or (S,)
    points     where each spring is fixed in its two bodies, relative to their centres of mass, (2, 3) for all springs or (S, 2, 3)
    """
    pairs = np.asarray(ends)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(f"ends must be whole numbers (S, 2), two bodies for each spring, but {pairs.dtype} of shape {pairs.shape} came.")
    if (pairs < 0).any() or (pairs[:, 0] == pairs[:, 1]).any():
        raise DomainError(f"ends must name two different bodies 0 ... K − 1 for each spring, but {pairs.tolist()} came.")
    count = len(pairs)
    k, l = (_per_spring(name, value, count, ()) for name, value in (("stiffness", stiffness), ("length", length)))
    where = _per_spring("points", points, count, (2, 3))
    slack = np.asarray(length) == 0 if isinstance(l, np.ndarray) else np.zeros((), bool)

    def U(x, R):
        if pairs.max(initial=-1) >= x.shape[0]:
            raise ShapeError(f"A spring ends in body {pairs.max()}, but the {x.shape[0]} bodies are numbered 0 ... {x.shape[0] - 1}.")
        ends = x[pairs] + jnp.einsum("skij,skj->ski", R[pairs], jnp.asarray(where, x.dtype))
        d = ends[:, 0] - ends[:, 1]
        d2 = jnp.sum(d * d, -1)
        # The root is taken away from zero where it is not wanted, or its gradient would be 0 · ∞.
        stretch = jnp.sqrt(jnp.where(slack, 1.0, d2)) - jnp.asarray(l, x.dtype)
        return 0.5 * jnp.sum(jnp.asarray(k, x.dtype) * jnp.where(slack, d2, stretch**2))

    return Potential(U, "springs")


def _per_spring(name: str, value: Any, count: int, tail: tuple[int, ...]):
    array = numbers(name, value)
    if np.shape(array) not in (tail, (count, *tail)):
        raise ShapeError(f"{name} must have shape {tail} for all springs or {(count, *tail)}, one for each, but {np.shape(array)} came.")
    return jnp.broadcast_to(array, (count, *tail)) if not isinstance(array, np.ndarray) else np.broadcast_to(array, (count, *tail))
