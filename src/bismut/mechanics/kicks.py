"""What noise does to a momentum at one place.

    Σ dγ_i(q) ΔW_i + Σ F_j(q, v) ΔW_j        stochastic potentials first, random forces after them

Random forces are covectors with one more axis in front, one entry per Wiener process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.spaces import Point, Velocity, add

if TYPE_CHECKING:
    from bismut.mechanics.system import System


def combined(forces: Velocity, weights: Float[Array, " m"]) -> Velocity:
    """Σ_j F_j w_j."""
    return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), forces)


def felt(forces: Velocity, displacement: Velocity) -> Float[Array, " m"]:
    """⟨F_j, x⟩ for each j."""
    leaves = zip(jax.tree.leaves(forces), jax.tree.leaves(displacement), strict=True)
    terms = [jnp.sum((F * x).reshape(F.shape[0], -1), 1) for F, x in leaves]
    return sum(terms[1:], terms[0])


def kick(system: System, q: Point, v: Velocity, dW: Float[Array, " m"], t) -> Velocity:
    """The change of the momentum under all noises at a place."""
    space, gammas = system.space, system.potentials
    made = space.zero(system.dtype)
    if gammas:
        made = jax.grad(lambda e: system.noise(space.nudge(q, e), t)[:gammas] @ dW[:gammas])(made)
    if system.random_forces:
        made = add(made, combined(system.random_force(q, v, t), dW[gammas : gammas + system.random_forces]))
    return made


def rows(system: System, q: Point, t) -> Float[Array, "m n"]:
    """The covectors of all noises at a place and at rest, one row each."""
    space = system.space
    zero = jnp.zeros(space.dim, system.dtype)
    slopes = jax.jacrev(lambda e: system.noise(space.nudge(q, space.unflatten(e)), t)[: system.potentials])(zero)
    if not system.random_forces:
        return slopes
    forces = jax.vmap(space.flatten)(system.random_force(q, space.zero(system.dtype), t))
    return jnp.concatenate([slopes, forces])
