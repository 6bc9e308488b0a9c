"""su(N) by matrices, for N large: momenta are N × N real matrices.

    X = A + iS,   A = (M − Mᵀ)/2,  S = (M + Mᵀ)/2,        ⟨μ, ξ⟩ = Σ M_ij M′_ij = Re tr X†Y,        ad*_x μ = [μ, x],   Ad*_g μ = g⁻¹ μ g
    cay x = (1 + x/2)(1 − x/2)⁻¹,        (dcay⁻¹_x)* μ = (1 + x/2) μ (1 − x/2)

A real matrix M is a skew-Hermitian one: no component is redundant, and none needs complex numbers. Its trace is the component of u(N) that su(N)
lacks; it is a Casimir, so what begins in su(N) stays there. The step with Cayley's retraction is the isospectral midpoint rule (Modin and Viviani,
Found. Comput. Math. 20, 889 (2020)), and all of it are products of matrices, N³ instead of the N⁶ structure constants. The inverse is that of 1 −
x²/4 = 1 + x†x/4 by Newton's iteration, Y ← Y(2 − BY), which doubles its correct digits with every iteration while |x| < 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError
from bismut.registry import SPACES
from bismut.spaces.space import Group, check_dimension, check_retraction
from bismut.tracing import traced

ComplexMatrix = tuple[Float[Array, "N N"], Float[Array, "N N"]]  # real and imaginary part
_ITERATIONS = 7  # of the inverse: from |x|²/4 = ¾ to round-off


@dataclass(frozen=True, repr=False)
class Unitary(Group):
    """su(N) with its coadjoint action on N × N real matrices M, for X = A + iS."""

    n: int
    points_are = "unitary matrices, real part and imaginary part"

    def __post_init__(self):
        check_dimension("su", self.n, 2)

    def __repr__(self):
        return f"su({self.n})"

    def using(self, retraction):
        if check_retraction(retraction) != "cayley":
            raise DomainError(f"{self} moves only by Cayley's retraction. Omit retraction=.")
        return self

    def origin(self, dtype: Any = float):
        return jnp.eye(self.n, dtype=dtype), jnp.zeros((self.n, self.n), dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros((self.n, self.n), dtype)

    def bracket(self, x, y):
        return _commutator(parts(x), parts(y))

    def ad_star(self, x, mu):
        return _commutator(parts(mu), parts(x))

    def dtau_inv(self, x, y):
        return self.dtau_inv_adjoint(-x, y)

    def dtau_inv_adjoint(self, x, mu):
        X, Y = parts(0.5 * x), parts(mu)
        first = _times(X, Y)  # and Y X is its adjoint, both being skew
        second = _times(first, X)
        return mu + _commuted(first) - (second[0] + second[1])

    def tau(self, x):
        half = _plus_one(parts(0.5 * x))
        return _times(_times(half, self._inverse_square(x)), half)

    def _inverse_square(self, x) -> ComplexMatrix:
        """(1 − x²/4)⁻¹."""
        X, one = parts(0.5 * x), jnp.eye(self.n, dtype=x.dtype)
        square = _times(X, X)
        B = one - square[0], -square[1]

        def iterate(_, Y):
            rest = _times(B, Y)
            return _times(Y, (2 * one - rest[0], -rest[1]))

        return jax.lax.fori_loop(0, _ITERATIONS, iterate, _plus_one(square))

    def coadjoint(self, x, mu):
        # μ − [x, μ̄] with μ = (1 + x/2) μ̄ (1 − x/2): round-off is that of the change, not of μ. As g⁻¹ μ g it drifts by 2e−16 of μ in every step.
        right = _times(_plus_one(parts(0.5 * x)), self._inverse_square(x))  # (1 − x/2)⁻¹
        left = right[0].T, -right[1].T
        return mu - _commutator(parts(x), parts(_skew(_times(_times(left, parts(mu)), right))))

    def multiply(self, g, h):
        return _times(g, h)

    def inverse(self, g):
        return g[0].T, -g[1].T

    def Ad(self, g, x):
        return self.Ad_star(self.inverse(g), x)

    def Ad_star(self, g, mu):
        return _skew(_times(_times(self.inverse(g), parts(mu)), g))

    def project(self, q):
        U, _, V = np.linalg.svd(_complex(q))  # the polar decomposition
        g = U @ V
        return jnp.asarray(np.real(g)), jnp.asarray(np.imag(g))

    def violation(self, q):
        g = _complex(q)
        return float(np.max(np.abs(g @ np.swapaxes(g, -1, -2).conj() - np.eye(self.n)), initial=0.0))

    def check(self, q, name="q"):
        shapes = [np.shape(part) for part in q] if isinstance(q, tuple) else []
        if len(shapes) != 2 or shapes[0] != shapes[1] or shapes[0][-2:] != (self.n, self.n):
            raise ShapeError(f"{name} must be a pair of {self.n} × {self.n} matrices on {self}, real and imaginary part, got {shapes}.")
        if not traced(q):
            self.check_numbers(q, name)
        return shapes[0][:-2]

    @property
    def casimirs(self) -> dict[str, Any]:
        return {"trace": jnp.trace, "traces": spectrum}


@SPACES.register
def su(n: int) -> Unitary:
    """su(n), skew-Hermitian matrices A + iS as real matrices M = A + S, with A skew and S symmetric. The trace of M is conserved, 0 for su(n)."""
    return Unitary(n)


def _complex(q: Any) -> np.ndarray:
    return np.asarray(q[0]) + 1j * np.asarray(q[1])


def parts(M: Float[Array, "N N"]) -> ComplexMatrix:
    """A and S of A + iS."""
    return 0.5 * (M - M.T), 0.5 * (M + M.T)


def spectrum(M: Float[Array, "N N"]) -> Float[Array, " powers"]:
    """tr (X/i)^k for k = 2, 3, 4: of the Hermitian matrix S − iA, whose eigenvalues are conserved along every path."""
    A, S = parts(M)
    square = S @ S - A @ A, -(S @ A + A @ S)
    cube = _times(square, (S, -A))
    return jnp.stack([jnp.trace(square[0]), jnp.trace(cube[0]), jnp.sum(square[0] ** 2) + jnp.sum(square[1] ** 2)])


def _times(X: ComplexMatrix, Y: ComplexMatrix) -> ComplexMatrix:
    return X[0] @ Y[0] - X[1] @ Y[1], X[0] @ Y[1] + X[1] @ Y[0]


def _plus_one(X: ComplexMatrix) -> ComplexMatrix:
    return X[0] + jnp.eye(X[0].shape[0], dtype=X[0].dtype), X[1]


def _skew(X: ComplexMatrix) -> Float[Array, "N N"]:
    """As a real matrix, without what round-off adds to the Hermitian part."""
    return 0.5 * _commuted(X)


def _commuted(P: ComplexMatrix) -> Float[Array, "N N"]:
    """P − P†, skew-Hermitian, as a real matrix."""
    return P[0] - P[0].T + P[1] + P[1].T


def _commutator(X: ComplexMatrix, Y: ComplexMatrix) -> Float[Array, "N N"]:
    return _commuted(_times(X, Y))
