"""Saddle-point equations with multipliers (Karush–Kuhn–Tucker), solved by the Schur complement S.

    A x + N λ = a,    C x = b        ⟹        S λ = C A⁻¹ a − b,    x = A⁻¹(a − N λ),    S = C A⁻¹ N

A is block diagonal; what is solved together are only the k multipliers. S couples two constraints only where both depend on a common cell, so for
local constraints (a chain, many molecules) it is banded once they are ordered well: a chain of k links costs O(k). Which cells a constraint depends
on is determined by `constraint.sparsity`. The projections of momenta, of start points and of friction factors are solves of the same form.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.mechanics import newton, small_linalg
from bismut.mechanics.newton import Cells, Linear, Vector

Sparsity = tuple[tuple[int, ...], ...]  # for each constraint, the components of a velocity it depends on


class Band(NamedTuple):
    """k unknowns that couple, in this order, only to their `half` neighbours on either side."""

    order: tuple[int, ...]
    half: int

    @property
    def full(self) -> bool:
        """Whether band storage would save nothing."""
        return 2 * self.half + 1 >= len(self.order)

    def factor(self, tangent: Linear, dtype) -> Linear:
        """y ↦ λ with S λ = y, from λ ↦ S λ."""
        k = len(self.order)
        if self.full:
            factors = small_linalg.factored(jax.vmap(tangent)(jnp.eye(k, dtype=dtype)).T)
            return lambda y: small_linalg.solve_factored(factors, y)
        order, width = np.asarray(self.order), 2 * self.half + 1
        place, as_given = np.argsort(order), self.order == tuple(range(k))
        arranged, back = (lambda y: y if as_given else y[..., order]), (lambda y: y if as_given else y[place])
        # Columns whose neighbourhoods do not overlap are evaluated with one product.
        columns = arranged(jax.vmap(tangent)(jnp.asarray(place[None, :] % width == np.arange(width)[:, None], dtype)))
        rows, offsets = np.arange(k)[:, None], np.arange(-self.half, self.half + 1)
        inside = (rows + offsets >= 0) & (rows + offsets < k)
        bands = jnp.where(inside, columns[(rows + offsets) % width, rows], 0.0)
        factors, upper = eliminated(bands)
        return lambda y: back(solve_eliminated(factors, upper, arranged(y)))

    def size(self, x: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(x))

    @property
    def long(self) -> bool:
        return not self.full


class KKT(NamedTuple):
    """The layout of (velocity, multipliers). The multipliers follow from the velocity, so only the velocity is measured."""

    cells: Cells
    band: Band

    def factor(self, tangent: Linear, dtype) -> Linear:
        n, k = self.cells.dim, len(self.band.order)
        across = lambda x: tangent(jnp.concatenate([x, jnp.zeros(k, dtype)]))
        matrices = newton.diagonal_blocks(lambda x: across(x)[:n], self.cells, dtype)
        inverse = newton.factor_blocks(matrices, self.cells)
        N = lambda multipliers: tangent(jnp.concatenate([jnp.zeros(n, dtype), multipliers]))[:n]
        S = self.band.factor(lambda m: across(inverse(N(m)))[n:], dtype)

        def solve(y):
            free = inverse(y[:n])
            multipliers = S(across(free)[n:] - y[n:])
            return jnp.concatenate([free - inverse(N(multipliers)), multipliers])

        return solve

    def size(self, x: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(x[: self.cells.dim]))

    @property
    def long(self) -> bool:
        return self.band.long


@lru_cache
def kkt_layout(cells: Cells, sparsity: Sparsity) -> KKT:
    """The layout for cells and constraints, in their own order, or that of reverse Cuthill–McKee where its band is narrower."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    owner = np.repeat(np.arange(sum(count for count, _ in cells.runs)), [size for count, size in cells.runs for _ in range(count)])
    pattern = np.zeros((len(sparsity), owner.max(initial=0) + 1), bool)
    for row, components in enumerate(sparsity):
        pattern[row, owner[list(components)]] = True
    couples = (pattern.astype(int) @ pattern.astype(int).T) > 0
    narrow = reverse_cuthill_mckee(csr_array(couples), symmetric_mode=True)
    given = np.arange(len(sparsity))
    order = min((given, narrow), key=lambda order: _half(couples, order))  # a chain as it is given needs no gathers
    return KKT(cells, Band(tuple(map(int, order)), _half(couples, order)))


def _half(couples: np.ndarray, order: np.ndarray) -> int:
    i, j = np.nonzero(couples[np.ix_(order, order)])
    return int(np.abs(i - j).max(initial=0))


def eliminated(bands: Float[Array, "k width"]) -> tuple[Float[Array, "k half"], Float[Array, "k half+1"]]:
    """Elimination without pivoting: S = C A⁻¹ N is nearly symmetric and positive. bands[i, half + d] holds S[i, i + d].

    What all right-hand sides share: by how much of the `half` rows above each row is reduced, and what is left of it from its diagonal on."""
    half = bands.shape[1] // 2

    def eliminate(above, entries):
        factors = []
        for s in range(half):
            factors.append(entries[s] / above[s, 0])
            entries = entries.at[s : s + half + 1].add(-factors[-1] * above[s])
        reduced = entries[half:]
        return jnp.concatenate([above[1:], reduced[None]])[:half], (jnp.stack(factors) if factors else entries[:0], reduced)

    unit = jnp.zeros((half, half + 1), bands.dtype).at[:, 0].set(1)
    return jax.lax.scan(eliminate, unit, bands)[1]


def solve_eliminated(factors: Float[Array, "k half"], upper: Float[Array, "k half+1"], y: Vector) -> Vector:
    half = factors.shape[1]

    def reduce(done, row):
        factor, right = row
        for s in range(half):
            right = right - factor[s] * done[s]
        return jnp.append(done[1:], right), right

    def substitute(below, row):
        entries, right = row
        x = (right - entries[1:] @ below) / entries[0]
        return jnp.concatenate([x[None], below])[:half], x

    zero = jnp.zeros(half, y.dtype)
    right = jax.lax.scan(reduce, zero, (factors, y))[1]
    return jax.lax.scan(substitute, zero, (upper, right), reverse=True)[1]
