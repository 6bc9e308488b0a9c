"""Reduced phase space: the dual of a Lie algebra with advected quantities.

    a ⊕ ξ = τ(ξ)⁻¹·a,        ξ ∈ 𝔤,   μ ∈ 𝔤*,        da/dt = −ξ·a,   dμ/dt = ad*_ξ μ + ...

The points of this space are the advected quantities a (for a heavy top the vertical in the body frame), and its velocities are those of the
group: a velocity moves a because the group acts on it. Momenta μ turn with the frame as on the group itself. So a function f(a, μ) moves a state
along the very field that moves (g, μ) on T*G, pushed down by a = g⁻¹·a₀, and every scheme written with `move`, `nudge` and `ends` is its own
reduction. Two points do not determine a velocity, since rotations about a leave it fixed. Where nothing is advected there is one point, ().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError
from bismut.spaces.space import Group, Point, Space, Velocity


@dataclass(frozen=True)
class Dual(Space):
    """The dual of the algebra of a group, with advected quantities of a shape, () in place of them if there are none.

    group  with its retraction
    shape  of the advected quantities, None for none
    act    (g, a) ↦ g⁻¹·a; without it the rows of a are vectors, and R in g turns them to a R
    """

    group: Group
    shape: tuple[int, ...] | None = None
    act: Callable[[Point, Any], Any] | None = None
    points_are = "advected quantities"

    def __post_init__(self):
        if not isinstance(self.group, Group):
            raise DomainError(f"A dual needs a group such as SO3(), got {type(self.group).__name__}.")
        if self.shape is not None and self.act is None:
            turn = _rotation(jax.eval_shape(self.group.origin))
            if turn is None or len(self.shape) not in (1, 2) or self.shape[-1] != turn.shape[-1]:
                wanted = "no vectors that its elements turn" if turn is None else f"vectors, arrays (…, {turn.shape[-1]})"
                raise ShapeError(f"{self.group} has {wanted}, got advected quantities of shape {self.shape}. Give act=(g, a) ↦ g⁻¹·a as well.")

    def __repr__(self):
        return f"{self.group}*" if self.shape is None else f"{self.group}* with advected {self.shape}"

    def using(self, retraction):
        return replace(self, group=self.group.using(retraction))

    def origin(self, dtype: Any = float):
        return () if self.shape is None else jnp.zeros(self.shape, dtype)

    def zero(self, dtype: Any = float):
        return self.group.zero(dtype)

    def random(self, key):
        return () if self.shape is None else jax.random.normal(key, self.shape)

    def move(self, q, velocity, time=1.0):
        if self.shape is None:
            return ()
        return self._advected(self.group.tau(jax.tree.map(lambda leaf: time * leaf, velocity)), q)

    def nudge(self, q, e):
        if self.shape is None:
            return ()
        near = self.group.tau(e) if self.act is not None else self.group.nudge(self.group.origin(q.dtype), e)
        return self._advected(near, q)

    def _advected(self, g: Point, a: Any) -> Any:
        return a @ _rotation(g) if self.act is None else self.act(g, a)

    def subtract(self, q1, q0):
        raise DomainError(f"No velocity leads from one point of {self} to another by itself, so a displacement, for example, is not defined here.")

    def gap(self, q1, q0):
        return jnp.zeros(0) if self.shape is None else jnp.ravel(q1 - q0)

    def carry(self, x: Velocity, p: Velocity) -> Velocity:
        """Ad*_{τ(x)} p: a momentum moved within its coadjoint orbit, whatever x is."""
        return self.group.coadjoint(x, p)

    def ends(self, q0, q1, x, a):
        return self.group.ends(q0, q1, x, a)

    def coordinate_rate(self, q0, x, v):
        return self.group.coordinate_rate(q0, x, v)

    def bracket_form(self, q, p):
        return self.group.bracket_form(q, p)

    def turning(self, q, v, p):
        return self.group.turning(q, v, p)

    def right_rotation(self, q, axis):
        like = self.group.zero(float)
        return self.group.right_rotation(self.group.origin(jax.tree.leaves(like)[0].dtype), axis)

    def check(self, q, name="q"):
        if self.shape is not None:
            return super().check(q, name)
        if not (isinstance(q, tuple) and q == ()):
            raise ShapeError(f"Nothing is advected on {self}, so {name} is (): a start is scheme.start(momentum=mu).")
        return ()


def poisson_tensor(space: Space, q: Point, p: Velocity) -> Float[Array, "z z"]:
    """B with {f, g} = ∂f B ∂g in the numbers of (q, p), those of q first: row i, column j is {z_i, z_j}."""
    flat, back = ravel_pytree((q, p))

    def field(slope):
        in_q, v = back(slope)
        zero = jax.tree.map(jnp.zeros_like, p)
        moved = jax.jvp(lambda e: space.nudge(q, e), (zero,), (v,))[1]
        rate = jax.tree.map(jnp.subtract, space.turning(q, v, p), space.covector(q, in_q) if jax.tree.leaves(q) else zero)
        return ravel_pytree((moved, rate))[0]

    return jax.vmap(field)(jnp.eye(flat.size, dtype=flat.dtype)).T


def _rotation(g: Point) -> Any:
    """The rotation matrix in a point of a group, if there is one."""
    return next((leaf for leaf in jax.tree.leaves(g) if len(leaf.shape) == 2 and leaf.shape[0] == leaf.shape[1] and np.prod(leaf.shape) > 1), None)
