"""Factorisations of small matrices.

    A = Q R      Householder's reflections, with LAPACK's signs
    A = V Λ Vᵀ   Jacobi's rotations, as everywhere in the house
    A = U Σ Vᵀ   Jacobi's rotations of columns until they are orthogonal (Hestenes), A V = U Σ; so small singular values keep their digits

Signs of eigenvectors and singular vectors are arbitrary, and may differ from LAPACK's.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from bismut.mechanics.small_linalg import LARGEST_BY_ROUNDS, eigen, orthogonal_columns
from bismut.programs.operation import OutOfReach, decomposition

LARGEST = 24  # rows or columns of a matrix


def _small(name: str, shape, most: int) -> None:
    if max(shape[-2:], default=0) > most:
        raise OutOfReach(f"{name} of {shape[-2]} × {shape[-1]} matrices, more than {most} rows or columns")


def _for_each(function: Callable, x):
    """function of the last two axes."""
    for _ in range(x.ndim - 2):
        function = jax.vmap(function)
    return function(x)


@decomposition("qr", factorises=True)
def qr(x, *, full_matrices, pivoting=False, **_):
    _small("qr", x.shape, LARGEST)
    if pivoting:
        raise OutOfReach("qr with pivoting")
    return _for_each(lambda A: reflected(A, full_matrices), x)


def reflected(A, full: bool):
    """Q and R: H_k = 1 − τ v vᵀ makes column k vanish below the diagonal; where it does already, nothing is done."""
    m, n = A.shape
    reflections = []
    for k in range(min(m - 1, n)):
        x = A[k:, k]
        size = jnp.sqrt(jnp.sum(x * x))
        beta = jnp.where(x[0] < 0, size, -size)
        nothing = ~jnp.any(x[1:] != 0)  # not of squares, which underflow
        v = jnp.concatenate([jnp.ones_like(x[:1]), jnp.where(nothing, 0.0, x[1:] / (x[0] - beta))])
        tau = jnp.where(nothing, 0.0, (beta - x[0]) / beta)
        reflections.append((v, tau))
        rest = A[k:, k:] - tau * jnp.outer(v, v @ A[k:, k:])
        rest = rest.at[:, 0].set(jnp.where(jnp.arange(m - k) == 0, jnp.where(nothing, x[0], beta), 0.0))
        A = A.at[k:, k:].set(rest)
    width = m if full else min(m, n)
    Q = jnp.eye(m, width, dtype=A.dtype)
    for k, (v, tau) in reversed(list(enumerate(reflections))):
        Q = Q.at[k:].set(Q[k:] - tau * jnp.outer(v, v @ Q[k:]))
    return Q, A[:width]


@decomposition("eigh", factorises=True)
def eigh(x, *, lower, sort_eigenvalues, subset_by_index=None, **_):
    _small("eigh", x.shape, LARGEST_BY_ROUNDS)
    if subset_by_index not in (None, (0, x.shape[-1])):
        raise OutOfReach("eigh of some eigenvalues")

    def one(A):
        half = jnp.tril(A) if lower else jnp.triu(A).T
        values, Q = eigen(half + jnp.tril(half, -1).T)
        order = jnp.argsort(values) if sort_eigenvalues else jnp.arange(len(values))
        return Q[:, order], values[order]

    return _for_each(one, x)


@decomposition("svd", factorises=True)
def svd(x, *, full_matrices, compute_uv, subset_by_index=None, **_):
    _small("svd", x.shape, LARGEST)
    if subset_by_index not in (None, (0, min(x.shape[-2:]))):
        raise OutOfReach("svd of some singular values")

    def one(A):
        tall = A.shape[0] >= A.shape[1]
        turned, V = orthogonal_columns(A if tall else A.T)
        sizes = jnp.sqrt(jnp.sum(turned * turned, 0))
        order = jnp.argsort(-sizes)
        values = sizes[order]
        if not compute_uv:
            return (values,)
        # The reflections of orthogonal columns complete a basis, also where some are zero.
        Q, R = reflected(turned[:, order], full_matrices)
        n = len(values)
        U = Q.at[:, :n].set(Q[:, :n] * jnp.where(jnp.diagonal(R)[:n] < 0, -1.0, 1.0))
        V = V[:, order]
        return (values, U, V.T) if tall else (values, V, U.T)

    return _for_each(one, x)
