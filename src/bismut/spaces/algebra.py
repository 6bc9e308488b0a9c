"""Any Lie algebra, by its structure constants or by matrices.

    [e_i, e_j] = c_ij^k e_k,        Ad*_{exp x} μ = Σ (ad*_x)^k μ / k!,        (dexp⁻¹_x)* μ = Σ B_k (ad*_x)^k μ / k!

Group elements are represented by their action on the algebra, as matrices Ad_g = exp(ad_x): a coadjoint action needs no more, and it is the same for
every group with that algebra, centre or not. The retraction is the exponential; Cayley's would leave the group in general. Momenta have one component
for each element of the basis. The series of the action is exact to round-off up to |ad_x| = 4, that of dexp⁻¹ up to 2; the latter affects accuracy
alone, no invariant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError
from bismut.registry import SPACES
from bismut.spaces.series import bernoulli
from bismut.spaces.space import Group, check_dimension, check_retraction

_PARTS, _TERMS = 4, 18  # exp(A) = exp(A/4)⁴: for |A| ≤ 4 the first term left out is 1/19! = 8e−18
_QUADRATIC = 30  # dimensions up to which quadratic Casimirs are computed
_EVEN = 16  # terms of dexp⁻¹ beyond −½: they leave (|A|/2π)^34


@dataclass(frozen=True, repr=False)
class Algebra(Group):
    """A Lie algebra with n elements; built by so(n), sl(n), matrix_algebra(...) or structure_constants(...).

    name     as it is shown
    n        how many elements its basis has
    entries  (i, j, k, c_ij^k) of the constants that are not 0
    basis    the matrices of the basis, entry by entry, if it was built from matrices
    """

    name: str
    n: int
    entries: tuple[tuple[int, int, int, float], ...]
    basis: tuple[float, ...] | None = None
    points_are = "matrices of Ad"

    def __repr__(self):
        return self.name

    def using(self, retraction):
        if check_retraction(retraction) != "exp":
            raise DomainError(f"{self} moves by the exponential; Cayley's retraction would leave the group. Omit retraction=.")
        return self

    def origin(self, dtype: Any = float):
        return jnp.eye(self.n, dtype=dtype)

    def zero(self, dtype: Any = float):
        return jnp.zeros(self.n, dtype)

    def ad(self, x: Float[Array, " n"]) -> Float[Array, "n n"]:
        """The matrix of [x, ·]."""
        return jnp.tensordot(x, jnp.asarray(_constants(self), x.dtype), axes=1).T

    def bracket(self, x, y):
        return self.ad(x) @ y

    def ad_star(self, x, mu):
        return mu @ self.ad(x)

    def tau(self, x):
        return jax.vmap(lambda row: self._series(self.ad(x), row))(jnp.eye(self.n, dtype=x.dtype))

    def coadjoint(self, x, mu):
        return self._series(self.ad(x), mu)

    def _series(self, A: Float[Array, "n n"], mu: Float[Array, " n"]) -> Float[Array, " n"]:
        """μ exp(A). The change is summed by itself and added once, so that a step rounds μ once and Casimirs hardly drift."""
        A = A / _PARTS

        def part(_, change):
            def term(k, now):
                total, last = now
                last = (last @ A) / (k + 1).astype(mu.dtype)
                return total + last, last

            return jax.lax.fori_loop(0, _TERMS, term, (change, mu + change))[0]

        return mu + jax.lax.fori_loop(0, _PARTS, part, jnp.zeros_like(mu))

    def dtau_inv(self, x, y):
        return _bernoulli(self.ad(x).T, y)

    def dtau_inv_adjoint(self, x, mu):
        return _bernoulli(self.ad(x), mu)

    def multiply(self, g, h):
        return g @ h

    def Ad(self, g, x):
        return g @ x

    def Ad_star(self, g, mu):
        return mu @ g

    def matrix(self, mu: Float[Array, " n"]) -> Float[Array, "N N"]:
        """W with ⟨μ, X⟩ = tr(W X) for every matrix X of the algebra: Ad* conjugates it."""
        return jnp.tensordot(mu, jnp.asarray(_duals(self), mu.dtype), axes=1)

    @property
    def casimirs(self) -> dict[str, Any]:
        """tr W^k, and quadratic forms of few elements."""
        if self.basis is not None and _duals(self) is not None:
            return {"traces": lambda mu: traces(self.matrix(mu))}
        forms = quadratic_casimirs(self)
        return {"quadratic": lambda mu: jnp.einsum("cij,i,j->c", jnp.asarray(forms, mu.dtype), mu, mu)} if len(forms) else {}


def traces(W: Float[Array, "N N"]) -> Float[Array, " powers"]:
    """tr W², tr W³, ... up to the size of the matrix."""
    powers = [W]
    for _ in range(W.shape[0] - 1):
        powers.append(powers[-1] @ W)
    return jnp.stack([jnp.trace(power) for power in powers[1:]])


@SPACES.register
def structure_constants(constants: Any, name: str = "algebra") -> Algebra:
    """The algebra with [e_i, e_j] = Σ_k constants[i, j, k] e_k; rejected unless the bracket is skew and satisfies the Jacobi identity."""
    c = np.asarray(constants, float)
    if c.ndim != 3 or len(set(c.shape)) != 1:
        raise ShapeError(f"structure constants have shape (n, n, n), got {c.shape}.")
    size = max(float(np.abs(c).max()), 1.0)
    if np.abs(c + np.swapaxes(c, 0, 1)).max() > 1e-10 * size:
        raise DomainError("structure constants must be skew in their first two indices: [e_i, e_j] = −[e_j, e_i].")
    cycle = np.einsum("ijl,lkm->ijkm", c, c)
    if np.abs(cycle + cycle.transpose(1, 2, 0, 3) + cycle.transpose(2, 0, 1, 3)).max() > 1e-9 * size**2:
        raise DomainError("structure constants must satisfy the Jacobi identity, [[x, y], z] + [[y, z], x] + [[z, x], y] = 0.")
    entries = tuple((int(i), int(j), int(k), float(c[i, j, k])) for i, j, k in np.argwhere(np.abs(c) > 1e-14 * size))
    return Algebra(name, c.shape[0], entries)


@SPACES.register
def matrix_algebra(matrices: Any, name: str = "matrix algebra") -> Algebra:
    """The algebra of real matrices (n, N, N), a basis whose span is closed under commutators."""
    E = np.asarray(matrices)
    if E.ndim != 3 or E.shape[1] != E.shape[2] or np.iscomplexobj(E):
        raise ShapeError(f"A basis has shape (n, N, N) and is real, got {E.dtype} {E.shape}. For complex matrices use su(n).")
    E = E.astype(float)
    flat = E.reshape(len(E), -1)
    if np.linalg.matrix_rank(flat) < len(E):
        raise DomainError(f"The {len(E)} matrices are not linearly independent, so they are not a basis. Remove the dependent ones.")
    commutators = np.einsum("iab,jbc->ijac", E, E) - np.einsum("jab,ibc->ijac", E, E)
    c, *_ = np.linalg.lstsq(flat.T, commutators.reshape(len(E) ** 2, -1).T, rcond=None)
    if np.abs(flat.T @ c - commutators.reshape(len(E) ** 2, -1).T).max() > 1e-9 * max(float(np.abs(E).max()) ** 2, 1e-300):
        raise DomainError("The matrices do not span an algebra: a commutator leaves their span. Add the missing ones.")
    abstract = structure_constants(c.T.reshape(len(E), len(E), len(E)), name)
    return replace(abstract, basis=tuple(float(value) for value in E.ravel()))


@SPACES.register
@lru_cache(maxsize=64)
def so(n: int) -> Algebra:
    """so(n), skew matrices: e_ij − e_ji with i < j. so(3) is the algebra of SO3() in another basis."""
    check_dimension("so", n, 2)
    rows, columns = np.triu_indices(n, 1)
    E = np.zeros((len(rows), n, n))
    E[np.arange(len(rows)), rows, columns], E[np.arange(len(rows)), columns, rows] = 1.0, -1.0
    return matrix_algebra(E, f"so({n})")


@SPACES.register
@lru_cache(maxsize=64)
def sl(n: int) -> Algebra:
    """sl(n), traceless real matrices: e_ij with i ≠ j, then e_ii − e_{i+1,i+1}."""
    check_dimension("sl", n, 2)
    rows, columns = np.nonzero(~np.eye(n, dtype=bool))
    E = np.zeros((n * n - 1, n, n))
    E[np.arange(len(rows)), rows, columns] = 1.0
    for i in range(n - 1):
        E[len(rows) + i, i, i], E[len(rows) + i, i + 1, i + 1] = 1.0, -1.0
    return matrix_algebra(E, f"sl({n})")


@lru_cache(maxsize=64)
def _constants(algebra: Algebra) -> np.ndarray:
    """c[i, j, k]."""
    c = np.zeros((algebra.n,) * 3)
    for i, j, k, value in algebra.entries:
        c[i, j, k] = value
    return c


@lru_cache(maxsize=64)
def _duals(algebra: Algebra) -> np.ndarray | None:
    """Matrices F_i with tr(F_i E_j) = δ_ij in the span of the basis; None where the trace form degenerates."""
    size = round((len(algebra.basis or ()) / algebra.n) ** 0.5)
    E = np.asarray(algebra.basis).reshape(algebra.n, size, size)
    form = np.einsum("iab,jba->ij", E, E)
    return np.einsum("ij,jab->iab", np.linalg.inv(form), E) if np.linalg.matrix_rank(form) == algebra.n else None


@lru_cache(maxsize=64)
def quadratic_casimirs(algebra: Algebra) -> np.ndarray:
    """Symmetric C with μ·C ad*_x μ = 0 for all x, a basis of them (count, n, n); none for more than 30 elements."""
    n = algebra.n
    if n > _QUADRATIC:
        return np.zeros((0, n, n))
    rows, columns = np.triu_indices(n)
    unit = np.zeros((len(rows), n, n))
    unit[np.arange(len(rows)), rows, columns] = unit[np.arange(len(rows)), columns, rows] = 1.0
    ads = np.swapaxes(_constants(algebra), 1, 2)  # (x, k, j)
    moved = np.einsum("uab,xcb->uxac", unit, ads)  # C ad_xᵀ
    image = (moved + np.swapaxes(moved, 2, 3)).reshape(len(rows), -1)
    u, s, _ = np.linalg.svd(image, full_matrices=True)
    rank = int((s > 1e-9 * max(float(s.max(initial=0.0)), 1e-300)).sum())
    return np.einsum("uc,uab->cab", u[:, rank:], unit)


def _bernoulli(A: Float[Array, "n n"], mu: Float[Array, " n"]) -> Float[Array, " n"]:
    """μ A/(e^A − 1) = μ − μA/2 + μA²/12 − ..."""
    first = mu @ A
    second = first @ A
    weights = jnp.asarray(np.array([float(b) for b in bernoulli(2 * _EVEN + 1)[4::2]]), mu.dtype)

    def term(k, now):
        total, last = now
        last = (last @ A) @ A
        return total + weights[k] * last, last

    return jax.lax.fori_loop(0, len(weights), term, (mu - 0.5 * first + second / 12, second))[0]
