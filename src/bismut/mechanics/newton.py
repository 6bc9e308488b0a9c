"""Roots of the small equations of a step, with an outcome and with derivatives.

    r(x) = 0,    x ← x + λ d,    d = −J(x)⁻¹ r(x)            Newton's method (`solve`)
    r(x) = 0,    x ← x − r(x)                                where r is the identity but for a contraction (`fixed_point`)
    r(x; a) = 0    ⟹    (∂r/∂x) ẋ = −(∂r/∂a) ȧ               derivatives, by the implicit function theorem: iterations are not differentiated

The step length λ is halved when the next correction would not be shorter than the last (the natural monotonicity test), and the loop ends
when a correction is below √ε/10 of x, or below a floor that the caller knows to be round-off: convergence is quadratic, so after it x is right to
round-off. An equation that is linear is solved by one correction, exactly, without a loop; any other begins with a few chord corrections, which share
the Jacobian of the guess, and most steps of a mechanical system end there.

A `JacobianLayout` describes the structure of J and the norm of x. `Cells` is a block diagonal J: all blocks are evaluated at once, one tangent per
column of the largest block, however many blocks there are, so K bodies cost K small solves, not a large one. `kkt.KKT` is that with constraints.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bismut.errors import BismutError
from bismut.mechanics import small_linalg
from bismut.mechanics.function import lacks_forward_derivative
from bismut.programs import custom_gradients, separated

Vector = Float[Array, " n"]
Linear = Callable[[Vector], Vector]
Residual = Callable[[Vector], Vector]

MAX_ITERATIONS = 50
_CHORDS = 3  # residuals with the first Jacobian before another one is evaluated; 2 to 4 measured alike, and 1.5 times faster than none
_SHRINKING = 0.1  # rate up to which such corrections are trusted
_MAX_FIXED_POINT = 100  # iterations: at a rate of ⅔, beyond which a step is too long for its accuracy, so many reach round-off


@runtime_checkable
class JacobianLayout(Protocol):
    """What is known of a Jacobian before any number is."""

    def factor(self, tangent: Linear, dtype) -> Linear:
        """y ↦ J⁻¹ y, from x ↦ J x; what all right-hand sides share is done once."""
        ...

    def size(self, x: Vector) -> Float[Array, ""]:
        """The norm of an unknown or a correction."""
        ...

    @property
    def long(self) -> bool:
        """Whether corrections are better a loop than written out: many operations, which take long to compile."""
        ...


class Cells(NamedTuple):
    """Blocks on the diagonal: consecutive runs of (count, size)."""

    runs: tuple[tuple[int, int], ...]

    def factor(self, tangent: Linear, dtype) -> Linear:
        return factor_blocks(diagonal_blocks(tangent, self, dtype), self)

    def size(self, x: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(x))

    @property
    def long(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return max(size for _, size in self.runs)

    @property
    def dim(self) -> int:
        return sum(count * size for count, size in self.runs)

    def split(self, y: Vector) -> list[Float[Array, "count size"]]:
        """The components of each run, one row per block."""
        ends = np.cumsum([count * size for count, size in self.runs]).tolist()
        return [y[end - count * size : end].reshape(count, size) for end, (count, size) in zip(ends, self.runs, strict=True)]


def dense(n: int) -> Cells:
    return Cells(((1, n),))


class Root(NamedTuple):
    """A solution and how it was reached."""

    x: Vector
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]


def solve(residual: Residual, guess: Vector, layout: JacobianLayout, linear: bool, floor: Any = 0.0) -> Root:
    """The root near a guess by Newton's method; corrections below the floor do not matter."""

    def run(f, x, floor):
        return _correct_once(f, x, layout) if linear else _iterate(f, x, layout, floor)

    return _implicit_root(residual, guess, run, lambda f, y: layout.factor(f, y.dtype)(y), floor)


