"""A log-density on a domain, in coordinates in which it is round.

    U(q; level) = −log ρ(x; level) − log |dx/dq|,      x = point(L q)

L is the scale of coordinates that are any numbers, a root of the covariance of the chains: with it a density of correlated parameters is one of unit
covariance, for one product by L a step. On groups and circles frames cannot be scaled; there velocities are, T = Σ ½|v|²/σ² with one spread σ for
each group, so that of p = v/σ the force is −σ dU, and v = σ p. Masses for each axis of a Lie algebra were tried instead: on SO(3), where variances
differ by 200, they left 850 effective draws of 47 000, because such a top wobbles where angles are wide. L and σ are numbers, and changing them
compiles nothing. On a surface both would change its area, so they stay 1: those of the parameters it is made of, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.samplers.domain import Domain, parts_of
from bismut.spaces import Point, Velocity

DENSE = 200  # coordinates up to which L is a matrix


class Target(eqx.Module):
    """What is sampled.

    density     log ρ(x), or log ρ(x, level) if `laddered`
    domain      where x lives
    roots       L, one for each parameter: a matrix, a number for each coordinate, or None where coordinates cannot be scaled
    spreads     σ, one entry for each array of a velocity, None where it is 1 for good
    extra       a constraint's own share of U, if any
    level       at which log ρ is asked for if nothing is said: that of the draws
    """

    density: Callable
    domain: Domain = eqx.field(static=True)
    roots: tuple[Any, ...]
    spreads: tuple[Any, ...]
    extra: Callable | None = None
    laddered: bool = eqx.field(static=True, default=False)
    level: Any = 1.0

    def unscaled(self, q: Point) -> Point:
        """L q."""
        factors = q if _tupled(self.domain) else (q,)
        scaled = tuple(one if root is None else _apply(root, one) for root, one in zip(self.roots, factors, strict=True))
        return scaled if factors is q else scaled[0]

    def scaled(self, q: Point) -> Point:
        """L⁻¹ q of many points, along their first axis."""
        factors = q if _tupled(self.domain) else (q,)
        done = tuple(one if root is None else _solve(root, one) for root, one in zip(self.roots, factors, strict=True))
        return done if factors is q else done[0]

    def scaled_one(self, q: Point) -> Point:
        """L⁻¹ q of one point, which may be traced."""
        factors = q if _tupled(self.domain) else (q,)
        done = tuple(one if root is None else _solve_one(root, one) for root, one in zip(self.roots, factors, strict=True))
        return done if factors is q else done[0]

    def point(self, q: Point) -> Any:
        """What the user's function is given at q."""
        return self.domain.point(self.unscaled(q))

    def coordinates(self, x: Any) -> Point:
        """Where the chain is at a point, the inverse of `point`; x may be traced."""
        return self.scaled_one(self.domain.coordinates(x))

    def log_density(self, q: Point, level: Any = None) -> Float[Array, ""]:
        """log ρ with the volume element, as a function of where the chain is."""
        x, level = self.unscaled(q), self.level if level is None else level
        point = self.domain.point(x)
        value = self.density(point, level) if self.laddered else self.density(point)
        # A density of less precision is one all the same; its derivatives are as good as it is.
        return jnp.asarray(value, jax.tree.leaves(q)[0].dtype) + self.domain.log_volume(x) - (0.0 if self.extra is None else self.extra(x))

    def potential(self, q: Point, level: Any = None) -> tuple[Float[Array, ""], Velocity]:
        """U and −σ dU."""
        value, slope = jax.value_and_grad(lambda q: self.log_density(q, level))(q)
        return -value, self.stretched(self.domain.space.covector(q, slope))

    def stretched(self, p: Velocity, power: int = 1) -> Velocity:
        """σ p, or p/σ for the power −1."""
        leaves, structure = jax.tree.flatten(p)
        if all(spread is None for spread in self.spreads):
            return p
        factors = [None if spread is None else spread if power > 0 else 1 / spread for spread in self.spreads]
        return structure.unflatten([leaf if factor is None else factor * leaf for leaf, factor in zip(leaves, factors, strict=True)])


def unit_target(density: Callable, domain: Domain, extra: Callable | None = None, level: float | None = None, scaled: bool = True) -> Target:
    """The target before anything is known of it: L and σ are 1, or are no numbers at all unless `scaled`; `level` is the first one of a ladder."""
    roots, spreads = [], []
    for part in parts_of(domain):
        shapes = [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(part.space.zero))]
        size = sum(int(np.prod(shape)) for shape in shapes)
        scalable = scaled and part.scalable and domain.separate
        roots.append((jnp.eye(size) if size <= DENSE else jnp.ones(shapes[0])) if scalable else None)
        turning = scaled and not part.scalable and part.constraint is None and domain.separate
        spreads += [jnp.ones(()) if turning else None for _ in shapes]
    return Target(density, domain, tuple(roots), tuple(spreads), extra, level is not None, jnp.asarray(1.0 if level is None else level, float))


def _tupled(domain: Domain) -> bool:
    return hasattr(domain, "parts")


def _apply(root, q):
    if root.ndim == 2 and root.shape == (q.size, q.size):
        return (root @ q.reshape(-1)).reshape(q.shape)
    return root * q


def _solve_one(root, q):
    if root.ndim == 2 and root.shape == (q.size, q.size):
        return jax.scipy.linalg.solve_triangular(root, q.reshape(-1), lower=True).reshape(q.shape)
    return q / root


def _solve(root, q):
    q = np.asarray(q)
    if root.ndim == 2 and root.shape[0] == q[0].size and root.shape[1] == q[0].size:
        return np.linalg.solve(np.asarray(root), q.reshape(len(q), -1).T).T.reshape(q.shape)
    return q / np.asarray(root)
