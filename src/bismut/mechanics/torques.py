"""Forces and torques given in the axes of space.

    ⟨Ad*_g μ, ξ⟩ = ⟨μ, Ad_g ξ⟩        (SO(3): Rᵀμ)

A covector of the library acts on velocities ξ = g⁻¹ġ, in the axes of the body. One that acts on the velocities ġg⁻¹ = Ad_g ξ in space is brought
there by Ad*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bismut.errors import DomainError
from bismut.mechanics.function import UserFunction, user_function
from bismut.spaces import Group, Space


def in_space(space: Space, function: Callable) -> Callable:
    """A force, or random forces, in the axes of space as the `force` or `random_force` of a system on a group.

    space     the group, say SO3()
    function  F(q, v), a covector in space, or several with an extra leading axis; may name t and parameters
    """
    if not isinstance(space, Group):
        raise DomainError(f"Only a group has axes of body and space, and {type(space).__name__} is not one.")
    inner = user_function("force", function, ("q", "v"))
    assert inner is not None
    return _InSpace(space, inner)


@dataclass(frozen=True)
class _InSpace:
    space: Group
    inner: UserFunction

    def __call__(self, q, v, t, parameters):
        given = self.inner(q, v, t=t, parameters=parameters)
        turn = lambda covector: self.space.Ad_star(q, covector)
        several = jnp.ndim(jax.tree.leaves(given)[0]) > jnp.ndim(jax.tree.leaves(v)[0])
        return jax.vmap(turn)(given) if several else turn(given)