def fixed_point(residual: Residual, guess: Vector, floor: Any) -> Root:
    """The root of r(x) = x − contraction, until a correction is below the floor or stops shrinking at round-off."""

    def run(f, x, floor):
        def unfinished(loop):
            _, size, last, count = loop
            # A correction near round-off that does not shrink any more is round-off itself.
            settled = (size <= floor) | ((size <= 64 * floor) & (size >= last))
            return ~settled & jnp.isfinite(size) & (count < _MAX_FIXED_POINT)

        def improve(loop):
            x, size, _, count = loop
            r = f(x)
            return x - r, jnp.max(jnp.abs(r)), size, count + 1

        infinite = jnp.full((), jnp.finfo(x.dtype).max, x.dtype)
        x, size, _, count = jax.lax.while_loop(unfinished, improve, (x, infinite, infinite, jnp.zeros((), int)))
        return x, size <= 64 * floor, count

    return _implicit_root(residual, guess, run, _neumann_series, floor)


def _neumann_series(linear: Linear, b: Vector) -> Vector:
    """linear⁻¹ b for the derivative of such an r: as many terms as the root may have had iterations."""

    def unfinished(loop):
        x, r, count = loop
        return (jnp.max(jnp.abs(r)) > jnp.finfo(b.dtype).eps * jnp.max(jnp.abs(x))) & (count < _MAX_FIXED_POINT)

    def add_term(loop):
        x, r, count = loop
        return x + r, b - linear(x + r), count + 1

    return jax.lax.while_loop(unfinished, add_term, (jnp.zeros_like(b), b, jnp.zeros((), int)))[0]


def _implicit_root(residual: Residual, guess: Vector, run: Callable, solve_linear: Callable, floor: Any) -> Root:
    """run(residual, guess, floor) with derivatives from the implicit function theorem; solve_linear(linear, b) is the x with linear(x) = b.

    It is `jax.lax.custom_root` in public terms: that traces the derivative whether or not it is asked for, and from jax 0.11 on it is an operation
    that has to be lowered.
    """
    pure, values = separated(residual, guess)
    pure = jax.jit(pure, inline=True)  # evaluated eight times, traced once

    @jax.custom_jvp
    def solution(values, guess, floor):
        x, converged, iterations = run(lambda x: pure(values, x), guess, floor)
        return x, (converged.astype(x.dtype), iterations.astype(x.dtype))  # what has derivatives is real numbers

    @solution.defjvp
    def _(primals, tangents):
        values, *_ = primals
        x, outcome = solution(*primals)
        try:
            _, rate = jax.jvp(lambda values: pure(values, x), (values,), (tangents[0],))
            _, linear = jax.linearize(lambda x: pure(values, x), x)
            change = jax.lax.custom_linear_solve(linear, -rate, solve_linear, transpose_solve=solve_linear)
        except (TypeError, NotImplementedError) as problem:
            if not lacks_forward_derivative(problem):
                raise
            names = ", ".join(custom_gradients(pure, values, x)) or "A function of the system"
            raise BismutError(
                f"{names} has a jax.custom_vjp, and so no forward derivative, which the derivative of an implicit step needs. "
                "Give it its derivative with jax.custom_jvp instead, from which JAX has both."
            ) from None
        return (x, outcome), (change, jax.tree.map(jnp.zeros_like, outcome))

    x, (converged, iterations) = solution(values, guess, floor)
    return Root(x, converged > 0, iterations.astype(int))


def _correct_once(f, x, layout):
    x = x + _correction(f, x, layout)
    return x, jnp.all(jnp.isfinite(x)), jnp.ones((), int)


def _iterate(f, x, layout, floor):
    tolerance = 0.1 * float(np.finfo(x.dtype).eps) ** 0.5

    def unfinished(loop):
        _, _, size, _, iterations, done = loop
        hopeless = (iterations > 0) & jnp.isinf(size)  # not even the guess could be corrected
        return ~done & ~hopeless & (iterations < MAX_ITERATIONS)

    def improve(loop):
        x, d, size, length, iterations, _ = loop
        trial = x + length * d
        after = _correction(f, trial, layout)
        shorter = layout.size(after)
        # A singular Jacobian gives an infinite correction, which is not small beside an infinite x.
        done = (shorter <= jnp.maximum(tolerance * layout.size(trial + after), floor)) & jnp.isfinite(shorter)
        good = done | (shorter < size)  # false for a correction that is NaN
        accepted = [jnp.where(good, new, old) for new, old in ((trial, x), (after, d), (shorter, size), (1.0, 0.5 * length))]
        return *accepted, iterations + 1, done

    one = jnp.ones((), x.dtype)
    there, good, done = _chords(f, x, layout, floor)
    x = jnp.where(good, there, x)
    # The loop measures corrections by its own first one, at whichever point it begins.
    start = (x, jnp.zeros_like(x), jnp.inf * one, one, jnp.zeros((), int), good & done)
    x, d, _, _, iterations, done = jax.lax.while_loop(unfinished, improve, start)
    return x + d, done, iterations + jnp.where(good, _CHORDS + 1, 0)


