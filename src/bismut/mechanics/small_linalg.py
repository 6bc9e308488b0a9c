"""Linear algebra on small matrices, written out.

A LAPACK call on a 3 × 3 matrix costs many times its arithmetic, and it cannot be turned into vector code over trajectories. Up to a few rows the
textbook algorithms are unrolled; beyond, the library is called.

    f(A) = Q f(Λ) Qᵀ,     df(A)·B = Q (F ∘ QᵀBQ) Qᵀ,   F_ij = (f(λ_i) − f(λ_j))/(λ_i − λ_j)

Functions of a symmetric matrix are differentiated by the formula of Daleckii and Krein, which has no trouble with equal eigenvalues.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.tracing import traced

UNROLLED = 6  # largest matrix that is written out
LARGEST_BY_ROUNDS = 32  # largest matrix whose eigenvectors are found by loops over its rows
_MANY = 30  # sweeps of these at the most: eight or so, but twice as many where half of the eigenvalues are equal
_SWEEPS = 6  # of Jacobi rotations; for n ≤ 6 five reach round-off, the sixth is for safety

Matrix = Float[Array, "n n"]
Vector = Float[Array, " n"]
Factors = tuple[Any, ...]


def once_traced(function: Callable) -> Callable:
    """Hundreds of operations, the same wherever a matrix of a size is met: traced once. Without a trace they are carried out one by one as before."""
    known = jax.jit(function, inline=True)
    return wraps(function)(lambda *arguments: (known if traced(arguments) else function)(*arguments))


def solve(A: Matrix, b: Vector) -> Vector:
    """A⁻¹ b."""
    return solve_unrolled(A, b) if b.shape[0] <= UNROLLED else jnp.linalg.solve(A, b)


def solve_unrolled(A: Matrix, b: Vector) -> Vector:
    """A⁻¹ b: up to three unknowns by cofactors, beyond by elimination with partial pivoting, written out.

    (Pivoting is a choice per trajectory, which vector code makes by computing both: cofactors make the step of a rigid body 1.4 times faster.)
    """
    return solve_factored(_factored(A), b)


def factored(A: Matrix) -> Factors:
    """What all right-hand sides of A share: cofactors and determinant; the upper triangle, factors and exchanges of an elimination; or A itself."""
    return _factored(A) if A.shape[0] <= UNROLLED else (A,)


@once_traced
def _factored(A: Matrix) -> Factors:
    n = A.shape[0]
    if n == 1:
        return (A,)
    if n == 2:
        C = jnp.stack([jnp.stack([A[1, 1], -A[1, 0]]), jnp.stack([-A[0, 1], A[0, 0]])])
        return C, A[0] @ C[0]
    if n == 3:
        minor = lambda i, j: A[(i + 1) % 3, (j + 1) % 3] * A[(i + 2) % 3, (j + 2) % 3] - A[(i + 1) % 3, (j + 2) % 3] * A[(i + 2) % 3, (j + 1) % 3]
        C = jnp.stack([jnp.stack([minor(i, j) for j in range(3)]) for i in range(3)])
        return C, A[0] @ C[0]
    rows, factors, exchanges = [A[i] for i in range(n)], [], []
    for k in range(n):
        for i in range(k + 1, n):
            swap = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            rows[k], rows[i] = jnp.where(swap, rows[i], rows[k]), jnp.where(swap, rows[k], rows[i])
            exchanges.append(swap)
        for i in range(k + 1, n):
            factors.append(rows[i][k] / rows[k][k])
            rows[i] = rows[i] - factors[-1] * rows[k]
    return tuple(rows), tuple(factors), tuple(exchanges)


@once_traced
def solve_factored(factors: Factors, b: Vector) -> Vector:
    """A⁻¹ b from the factors of A."""
    n = b.shape[0]
    if len(factors) == 1:
        (A,) = factors
        return b / A[0] if n == 1 else jnp.linalg.solve(A, b)
    if len(factors) == 2:
        C, det = factors
        return (b @ C) / det
    rows, below, exchanges = factors
    x, factor, exchange = [b[i] for i in range(n)], iter(below), iter(exchanges)
    for k in range(n):
        for i in range(k + 1, n):
            swap = next(exchange)
            x[k], x[i] = jnp.where(swap, x[i], x[k]), jnp.where(swap, x[k], x[i])
        for i in range(k + 1, n):
            x[i] = x[i] - next(factor) * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - rows[k][j] * x[j]
        x[k] = x[k] / rows[k][k]
    return jnp.stack(x)


@once_traced
def cholesky(A: Matrix) -> Matrix:
    """The lower triangular C with C Cᵀ = A."""
    n = A.shape[0]
    if n > UNROLLED:
        return jnp.linalg.cholesky(A)
    zero = jnp.zeros((), A.dtype)
    C = [[zero] * n for _ in range(n)]
    for j in range(n):
        C[j][j] = jnp.sqrt(A[j, j] - sum((C[j][k] ** 2 for k in range(j)), zero))
        for i in range(j + 1, n):
            C[i][j] = (A[i, j] - sum((C[i][k] * C[j][k] for k in range(j)), zero)) / C[j][j]
    return jnp.array(C)


@once_traced
def eigen(A: Matrix) -> tuple[Vector, Matrix]:
    """Eigenvalues and orthonormal eigenvectors (columns) of a symmetric matrix."""
    n = A.shape[0]
    if n > UNROLLED:
        return _eigen_by_rounds(A) if n <= LARGEST_BY_ROUNDS else jnp.linalg.eigh(A)
    unit = jnp.eye(n, dtype=A.dtype)
    a, q = [[[X[i, j] for j in range(n)] for i in range(n)] for X in (A, unit)]
    for _ in range(_SWEEPS if n > 1 else 0):
        for i in range(n):
            for j in range(i + 1, n):
                c, s = _rotation(a[i][i], a[i][j], a[j][j])
                for rows in (a, q):  # columns i and j of both, then rows i and j of a
                    for row in rows:
                        row[i], row[j] = c * row[i] - s * row[j], s * row[i] + c * row[j]
                a[i], a[j] = ([c * x - s * y for x, y in zip(a[i], a[j], strict=True)], [s * x + c * y for x, y in zip(a[i], a[j], strict=True)])
    return jnp.stack([a[i][i] for i in range(n)]), jnp.array(q)


def _tournament(n: int) -> tuple[int, np.ndarray, np.ndarray, Callable]:
    """A round in which n columns meet in pairs: how many there are with columns of zeros, which are left alone; which meet; and X ↦ X with all pairs
    turned by (c, s), after which all but one move on. As many rounds as there are others, and all are back in their places."""
    even = max(4, n + n % 2)
    top = np.arange(0, even, 2)
    bottom, order = top + 1, np.empty(even, int)
    order[top], order[bottom] = np.r_[top[0], bottom[0], top[1:-1]], np.r_[bottom[1:], top[-1]]

    def turned(X, c, s):
        a, b = X[:, top], X[:, bottom]
        return jnp.stack([c * a - s * b, s * a + c * b], -1).reshape(X.shape)[:, order]

    return even, top, bottom, turned


def orthogonal_columns(A: Float[Array, "m n"]) -> tuple[Float[Array, "m n"], Matrix]:
    """A V and V, orthogonal, such that columns of A V are orthogonal to each other: their lengths are the singular values of A."""
    n = A.shape[1]
    even, top, bottom, turned = _tournament(n)
    fill = lambda X: jnp.zeros((X.shape[0], even), X.dtype).at[:, :n].set(X)

    def one_round(_, now):
        a, v, off = now
        first, between, last = (jnp.sum(x * y, 0) for x, y in ((a[:, top],) * 2, (a[:, top], a[:, bottom]), (a[:, bottom],) * 2))
        off = off | jnp.any(jnp.abs(between) > jnp.finfo(A.dtype).eps * jnp.sqrt(first) * jnp.sqrt(last))
        c, s = _rotation(first, between, last)
        return turned(a, c, s), turned(v, c, s), off

    def sweep(now):
        number, (a, v, _) = now
        return number + 1, jax.lax.fori_loop(0, even - 1, one_round, (a, v, jnp.asarray(False)))

    start = 0, (fill(A), fill(jnp.eye(n, dtype=A.dtype)), jnp.asarray(True))
    _, (a, v, _) = jax.lax.while_loop(lambda now: (now[0] < _MANY) & now[1][2], sweep, start)
    return a[:, :n], v[:, :n]


def _eigen_by_rounds(A: Matrix) -> tuple[Vector, Matrix]:
    """The same as a loop: in a round of a tournament all rows meet in pairs, which are turned at once; then all but one move on.

    (LAPACK has no vector code, and many of its calls at once under XLA can wait for each other for ever, jax issue 24219.)
    """
    n = A.shape[0]
    even, top, bottom, turned = _tournament(n)
    fill = lambda X, rows: jnp.zeros((rows, even), X.dtype).at[: X.shape[0], :n].set(X)
    size, off_diagonal = jnp.sum(A * A), 1 - np.eye(even)

    def one_round(_, both):
        a, q = both
        c, s = _rotation(a[top, top], a[top, bottom], a[bottom, bottom])
        return turned(turned(a, c, s).T, c, s).T, turned(q, c, s)

    def sweep(now):
        number, (a, q) = now
        return number + 1, jax.lax.fori_loop(0, even - 1, one_round, (a, q))

    def unfinished(now):
        number, (a, _) = now
        return (number < _MANY) & (jnp.sum((a * off_diagonal.astype(a.dtype)) ** 2) > (jnp.finfo(a.dtype).eps ** 2) * size)

    _, (a, q) = jax.lax.while_loop(unfinished, sweep, (0, (fill(A, even), fill(jnp.eye(n, dtype=A.dtype), n))))
    return jnp.diagonal(a)[:n], q[:, :n]


def _rotation(first, off, last):
    """Cosine and sine of the Jacobi rotation that makes the element between two diagonal ones vanish."""
    small = off == 0
    theta = (last - first) / (2 * jnp.where(small, 1.0, off))
    tangent = jnp.where(theta >= 0, 1.0, -1.0) / (jnp.abs(theta) + jnp.sqrt(1 + theta * theta))
    tangent = jnp.where(small, 0.0, tangent)
    c = 1 / jnp.sqrt(1 + tangent * tangent)
    return c, tangent * c


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def functions(fs: tuple[Callable, ...], A: Matrix) -> list[Matrix]:
    """f(A) of a symmetric matrix, for several smooth functions f of a number."""
    if A.shape[0] == 1:
        return [f(A) for f in fs]
    values, Q = eigen(A)
    return [(Q * f(values)) @ Q.T for f in fs]


@functions.defjvp
def _(fs, primals, tangents):
    (A,), (B,) = primals, tangents
    values, Q = eigen(A)
    a, b = values[:, None], values[None, :]
    close = jnp.abs(a - b) < 1e-5 * (1 + jnp.abs(a) + jnp.abs(b))
    turned = Q.T @ B @ Q

    def change(f):
        of = f(values)
        slope = jnp.vectorize(jax.grad(f))(0.5 * (a + b))
        differences = jnp.where(close, slope, (of[:, None] - of[None, :]) / jnp.where(close, 1.0, a - b))
        return Q @ (differences * turned) @ Q.T

    return [(Q * f(values)) @ Q.T for f in fs], [change(f) for f in fs]
