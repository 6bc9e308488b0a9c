"""Surfaces in Euclidean spaces, with the area they inherit.

    Sphere(n)       |x| = 1 in ℝⁿ⁺¹                       one constraint
    Stiefel(n, k)   XᵀX = 1, X n × k                      k(k+1)/2 constraints; the area is the invariant measure
    SO(n)           Stiefel(n, n) with det X = 1          SO(2) and SO(3) are groups with a frame: those of `spaces`
    SU(n)           X†X = 1, det X = 1; a pair (real part, imaginary part)

By constraints and not by a group that acts on them, because they have fewer coordinates that way: S⁵ is 6 numbers and one equation, and 15 angles
as a quotient of SO(6). Of SU(2) a point is moved as a unit quaternion, (a + ib, c + id; −c + id, a − ib), which is S³. Each of these measures is
invariant under rotations of the embedding, hence uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.samplers.domain import Domain
from bismut.spaces import SO2, SO3, Euclidean, Space
from bismut.spaces.space import check_dimension


@dataclass(frozen=True)
class Sphere(Domain):
    """The unit sphere Sⁿ in ℝⁿ⁺¹, with its area: points are unit vectors of n + 1 numbers."""

    n: int

    def __post_init__(self):
        check_dimension("Sphere", self.n)

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(self.n + 1)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "the area of the sphere"

    def constraint(self, q):  # pyright: ignore[reportIncompatibleVariableOverride]
        return jnp.stack([0.5 * (q @ q - 1)])

    def random(self, key):
        x = jax.random.normal(key, (self.n + 1,))
        return x / jnp.linalg.norm(x)


@dataclass(frozen=True)
class Stiefel(Domain):
    """n × k matrices with orthonormal columns, k < n, with the invariant measure."""

    n: int
    k: int

    def __post_init__(self):
        check_dimension("Stiefel", self.n)
        check_dimension("Stiefel", self.k)
        if self.k > self.n:
            raise DomainError(f"Stiefel(n, k) needs k ≤ n orthonormal columns, got n = {self.n}, k = {self.k}.")
        if self.k == self.n and type(self) is Stiefel:
            raise DomainError(
                f"Stiefel({self.n}, {self.n}) is O({self.n}), which is in two pieces, det X = 1 and −1, between which no chain moves. "
                f"Use SO({self.n}), and give det X = −1 a sign of your own."
            )

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(self.n * self.k)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "the invariant measure of orthonormal frames"

    def point(self, q):
        return q.reshape(self.n, self.k)

    def coordinates(self, x):
        return jnp.reshape(x, (-1,))

    def constraint(self, q):  # pyright: ignore[reportIncompatibleVariableOverride]
        X = self.point(q)
        return 0.5 * (X.T @ X - jnp.eye(self.k, dtype=X.dtype))[np.triu_indices(self.k)]

    def random(self, key):
        return _polar(jax.random.normal(key, (self.n, self.k))).reshape(-1)


@dataclass(frozen=True)
class Rotations(Stiefel):
    """SO(n) as n × n matrices, with Haar's measure."""

    def random(self, key):
        X = _polar(jax.random.normal(key, (self.n, self.n)))
        return (X * jnp.ones(self.n).at[0].set(jnp.sign(jnp.linalg.det(X)))).reshape(-1)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "Haar's measure"


def SO(n: int) -> Space | Domain:
    """Rotations of ℝⁿ with Haar's measure: the groups SO2() and SO3(), and from n = 4 on matrices held by constraints, whose steps XLA computes
    and no machine loop."""
    check_dimension("SO", n, 2)
    return {2: SO2, 3: SO3}[n]() if n < 4 else Rotations(n, n)


@dataclass(frozen=True)
class SU2(Sphere):
    """SU(2) with Haar's measure, moved as unit quaternions; points are a pair of 2 × 2 matrices, real and imaginary part."""

    n: int = 3

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "Haar's measure"

    def point(self, q):
        a, b, c, d = q
        return jnp.stack([jnp.stack([a, c]), jnp.stack([-c, a])]), jnp.stack([jnp.stack([b, d]), jnp.stack([d, -b])])

    def coordinates(self, x):
        A, B = x
        return jnp.stack([A[0, 0], B[0, 0], A[0, 1], B[0, 1]])


@dataclass(frozen=True)
class SpecialUnitary(Domain):
    """SU(n) with Haar's measure; points are a pair of n × n matrices, real and imaginary part."""

    n: int

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Euclidean(2 * self.n**2)

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "Haar's measure"

    def point(self, q):
        A, B = q.reshape(2, self.n, self.n)
        return A, B

    def coordinates(self, x):
        return jnp.stack(x).reshape(-1)

    def constraint(self, q):  # pyright: ignore[reportIncompatibleVariableOverride]
        A, B = self.point(q)
        real, imaginary = A.T @ A + B.T @ B - jnp.eye(self.n, dtype=q.dtype), A.T @ B - B.T @ A
        determinant = _determinant(A, B)
        phase = jnp.arctan2(determinant[1], determinant[0])  # an imaginary part of 0 alone would admit det = −1
        return jnp.concatenate([0.5 * real[np.triu_indices(self.n)], imaginary[np.triu_indices(self.n, 1)], jnp.stack([phase])])

    def random(self, key):
        one, two = jax.random.split(key)
        Z = jax.random.normal(one, (self.n, self.n)) + 1j * jax.random.normal(two, (self.n, self.n))
        U = _polar(Z)
        U = U.at[0].divide(jnp.linalg.det(U))
        return jnp.stack([U.real, U.imag]).reshape(-1)


def SU(n: int) -> Domain:
    """Special unitary matrices with Haar's measure; a log-density is given a pair, real and imaginary part. From n = 3 on XLA computes the
    steps, and no machine loop."""
    check_dimension("SU", n, 2)
    return SU2() if n == 2 else SpecialUnitary(n)


def _polar(X):
    """The nearest matrix with orthonormal columns; uniform for a normal X."""
    U, _, V = jnp.linalg.svd(X, full_matrices=False)
    return U @ V


def _determinant(A, B):
    """Of A + iB, as real and imaginary part, by its first row."""
    if A.shape[0] == 1:
        return A[0, 0], B[0, 0]
    real, imaginary = 0.0, 0.0
    for j in range(A.shape[0]):
        keep = [k for k in range(A.shape[0]) if k != j]
        re, im = _determinant(A[1:, keep], B[1:, keep])
        sign = (-1) ** j
        real = real + sign * (A[0, j] * re - B[0, j] * im)
        imaginary = imaginary + sign * (A[0, j] * im + B[0, j] * re)
    return real, imaginary
