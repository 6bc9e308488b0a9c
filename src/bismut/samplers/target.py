"""A log-density on a domain, in coordinates in which it is round.

    U(q; level) = −log ρ(x; level) − log |dx/dq|,      x = point(L q)

L is the scale of coordinates that are any numbers, a root of the covariance of the chains: with it a density of correlated parameters is one of unit
covariance, for one product by L a step. Parameters of a dictionary share one L, because how a model is cut into parameters says nothing of what is
correlated; they are cut into groups of 200 coordinates, in their order, and what has more by itself has a number for each. On groups and circles
frames cannot be scaled; there velocities are, T = Σ ½|v|²/σ² with one spread σ for each group, so that of p = v/σ the force is −σ dU, and v = σ p.
Masses for each axis of a Lie algebra were tried instead: on SO(3), where variances differ by 200, they left 850 effective draws of 47 000, because
such a top wobbles where angles are wide. L and σ are numbers, and changing them compiles nothing. On a surface both would change its area, so they
stay 1: those of the parameters it is made of, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.samplers.domain import Domain, parts_of
from bismut.spaces import Point, Velocity

DENSE = 200  # coordinates of a group at most


class Target(eqx.Module):
    """What is sampled.

    density     log ρ(x), or log ρ(x, level) if `laddered`
    domain      where x lives
    roots       L, one for each parameter: its rows of the lower triangular L of its group, up to its own last column; a number for each coordinate
                of one that is in no group; None where coordinates cannot be scaled
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

    @property
    def groups(self) -> list[list[int]]:
        """Which parameters share an L, by their places: the rows of the first of them are a square."""
        groups: list[list[int]] = []
        for i, root in enumerate(self.roots):
            if root is not None and root.ndim == 2:
                if root.shape[0] == root.shape[1]:
                    groups.append([])
                groups[-1].append(i)
        return groups

    def unscaled(self, q: Point) -> Point:
        """L q."""

        def product(group, x):
            flat = jnp.concatenate([one.reshape(-1) for one in x])
            return [(self.roots[i] @ flat[: self.roots[i].shape[1]]).reshape(one.shape) for i, one in zip(group, x, strict=True)]

        return self._each(q, lambda root, one: (root * one.reshape(-1)).reshape(one.shape), product)

    def scaled(self, q: Point) -> Point:
        """L⁻¹ q of many points, along their first axis."""

        def solved(group, x):
            flat = np.concatenate([one.reshape(len(one), -1) for one in map(np.asarray, x)], 1)
            return _cut(np.linalg.solve(np.asarray(self.matrix(group)), flat.T).T, x)

        return self._each(q, lambda root, one: (np.reshape(one, (len(one), -1)) / np.asarray(root)).reshape(np.shape(one)), solved)

    def scaled_one(self, q: Point) -> Point:
        """L⁻¹ q of one point, which may be traced."""

        def solved(group, x):
            flat = jnp.concatenate([one.reshape(-1) for one in x])
            return _cut(jax.scipy.linalg.solve_triangular(self.matrix(group), flat, lower=True), x)

        return self._each(q, lambda root, one: (one.reshape(-1) / root).reshape(one.shape), solved)

    def matrix(self, group: list[int]) -> Float[Array, "n n"]:
        """L of a group."""
        rows = [self.roots[i] for i in group]
        size = rows[-1].shape[1]
        return jnp.concatenate([jnp.pad(row, ((0, 0), (0, size - row.shape[1]))) for row in rows])

    def _each(self, q: Point, alone: Callable, together: Callable) -> Point:
        """What `alone` makes of each parameter with a scale of its own, and `together` of those of each group."""
        factors = q if _tupled(self.domain) else (q,)
        done = [alone(root, one) if root is not None and root.ndim == 1 else one for root, one in zip(self.roots, factors, strict=True)]
        for group in self.groups:
            for i, one in zip(group, together(group, [factors[i] for i in group]), strict=True):
                done[i] = one
        return tuple(done) if factors is q else done[0]

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
    roots, spreads, width = [], [], DENSE
    for part in parts_of(domain):
        shapes = [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(part.space.zero))]
        size = sum(int(np.prod(shape)) for shape in shapes)
        root = None
        if scaled and part.scalable and domain.separate:
            root = jnp.ones(size)
            if size <= DENSE:
                width = size + (width if width + size <= DENSE else 0)
                root = jnp.eye(size, width, width - size)
        roots.append(root)
        turning = scaled and not part.scalable and part.constraint is None and domain.separate
        spreads += [jnp.ones(()) if turning else None for _ in shapes]
    return Target(density, domain, tuple(roots), tuple(spreads), extra, level is not None, jnp.asarray(1.0 if level is None else level, float))


def _tupled(domain: Domain) -> bool:
    return hasattr(domain, "parts")


def _cut(flat: Any, like: Sequence[Any]) -> list[Any]:
    """Rows of numbers, or one, as arrays of given shapes."""
    rows, place, cut = flat.size // flat.shape[-1], 0, []
    for one in like:
        size = one.size // rows
        cut.append(flat[..., place : place + size].reshape(one.shape))
        place += size
    return cut
