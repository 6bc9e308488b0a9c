"""Springs between points fixed in bodies.

    U = Σ_s ½ k_s (|y_s − z_s| − l_s)²,      y_s = x_i + R_i a_s,   z_s = x_j + R_j b_s

A spring at rest length 0 is ½ k |y − z|², smooth where its ends meet; any other is not defined there.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import Potential
from bismut.repetition import Bonds


def springs(ends: Any, stiffness: Any = 1.0, length: Any = 0.0, points: Any = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))) -> Potential:
    """U = Σ ½ k (|y − z| − l)², with ends y, z fixed in two bodies each.

    ends       the numbers (i, j) of the two bodies of each spring, (S, 2)
    stiffness  k, energy / length², one for all springs or (S,)
    length     l, rest lengths, one for all springs or (S,)
    points     where each spring is fixed in its two bodies, relative to their centres of mass, (2, 3) for all springs or (S, 2, 3)
    """
    pairs = np.asarray(ends)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(f"ends must be whole numbers (S, 2), two bodies for each spring, got {pairs.dtype} of shape {pairs.shape}.")
    if (pairs < 0).any() or (pairs[:, 0] == pairs[:, 1]).any():
        raise DomainError(f"ends must name two different bodies 0 ... K − 1 for each spring, got {pairs.tolist()}.")
    count = len(pairs)
    k, l = (_per_spring(name, value, count, ()) for name, value in (("stiffness", stiffness), ("length", length)))
    where = _per_spring("points", points, count, (2, 3))
    slack = np.broadcast_to(np.asarray(length) == 0 if isinstance(l, np.ndarray) else False, (count,))
    central = isinstance(where, np.ndarray) and not where.any()  # fixed at centres of mass: orientations do not matter

    def energy(pair, t, parameters):
        k, l, (first, second) = (jnp.asarray(value, pair.r.dtype) for value in pair.own[:3])
        d = pair.r if central else pair.r + pair.b @ second - pair.a @ first
        d2 = d @ d
        if slack.all():
            return 0.5 * k * d2
        # The root is taken away from zero where it is not wanted, or its gradient would be 0 · ∞.
        unstretched = pair.own[3]
        stretch = jnp.sqrt(jnp.where(unstretched, 1.0, d2) if slack.any() else d2) - l
        return 0.5 * k * (jnp.where(unstretched, d2, stretch**2) if slack.any() else stretch**2)

    def seen(x, R):
        if pairs.max(initial=-1) >= x.shape[0]:
            raise ShapeError(f"A spring ends in body {pairs.max()}, but the {x.shape[0]} bodies are numbered 0 ... {x.shape[0] - 1}.")
        return () if central else R

    return Potential.of(PairTerm(energy, seen, "springs", (k, l, where, slack), Bonds(pairs[:, 0], pairs[:, 1])), "springs")


def _per_spring(name: str, value: Any, count: int, tail: tuple[int, ...]):
    array = numbers(name, value)
    if np.shape(array) not in (tail, (count, *tail)):
        raise ShapeError(f"{name} must have shape {tail} for all springs or {(count, *tail)}, one for each, got {np.shape(array)}.")
    return jnp.broadcast_to(array, (count, *tail)) if not isinstance(array, np.ndarray) else np.broadcast_to(array, (count, *tail))
