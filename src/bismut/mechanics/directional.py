"""The derivative of a function along a direction.

df·e = ∂f(x + s e)/∂s          by forward mode: one pass, and no matrix
     = (⟨df_i, e⟩)_i           row by row, where a function of the user's has a jax.custom_vjp: it has gradients alone
"""

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def along(function: Callable, at: tuple, direction: tuple, forward: bool) -> Float[Array, " m"]:
    """df·e of a function with one array as its value, at a tuple of arguments."""
    if forward:
        return jax.jvp(function, at, direction)[1]
    values, pullback = jax.vjp(function, *at)
    rows = jax.vmap(pullback)(jnp.eye(values.size, dtype=values.dtype))
    products = jax.tree.map(lambda row, e: row.reshape(values.size, -1) @ jnp.ravel(e), rows, direction)
    return reduce(jnp.add, jax.tree.leaves(products))
