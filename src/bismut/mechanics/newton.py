"""Newton's method for the small equations of a step, with an outcome and with derivatives.

    r(x) = 0,    x ← x + λ d,    d = −J(x)⁻¹ r(x)

The step length λ is halved when the next correction would not be shorter than the last (the natural monotonicity test), and the loop ends
when a correction is below √ε/10 of x, or below a floor that the caller knows to be round-off: convergence is quadratic, so after it x is right to
round-off. An equation that is linear is solved by one correction, exactly, without a loop; any other begins with a few corrections that share the
Jacobian of the guess, and most steps of a mechanical system end there.

What J looks like is said by a layout, which also measures x. `Cells` is a block diagonal J: all blocks are found at once, one tangent per column of
the largest block, however many blocks there are, so K bodies cost K small solves and never one large one. `saddle` is the layout with constraints.

Derivatives come from the implicit function theorem, not from the iterations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bismut.mechanics import small
from bismut.mechanics.implicit import root

Vector = Float[Array, " n"]
Linear = Callable[[Vector], Vector]

MAX_ITERATIONS = 50
_CHORDS = 3  # residuals with the first Jacobian before another one is made; 2 to 4 measured alike, and 1.5 times faster than none
_SHRINKING = 0.1  # rate up to which such corrections are trusted


@runtime_checkable
class Layout(Protocol):
    """What is known of a Jacobian before any number is."""

    def factor(self, tangent: Linear, dtype) -> Linear:
        """y ↦ J⁻¹ y, from x ↦ J x; what all right-hand sides share is done once."""
        ...

    def size(self, x: Vector) -> Float[Array, ""]:
        """How large an unknown or a correction is."""
        ...


class Cells(NamedTuple):
    """Blocks on the diagonal: consecutive runs of (how many, how large)."""

    runs: tuple[tuple[int, int], ...]

    def factor(self, tangent: Linear, dtype) -> Linear:
        return factor_blocks(blocks(tangent, self, dtype), self)

    def size(self, x: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(x))

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


def solve(residual: Callable[[Vector], Vector], guess: Vector, layout: Layout, linear: bool, floor: Any = 0.0) -> Root:
    """The root of the residual near a guess; corrections below the floor do not matter."""

    def run(f, x, floor):
        x, converged, iterations = _correct_once(f, x, layout) if linear else _iterate(f, x, layout, floor)
        return x, (converged.astype(x.dtype), iterations.astype(x.dtype))  # what has derivatives is real numbers

    tangent = lambda f, y: layout.factor(f, y.dtype)(y)
    x, (converged, iterations) = root(residual, guess, run, tangent, floor)
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
        kept = [jnp.where(good, new, old) for new, old in ((trial, x), (after, d), (shorter, size), (1.0, 0.5 * length))]
        return *kept, iterations + 1, done

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
    r, tangent = jax.linearize(f, x)
    inverse = layout.factor(tangent, x.dtype)
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
    small = jnp.maximum(0.25 * jnp.finfo(x.dtype).eps * layout.size(x), 0.01 * floor)
    return x, good, jnp.minimum(rate, 1.0) * size <= small


def _correction(f, x, layout):
    r, tangent = jax.linearize(f, x)
    return -layout.factor(tangent, x.dtype)(r)


def blocks(tangent: Linear, cells: Cells, dtype) -> list[Float[Array, "count size size"]]:
    """The diagonal blocks of a linear map, from `cells.width` evaluations of it."""
    seeds = np.concatenate([np.tile(np.eye(cells.width, size), count) for count, size in cells.runs], axis=1)
    columns = jax.vmap(tangent)(jnp.asarray(seeds, dtype))
    found, start = [], 0
    for count, size in cells.runs:
        part = columns[:size, start : start + count * size].reshape(size, count, size)
        found.append(jnp.transpose(part, (1, 2, 0)))
        start += count * size
    return found


def factor_blocks(matrices: list, cells: Cells) -> Linear:
    """y ↦ the solution of the block diagonal system."""
    factors = [jax.vmap(small.factored)(matrix) for matrix in matrices]
    return lambda y: _solve_runs(factors, y, cells)


def _solve_runs(factors: list, y: Vector, cells: Cells) -> Vector:
    parts, start = [], 0
    for what, (count, size) in zip(factors, cells.runs, strict=True):
        right = y[start : start + count * size].reshape(count, size)
        parts.append(jnp.ravel(jax.vmap(small.solve_factored)(what, right)))
        start += count * size
    return jnp.concatenate(parts)
