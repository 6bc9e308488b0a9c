"""Whether numbers are known: under jit, vmap and grad they are not, and what can only be judged by numbers is left to those who ran it before."""

import jax
from jax.core import Tracer


def traced(*trees) -> bool:
    """Whether any array of the trees is one that JAX traces."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))
