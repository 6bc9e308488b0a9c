"""Kinetic energies that fall into pieces.

    T = Σ ½⟨v, M v⟩,      one M for each factor of a product, one for each body of a power

A quadratic T with constant masses is the sum of those of its pieces, and the free motion of each piece knows nothing of the others.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.repetition import total
from bismut.spaces import Power, Product, Space, Velocity


class Quadratic:
    """T(v) = ½⟨v, M v⟩ on a space.

    masses  a tree like a velocity, of arrays of the same shapes, or of matrices, whose last axis is repeated
    """

    def __init__(self, space: Space, masses: Any):
        self.space, self.masses = space, masses

    def __call__(self, q, v: Velocity, t=0.0, parameters: Any = None):
        del q, t, parameters
        if isinstance(self.space, Power):
            return total(lambda v, masses: self.one(masses)(None, v), v, self.masses)
        if isinstance(self.space, Product):
            parts = [kinetic(None, w) for kinetic, w in zip(self.factors(), v, strict=True)]
            return sum(parts[1:], parts[0])
        terms = [_quadratic(m, w) for m, w in zip(jax.tree.leaves(self.masses), jax.tree.leaves(v), strict=True)]
        return sum(terms[1:], terms[0])

    def one(self, masses: Any) -> "Quadratic":
        """That of one body of a power, with its masses."""
        assert isinstance(self.space, Power)
        return Quadratic(self.space.base, masses)

    def factors(self) -> "list[Quadratic]":
        """Those of the factors of a product."""
        assert isinstance(self.space, Product)
        return [Quadratic(factor, masses) for factor, masses in zip(self.space.factors, self.masses, strict=True)]


def quadratic(space: Space, masses: list) -> Quadratic:
    """The kinetic energy of masses that broadcast to the arrays of a velocity, or that are matrices. Known numbers stay known."""
    leaves, structure = jax.tree.flatten(jax.eval_shape(space.zero))

    def whole(mass, shape):
        numbers = jnp if isinstance(mass, Tracer) else np
        return mass if mass.ndim > len(shape) else numbers.broadcast_to(mass, shape)

    known = [mass if isinstance(mass, Tracer) else np.asarray(mass) for mass in masses]
    return Quadratic(space, structure.unflatten([whole(mass, leaf.shape) for mass, leaf in zip(known, leaves, strict=True)]))


def _quadratic(mass, v):
    if mass.ndim == v.ndim + 1:
        return 0.5 * jnp.sum(v * jnp.einsum("...ij,...j->...i", mass, v))
    return 0.5 * jnp.sum(mass * v * v)
