"""The root of an equation, with derivatives from the implicit function theorem.

    r(x; a) = 0    ⟹    (∂r/∂x) ẋ = −(∂r/∂a) ȧ

How the root was found is not differentiated. It is `jax.lax.custom_root` in public terms: that traces the derivative whether or not somebody asks for
it, and from jax 0.11 on it is an operation that has to be lowered.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.programs import separated

Vector = Float[Array, " n"]
Residual = Callable[[Vector], Vector]


def root(residual: Residual, guess: Vector, solve: Callable, solve_linear: Callable, *settings: Any) -> Any:
    """What solve(residual, guess, *settings) returns: the root, and numbers beside it, which have no derivatives, as the settings have none.

    solve_linear(linear, b) is the x with linear(x) = b.
    """
    pure, values = separated(residual, guess)
    pure = jax.jit(pure, inline=True)  # looked at eight times, traced once

    @jax.custom_jvp
    def solution(values, guess, *settings):
        return solve(lambda x: pure(values, x), guess, *settings)

    @solution.defjvp
    def _(primals, tangents):
        values, *_ = primals
        x, beside = solution(*primals)
        _, rate = jax.jvp(lambda given: pure(given, x), (values,), (tangents[0],))
        _, linear = jax.linearize(lambda x: pure(values, x), x)
        change = jax.lax.custom_linear_solve(linear, -rate, solve_linear, transpose_solve=solve_linear)
        return (x, beside), (change, jax.tree.map(jnp.zeros_like, beside))

    return solution(values, guess, *settings)
