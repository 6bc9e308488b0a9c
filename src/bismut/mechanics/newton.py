"""Newton's method for the small equations of a step, with an outcome and with derivatives.

    r(x) = 0,    x ← x + λ d,    d = −J(x)⁻¹ r(x)

The step length λ is halved when the next correction would not be shorter than the last (the natural monotonicity test), and the loop ends
when a correction is below √ε/10 of x, or below a floor that the caller knows to be round-off: convergence is quadratic, so after it x is right to
round-off. An equation that is linear is solved by one correction, exactly, without a loop.

J is block diagonal with blocks given by `cells`. All blocks are found at once: one tangent per column of the largest block, however many
blocks there are, so K bodies cost K small solves and never one large one.

Derivatives come from the implicit function theorem, not from the iterations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Vector = Float[Array, " n"]

MAX_ITERATIONS = 50
_UNROLLED = 6  # largest block solved by elimination written out; LAPACK calls on tiny blocks cost more than their arithmetic


class Cells(NamedTuple):
    """Blocks on the diagonal: consecutive runs of (how many, how large)."""

    runs: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        return max(size for _, size in self.runs)

    @property
    def dim(self) -> int:
        return sum(count * size for count, size in self.runs)


def dense(n: int) -> Cells:
    return Cells(((1, n),))


class Root(NamedTuple):
    """A solution and how it was reached."""

    x: Vector
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]


def solve(residual: Callable[[Vector], Vector], guess: Vector, cells: Cells, linear: bool, floor: Any = 0.0) -> Root:
    """The root of the residual near a guess; corrections below the floor do not matter."""

    def run(f, x):
        x, converged, iterations = _correct_once(f, x, cells) if linear else _iterate(f, x, cells, jax.lax.stop_gradient(floor))
        return x, (converged.astype(x.dtype), iterations.astype(x.dtype))  # custom_root can carry only real numbers beside the root

    def tangent(f, y):
        return solve_blocks(blocks(f, cells, y.dtype), y, cells)

    x, (converged, iterations) = jax.lax.custom_root(residual, guess, run, tangent, has_aux=True)
    return Root(x, converged > 0, iterations.astype(int))


def _correct_once(f, x, cells):
    x = x + _correction(f, x, cells)
    return x, jnp.all(jnp.isfinite(x)), jnp.ones((), int)


def _iterate(f, x, cells, floor):
    tolerance = 0.1 * float(np.finfo(x.dtype).eps) ** 0.5

    def unfinished(loop):
        _, _, size, _, iterations, done = loop
        hopeless = (iterations > 0) & jnp.isinf(size)  # not even the guess could be corrected
        return ~done & ~hopeless & (iterations < MAX_ITERATIONS)

    def improve(loop):
        x, d, size, length, iterations, _ = loop
        trial = x + length * d
        after = _correction(f, trial, cells)
        shorter = jnp.max(jnp.abs(after))
        done = shorter <= jnp.maximum(tolerance * jnp.max(jnp.abs(trial + after)), floor)
        good = done | (shorter < size)  # false for a correction that is not a number
        kept = [jnp.where(good, new, old) for new, old in ((trial, x), (after, d), (shorter, size), (1.0, 0.5 * length))]
        return *kept, iterations + 1, done

    one = jnp.ones((), x.dtype)
    start = (x, jnp.zeros_like(x), jnp.inf * one, one, jnp.zeros((), int), jnp.array(False))
    x, d, _, _, iterations, done = jax.lax.while_loop(unfinished, improve, start)
    return x + d, done, iterations


def _correction(f, x, cells):
    r, tangent = jax.linearize(f, x)
    return -solve_blocks(blocks(tangent, cells, x.dtype), r, cells)


def blocks(tangent: Callable[[Vector], Vector], cells: Cells, dtype) -> list[Float[Array, "count size size"]]:
    """The diagonal blocks of a linear map, from `cells.width` evaluations of it."""
    seeds = np.concatenate([np.tile(np.eye(cells.width, size), count) for count, size in cells.runs], axis=1)
    columns = jax.vmap(tangent)(jnp.asarray(seeds, dtype))
    found, start = [], 0
    for count, size in cells.runs:
        part = columns[:size, start : start + count * size].reshape(size, count, size)
        found.append(jnp.transpose(part, (1, 2, 0)))
        start += count * size
    return found


def solve_blocks(matrices: list, y: Vector, cells: Cells) -> Vector:
    """The solution of the block diagonal system."""
    parts, start = [], 0
    for matrix, (count, size) in zip(matrices, cells.runs, strict=True):
        right = y[start : start + count * size].reshape(count, size)
        parts.append(jnp.ravel(jax.vmap(solve_small if size <= _UNROLLED else jnp.linalg.solve)(matrix, right)))
        start += count * size
    return jnp.concatenate(parts)


def solve_small(A: Float[Array, "n n"], b: Vector) -> Vector:
    """A⁻¹ b: up to three unknowns by cofactors, beyond by elimination with partial pivoting, written out.

    (Pivoting is a choice per trajectory, which vector code makes by computing both: for a rigid body cofactors halve the cost of a step.)
    """
    n = b.shape[0]
    if n <= 3:
        return _by_cofactors(A, b)
    # Matrix and right-hand side are kept apart: the result is linear in b, and reverse-mode differentiation has to see that.
    rows, right = [A[i] for i in range(n)], [b[i] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            swap = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            rows[k], rows[i] = jnp.where(swap, rows[i], rows[k]), jnp.where(swap, rows[k], rows[i])
            right[k], right[i] = jnp.where(swap, right[i], right[k]), jnp.where(swap, right[k], right[i])
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i], right[i] = rows[i] - factor * rows[k], right[i] - factor * right[k]
    x = list(right)
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - rows[k][j] * x[j]
        x[k] = x[k] / rows[k][k]
    return jnp.stack(x)


def _by_cofactors(A: Float[Array, "n n"], b: Vector) -> Vector:
    """adj(A) b / det A."""
    if b.shape[0] == 1:
        return b / A[0]
    if b.shape[0] == 2:
        det = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
        return jnp.stack([A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]]) / det
    minor = lambda i, j: A[(i + 1) % 3, (j + 1) % 3] * A[(i + 2) % 3, (j + 2) % 3] - A[(i + 1) % 3, (j + 2) % 3] * A[(i + 2) % 3, (j + 1) % 3]
    cofactors = [[minor(i, j) for j in range(3)] for i in range(3)]
    det = sum(A[0, j] * cofactors[0][j] for j in range(3))
    return jnp.stack([sum(cofactors[i][j] * b[i] for i in range(3)) for j in range(3)]) / det
