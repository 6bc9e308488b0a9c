"""Hamiltonians and their brackets, in the frame of velocities.

    X_f = (∂f/∂p, −∂f/∂q + ad*_{∂f/∂p} p),       {f, g} = df(X_g)

A function f(q, p) moves a state along X_f: time, a noise, or a symmetry, whose f is its momentum map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.mechanics import newton
from bismut.spaces import Point, Space, Velocity, add, scale

if TYPE_CHECKING:
    from bismut.mechanics.system import System

Function = Callable[[Point, Velocity], Float[Array, ""]]


def field(space: Space, f: Function, q: Point, p: Velocity) -> tuple[Velocity, Velocity]:
    """X_f at a state: the velocity, and the rate of the momentum."""
    zero = jax.tree.map(jnp.zeros_like, p)
    slope, v = jax.grad(lambda e, p: f(space.nudge(q, e), p), (0, 1))(zero, p)
    return v, add(scale(-1.0, slope), space.turning(q, v, p))


def bracket(space: Space, f: Function, g: Function, q: Point, p: Velocity) -> Float[Array, ""]:
    """{f, g} at a state."""
    zero = jax.tree.map(jnp.zeros_like, p)
    return jax.jvp(lambda e, p: f(space.nudge(q, e), p), (zero, p), field(space, g, q, p))[1]


def of_velocity(system: System, q: Point, v: Velocity, t) -> Velocity:
    """p with ∂H/∂p (q, p) = v; NaN where there is none, as for an H that is linear in p."""
    space, target = system.space, system.space.flatten(v)
    residual = lambda x: space.flatten(system.velocity(q, space.unflatten(x), t)) - target
    root = newton.solve(residual, jnp.zeros_like(target), newton.dense(target.shape[0]), linear=False, floor=1e-30)
    return space.unflatten(jnp.where(root.converged, root.x, jnp.nan))