def _chords(f, x, layout, floor):
    """A few corrections with the Jacobian of the guess, which costs more than their residuals: (x, whether it is of use, whether it is the root).

    Corrections shrink by a rate that is small where the guess is good, and rate · correction is the error that remains: most steps are done here.
    """
    r, inverse = _factored_jacobian(f, x, layout)
    if layout.long:
        x, d, before, size = _chord_loop(f, x, inverse, layout)
    else:
        d = -inverse(r)
        sizes = [layout.size(d)]
        for _ in range(_CHORDS):
            x = x + d
            d = -inverse(f(x))
            sizes.append(layout.size(d))
        before, size = sizes[-2:]
    rate = size / jnp.maximum(before, jnp.finfo(x.dtype).tiny)
    x = x + d
    good = jnp.all(jnp.isfinite(x)) & ((rate < _SHRINKING) | (size <= floor))
    # Newton's last correction is squared; here what is left has to be below round-off by itself.
    negligible = jnp.maximum(0.25 * jnp.finfo(x.dtype).eps * layout.size(x), 0.01 * floor)
    return x, good, jnp.minimum(rate, 1.0) * size <= negligible


def _chord_loop(f, x, inverse, layout):
    """The same corrections as a loop: one residual and one solve to compile instead of four. (Point, correction, the sizes of the last two.)"""

    def improve(loop):
        x, d, _, size, count = loop
        x = x + d
        d = -inverse(f(x))
        return x, d, size, layout.size(d), count + 1

    zero = jnp.zeros((), x.dtype)
    return jax.lax.while_loop(lambda loop: loop[-1] <= _CHORDS, improve, (x, jnp.zeros_like(x), zero, zero, jnp.zeros((), int)))[:4]


def _correction(f, x, layout):
    r, inverse = _factored_jacobian(f, x, layout)
    return -inverse(r)


def _factored_jacobian(f: Residual, x: Vector, layout: JacobianLayout) -> tuple[Vector, Linear]:
    """r(x) and y ↦ J⁻¹ y. By reverse mode, row by row, where a function has a jax.custom_vjp, and so no forward derivative."""
    r, tangent = jax.linearize(f, x)
    try:
        return r, layout.factor(tangent, x.dtype)  # JAX refuses when the tangent is evaluated
    except (TypeError, NotImplementedError) as problem:
        if not lacks_forward_derivative(problem):
            raise
    r, pullback = jax.vjp(f, x)
    J = jax.vmap(lambda row: pullback(row)[0])(jnp.eye(r.shape[0], dtype=x.dtype))
    return r, layout.factor(lambda y: J @ y, x.dtype)


def diagonal_blocks(tangent: Linear, cells: Cells, dtype) -> list[Float[Array, "count size size"]]:
    """The diagonal blocks of a linear map, from `cells.width` evaluations of it."""
    seeds = np.concatenate([np.tile(np.eye(cells.width, size), count) for count, size in cells.runs], axis=1)
    columns = jax.vmap(tangent)(jnp.asarray(seeds, dtype))
    matrices, start = [], 0
    for count, size in cells.runs:
        part = columns[:size, start : start + count * size].reshape(size, count, size)
        matrices.append(jnp.transpose(part, (1, 2, 0)))
        start += count * size
    return matrices


def factor_blocks(matrices: list, cells: Cells) -> Linear:
    """y ↦ the solution of the block diagonal system."""
    factors = [jax.vmap(small_linalg.factored)(matrix) for matrix in matrices]

    def solve(y: Vector) -> Vector:
        runs = zip(factors, cells.split(y), strict=True)
        return jnp.concatenate([jnp.ravel(jax.vmap(small_linalg.solve_factored)(one, right)) for one, right in runs])

    return solve
