"""Covectors: the kicks that noise gives a momentum at one place, and forces given in the axes of space.

    Σ dγ_i(q) ΔW_i + Σ F_j(q, v) ΔW_j        stochastic potentials first, random forces after them
    ⟨Ad*_g μ, ξ⟩ = ⟨μ, Ad_g ξ⟩               (SO(3): Rᵀμ)

Random forces are covectors with one more axis in front, one entry per Wiener process. A covector of the library acts on velocities ξ = g⁻¹ġ, in the
axes of the body. One that acts on the velocities ġg⁻¹ = Ad_g ξ in space is brought there by Ad*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import DomainError
from bismut.mechanics.function import Adapter, UserFunction, required_function
from bismut.spaces import Group, Point, Space, Velocity, add

if TYPE_CHECKING:
    from bismut.mechanics.system import System


def combined(forces: Velocity, weights: Float[Array, " m"]) -> Velocity:
    """Σ_j F_j w_j."""
    return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), forces)


def pair_each(forces: Velocity, displacement: Velocity) -> Float[Array, " m"]:
    """⟨F_j, x⟩ for each j."""
    leaves = zip(jax.tree.leaves(forces), jax.tree.leaves(displacement), strict=True)
    terms = [jnp.sum((F * x).reshape(F.shape[0], -1), 1) for F, x in leaves]
    return sum(terms[1:], terms[0])


def noise_kick(system: System, q: Point, v: Velocity, dW: Float[Array, " m"], t) -> Velocity:
    """The change of the momentum under all noises at a place."""
    space, gammas = system.space, system.potentials
    change = space.zero(system.dtype)
    if gammas:
        change = jax.grad(lambda e: system.noise(space.nudge(q, e), t)[:gammas] @ dW[:gammas])(change)
    if system.random_forces:
        change = add(change, combined(system.random_force(q, v, t), dW[gammas : gammas + system.random_forces]))
    return change


def noise_covectors(system: System, q: Point, t) -> Float[Array, "m n"]:
    """The covectors of all noises at a place and at rest, one row each."""
    space = system.space
    zero = jnp.zeros(space.dim, system.dtype)
    slopes = jax.jacrev(lambda e: system.noise(space.nudge(q, space.unflatten(e)), t)[: system.potentials])(zero)
    if not system.random_forces:
        return slopes
    forces = jax.vmap(space.flatten)(system.random_force(q, space.zero(system.dtype), t))
    return jnp.concatenate([slopes, forces])


def in_space(space: Space, function: Callable) -> Callable:
    """A force, or random forces, in the axes of space as the `force` or `random_force` of a system on a group.

    space     the group, say SO3()
    function  F(q, v), a covector in space, or several with an extra leading axis; may name t and parameters
    """
    if not isinstance(space, Group):
        raise DomainError(f"Only a group has axes of body and space, and {type(space).__name__} is not one.")
    return _InSpace(required_function("force", function, ("q", "v")), space)


@dataclass(frozen=True)
class _InSpace(Adapter):
    inner: UserFunction
    space: Group

    def __call__(self, q, v, t=None, parameters=None):
        force = self.inner(q, v, t=t, parameters=parameters)
        turn = lambda covector: self.space.Ad_star(q, covector)
        several = jnp.ndim(jax.tree.leaves(force)[0]) > jnp.ndim(jax.tree.leaves(v)[0])
        return jax.vmap(turn)(force) if several else turn(force)
