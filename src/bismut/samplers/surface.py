"""A surface g(x) = 0 that a user gives, and which measure on it a density is one of.

    "surface"      ρ dσ, dσ the area that the surface inherits
    "conditional"  ρ δ(g(x)) dx = ρ dσ / √det(G Gᵀ),  G = ∂g: the law of x given g(x) = 0 if x has the density ρ

The chain, of unit mass, samples e^{−U} dσ; so the second adds ½ log det(G Gᵀ) to U. G is taken in the frame of the space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bismut.errors import BismutError, DomainError, nearest
from bismut.samplers.domain import Domain, JointDomain
from bismut.spaces import Space
from bismut.user_errors import reason_of

MEASURES = ("surface", "conditional")


@dataclass(frozen=True, eq=False)
class Surface(Domain):
    """The part of a domain where g = 0."""

    inner: Domain
    g: Callable
    measure: str
    separate = False  # g may tie several parameters together

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.space

    @property
    def title(self) -> str:
        return f"a surface in {self.inner.title}"

    @property
    def parts(self) -> tuple[Domain, ...]:
        """Of a dictionary, the domains of its parameters."""
        if isinstance(self.inner, JointDomain):
            return self.inner.parts
        raise AttributeError("parts")

    def own(self, q):
        """g at a point of the space, as one array."""
        return jnp.atleast_1d(jnp.asarray(self.g(self.inner.point(q))))

    def constraint(self, q):  # pyright: ignore[reportIncompatibleVariableOverride]
        inner = self.inner.constraint
        return self.own(q) if inner is None else jnp.concatenate([inner(q), self.own(q)])

    def point(self, q):
        return self.inner.point(q)

    def coordinates(self, x):
        return self.inner.coordinates(x)

    def log_volume(self, q):
        return self.inner.log_volume(q)

    def random(self, key):
        return self.inner.random(key)


def surface_of(domain: Domain, g: Callable, measure: str) -> tuple[Surface, Callable | None]:
    """The surface, and what its measure adds to U."""
    if measure not in MEASURES:
        raise DomainError(f"There is no measure {measure!r}. {nearest(measure, MEASURES)}")
    surface = Surface(domain, g, f"{measure} measure of the constraint")
    try:
        value = jax.eval_shape(surface.own, jax.eval_shape(domain.space.origin))
    except Exception as problem:
        raise BismutError(f"constraint fails at a point of {domain.space}: {reason_of(problem)}.") from problem
    if len(value.shape) != 1:
        raise BismutError(f"constraint must return one number or an array of k numbers, got shape {value.shape}.")
    return surface, _HalfLogDeterminant(surface) if measure == "conditional" else None


@dataclass(frozen=True, eq=False)
class _HalfLogDeterminant:
    """½ log det(G Gᵀ) of the user's own constraints, along the surface of the domain if that is one."""

    surface: Surface

    def __call__(self, q: Any) -> Any:
        space = self.surface.space

        def gram(g):
            k = jax.eval_shape(g, q).shape[0]
            rows = [space.flatten(space.differential(lambda q, i=i: g(q)[i], q)) for i in range(k)]
            return jnp.stack([jnp.stack([a @ b for b in rows]) for a in rows])

        half = 0.5 * _log_determinant(gram(self.surface.constraint))
        inner = self.surface.inner.constraint
        return half if inner is None else half - 0.5 * _log_determinant(gram(inner))


def _log_determinant(matrix):
    """Of a small positive matrix, by elimination."""
    total = jnp.zeros((), matrix.dtype)
    for _ in range(matrix.shape[0]):
        pivot = matrix[0, 0]
        total = total + jnp.log(pivot)
        matrix = matrix[1:, 1:] - jnp.outer(matrix[1:, 0], matrix[0, 1:]) / pivot
    return total
