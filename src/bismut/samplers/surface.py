"""A surface g(x) = 0 that a user gives, and which measure on it a density is one of.

    "surface"      ρ dσ, dσ the area that the surface inherits from the domain
    "conditional"  ρ δ(g(x)) dx = ρ dσ / √det(G Gᵀ),  G = ∂g/∂x: the law of x given g(x) = 0 if x has the density ρ

The chain, of unit mass, samples e^{−U} dσ_q, dσ_q the area in its own coordinates q, and dx = |dx/dq| dq. With Γ = ∂g/∂q

    δ(g) dq = dσ_q / √det(Γ Γᵀ),     dσ = √det(G Gᵀ) δ(g) dx = √(det G Gᵀ / det Γ Γᵀ) |dx/dq| dσ_q

so "conditional" adds ½ log det(Γ Γᵀ) to U, and "surface" ½ log det(Γ Γᵀ) − ½ log det(G Gᵀ), which is 0 unless a parameter has a chart (`charts`).
Γ is taken in the frame of the space, G along an orthonormal frame of the domain (`Domain.gradient`): that of the space where there is no chart, and
all entries of x where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bismut.arguments import shown
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
    if not callable(g):
        raise BismutError(
            f"constraint must be a function of a point, g(x) = 0 on the surface, got {shown(g)}."
            + (" A domain is given in place of the space." if isinstance(g, Domain) else "")
        )
    if not isinstance(measure, str):
        raise DomainError(f"measure must be 'surface' or 'conditional', got {shown(measure)}.")
    if measure not in MEASURES:
        raise DomainError(f"There is no measure {measure!r}. {nearest(measure, MEASURES)}")
    surface = Surface(domain, g, f"{measure} measure of the constraint")
    try:
        value = jax.eval_shape(surface.own, jax.eval_shape(domain.space.origin))
    except Exception as problem:
        raise BismutError(f"constraint fails at a point of {domain.space}: {reason_of(problem)}.") from problem
    if len(value.shape) != 1:
        raise BismutError(f"constraint must return one number or an array of k numbers, got shape {value.shape}.")
    if measure == "conditional":
        return surface, _Conditional(surface)
    return surface, _Area(surface) if _charted(surface) else None


def _charted(surface: Surface) -> bool:
    """Whether g depends on coordinates in which lengths are not those of x; raise where the domain does not say what those are."""
    space = surface.space
    q, slope = jax.eval_shape(space.origin), jax.eval_shape(space.zero)
    jax.eval_shape(surface.inner.gradient, q, slope)
    return any(type(part).gradient is not Domain.gradient for part in _charts(surface.inner))


def _charts(domain: Domain) -> list[Domain]:
    return [chart for part in domain.parts for chart in _charts(part)] if isinstance(domain, JointDomain) else [domain]


@dataclass(frozen=True, eq=False)
class _Conditional:
    """½ log det(Γ Γᵀ) of the user's own constraints, along the surface of the domain if that is one."""

    surface: Surface

    def __call__(self, q: Any) -> Any:
        half = _half_log_determinant(_slopes(self.surface, self.surface.constraint, q))
        inner = self.surface.inner.constraint
        return half if inner is None else half - _half_log_determinant(_slopes(self.surface, inner, q))


@dataclass(frozen=True, eq=False)
class _Area:
    """½ log det(Γ Γᵀ) − ½ log det(G Gᵀ). Constraints of the domain's own are rows of both: those of parameters without a chart, where Γ = G."""

    surface: Surface

    def __call__(self, q: Any) -> Any:
        slopes = _slopes(self.surface, self.surface.constraint, q)
        return _half_log_determinant(slopes) - _half_log_determinant([self.surface.inner.gradient(q, slope) for slope in slopes])


def _slopes(surface: Surface, g: Callable, q: Any) -> list[Any]:
    """∂g/∂q in the frame of the space, one for each constraint."""
    return [surface.space.differential(lambda q, i=i: g(q)[i], q) for i in range(jax.eval_shape(g, q).shape[0])]


def _half_log_determinant(rows: list[Any]) -> Any:
    """½ log det of the scalar products of a few vectors, by elimination."""
    flat = [jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(row)]) for row in rows]
    matrix = jnp.stack([jnp.stack([a @ b for b in flat]) for a in flat])
    total = jnp.zeros((), matrix.dtype)
    for _ in range(matrix.shape[0]):
        pivot = matrix[0, 0]
        total = total + jnp.log(pivot)
        matrix = matrix[1:, 1:] - jnp.outer(matrix[1:, 0], matrix[0, 1:]) / pivot
    return 0.5 * total
