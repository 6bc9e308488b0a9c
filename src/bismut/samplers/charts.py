"""Domains by a chart on all of ℝᵐ, with the volume element of the map.

    Real(shape)           x = q: one number, or an array of any shape
    Positive(shape)       x = e^q,  dx = Π x_i dq
    Simplex(n)            x = softmax(q, 0),  dx = Π x_i dq                     density with respect to dx₁ … dx_{n−1}
    PositiveDefinite(n)   S = L Lᵀ,  L lower with diagonal e^{q_ii},            with respect to Π_{i≥j} dS_ij
                          dS = 2ⁿ Π L_ii^{n−i+2} dq,  i = 1, …, n

On a surface in one the area is that of x among all its entries, |dx|² = Σ dx², and `gradient` gives ∂f/∂x along it:

    Positive          (∂f/∂q_i)/x_i
    Simplex           d_i/x_i − (Σ_k d_k/x_k)/n,   d = (∂f/∂q, −Σ ∂f/∂q)
    PositiveDefinite  W = L⁻ᵀ B L⁻¹,  B symmetric with the lower half of Lᵀ ∂f/∂L / 2,  since df = tr W dS = 2 tr Lᵀ W dL

By a group that acts simply transitively, and not by constraints: positive vectors under multiplication act on the open simplex, lower triangular
matrices with positive diagonal on positive-definite ones, so a chart covers everything, there is no boundary to run into, and scales adapt as on
ℝᵐ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import is_integer
from bismut.errors import DomainError
from bismut.samplers.domain import SPREAD, Domain
from bismut.spaces import Euclidean, Space
from bismut.spaces.space import check_dimension


@dataclass(frozen=True)
class Real(Domain):
    """Any number, or an array of them: a log-density is given an array of the shape, () for one number."""

    shape: tuple[int, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "shape", _checked_shape(type(self).__name__, self.shape))

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(math.prod(self.shape))

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "Lebesgue's measure"

    def point(self, q):
        return q.reshape(self.shape)

    def coordinates(self, x):
        return jnp.reshape(x, (-1,))

    def random(self, key):
        return SPREAD * self.space.random(key)


@dataclass(frozen=True)
class Positive(Real):
    """A positive number such as a scale, or an array of them; densities are those of the numbers themselves, with respect to dx."""

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "dx of the numbers themselves"

    def point(self, q):
        return jnp.exp(q).reshape(self.shape)

    def coordinates(self, x):
        return jnp.log(jnp.reshape(x, (-1,)))

    def log_volume(self, q):
        return jnp.sum(q)

    def gradient(self, q, slope):
        return jnp.exp(-q) * slope


def _checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list) or not all(is_integer(size) and size >= 1 for size in shape):
        raise DomainError(f"{name}(shape) needs a tuple of whole numbers ≥ 1 such as (8,), or () for one number, got {shape!r}.")
    return tuple(int(size) for size in shape)


@dataclass(frozen=True)
class Simplex(Domain):
    """n positive numbers with sum 1; densities are those of Dirichlet's distribution, with respect to the first n − 1 of them."""

    n: int

    def __post_init__(self):
        check_dimension("Simplex", self.n, 2)

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(self.n - 1)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "dx of the first n − 1 numbers"

    def point(self, q):
        return jnp.exp(self._logarithms(q))

    def coordinates(self, x):
        return jnp.log(x[:-1]) - jnp.log(x[-1])

    def log_volume(self, q):
        return jnp.sum(self._logarithms(q))

    def gradient(self, q, slope):
        steep = jnp.append(slope, -jnp.sum(slope)) * jnp.exp(-self._logarithms(q))
        return steep - jnp.mean(steep)

    def _logarithms(self, q):
        full = jnp.concatenate([q, jnp.zeros(1, q.dtype)])
        highest = jax.lax.stop_gradient(jnp.max(full))
        return full - highest - jnp.log(jnp.sum(jnp.exp(full - highest)))


@dataclass(frozen=True)
class PositiveDefinite(Domain):
    """Symmetric positive-definite n × n matrices, with the volume of their n(n + 1)/2 entries."""

    n: int

    def __post_init__(self):
        check_dimension("PositiveDefinite", self.n)

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(self.n * (self.n + 1) // 2)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "dS of the entries on and below the diagonal"

    def point(self, q):
        L = self._root(q)
        return L @ L.T

    def coordinates(self, x):
        L = jnp.linalg.cholesky(x)
        return jnp.concatenate([jnp.log(jnp.diagonal(L)), L[np.tril_indices(self.n, -1)]])

    def log_volume(self, q):
        return jnp.asarray(np.arange(self.n + 1, 1, -1), q.dtype) @ q[: self.n]

    def gradient(self, q, slope):
        n, L = self.n, self._root(q)
        half = 0.5 * (L.T @ self._lower(jnp.exp(-q[:n]) * slope[:n], slope[n:]))
        lower = jnp.where(np.tri(n, k=-1, dtype=bool), half, 0.0)
        inverse = _inverse(L)
        return inverse.T @ (lower + lower.T + jnp.diag(jnp.diagonal(half))) @ inverse

    def _root(self, q):
        return self._lower(jnp.exp(q[: self.n]), q[self.n :])

    def _lower(self, diagonal, below):
        return jnp.zeros((self.n, self.n), diagonal.dtype).at[np.tril_indices(self.n, -1)].set(below) + jnp.diag(diagonal)


def _inverse(L):
    """Of a small lower triangular matrix, row by row."""
    one, rows = jnp.eye(len(L), dtype=L.dtype), []
    for i in range(len(L)):
        rows.append((one[i] - sum((L[i, k] * rows[k] for k in range(i)), jnp.zeros_like(one[i]))) / L[i, i])
    return jnp.stack(rows)
