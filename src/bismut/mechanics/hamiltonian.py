"""Hamiltonians and their brackets, in the frame of velocities.

    X_f = (∂f/∂p, −∂f/∂q + ad*_{∂f/∂p} p),       {f, g} = df(X_g)

A function f(q, p) moves a state along X_f: time, a noise, or a symmetry, whose f is its momentum map.

Plain increments give strong order 1 if the noises commute, and ½ if they do not: then Lévy areas are missing.

    X_i = k_i(q, v) ∂/∂p,      [X_i, X_j] = ∂k_j/∂p · k_i − ∂k_i/∂p · k_j        k = dγ_i(q) or F_i(q, v)
    X_i of H_i(q, p),          d{H_i, H_j} = 0                                   a constant bracket moves nothing

What depends on q alone commutes. Anything else is measured, at random points of phase space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.mechanics import newton
from bismut.precision import cast
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Space, Velocity, add, scale
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.mechanics.system import System

Function = Callable[[Point, Velocity], Float[Array, ""]]

_POINTS = 4
_TIME = 0.0  # at which brackets are measured
_SMALL = 1e-9  # of the products that a bracket is the difference of


def hamiltonian_field(space: Space, f: Function, q: Point, p: Velocity) -> tuple[Velocity, Velocity]:
    """X_f at a state: the velocity, and the rate of the momentum."""
    zero = jax.tree.map(jnp.zeros_like, p)
    slope, v = jax.grad(lambda e, p: f(space.nudge(q, e), p), (0, 1))(zero, p)
    return v, add(scale(-1.0, slope), space.turning(q, v, p))


def bracket(space: Space, f: Function, g: Function, q: Point, p: Velocity) -> Float[Array, ""]:
    """{f, g} at a state."""
    zero = jax.tree.map(jnp.zeros_like, p)
    return jax.jvp(lambda e, p: f(space.nudge(q, e), p), (zero, p), hamiltonian_field(space, g, q, p))[1]


def momentum_of_velocity(system: System, q: Point, v: Velocity, t) -> Velocity:
    """p with ∂H/∂p (q, p) = v; NaN where there is none, as for an H that is linear in p."""
    space, target = system.space, system.space.flatten(v)
    residual = lambda x: space.flatten(system.velocity(q, space.unflatten(x), t)) - target
    root = newton.solve(residual, jnp.zeros_like(target), newton.dense(target.shape[0]), linear=False, floor=1e-30)
    return space.unflatten(jnp.where(root.converged, root.x, jnp.nan))


def noises_commute(system: System) -> bool:
    """Whether the noises of a system commute; what depends on traced numbers counts as if it did not."""
    system = system.at(_TIME)
    if system.noise_hamiltonians:
        return system.channels == 1 or (not system.random_forces and _vanishes(_hamiltonian_brackets, system))
    return not system.kick_sees_velocity or _vanishes(_force_brackets, system)


def _vanishes(brackets, system: System) -> bool:
    """Whether brackets, given beside the size of their terms, vanish at random points."""
    space, n = system.space, system.space.dim

    def at(seed):
        key = jax.random.key(seed)
        p = space.unflatten(jax.random.normal(jax.random.fold_in(key, 1), (n,), system.dtype))
        return brackets(system, cast(space.random(key), system.dtype), p)

    measured = evaluate(jax.vmap(at), jnp.arange(_POINTS))
    if traced(measured):
        return False
    differs = lambda value, size: np.isfinite(value).all() and (np.abs(value) > _SMALL * (1e-300 + size)).any()
    return not any(map(differs, *map(np.asarray, measured)))


def _force_brackets(system: System, q, p):
    space, m = system.space, system.channels

    def kicks(x):
        v = system.velocity(q, space.unflatten(x))
        return jax.vmap(lambda row: space.flatten(system.kick(q, v, row)))(jnp.eye(m, dtype=system.dtype))

    x = space.flatten(p)
    slopes, k = jax.jacfwd(kicks)(x), kicks(x)
    products = jnp.einsum("jab,ib->ija", slopes, k)  # ∂k_j/∂p · k_i
    return products - jnp.swapaxes(products, 0, 1), jnp.abs(products) + jnp.abs(jnp.swapaxes(products, 0, 1))


def _hamiltonian_brackets(system: System, q, p):
    """d{H_i, H_j} for every pair, and the size of the products it is made of."""
    space, n, m = system.space, system.space.dim, system.channels
    one = lambda i: lambda q, p: system.noise_hamiltonian(q, p)[i]
    at = lambda f: lambda z: f(space.move(q, space.unflatten(z[:n])), space.unflatten(z[n:]))
    here = jnp.concatenate([jnp.zeros(n, system.dtype), space.flatten(p)])
    slopes = [jnp.max(jnp.abs(jax.grad(at(one(i)))(here))) for i in range(m)]
    bends = [jnp.max(jnp.abs(jax.hessian(at(one(i)))(here))) for i in range(m)]
    pairs = [(i, j) for i in range(m) for j in range(i)]
    brackets = [jax.grad(at(lambda q, p, i=i, j=j: bracket(space, one(i), one(j), q, p)))(here) for i, j in pairs]
    # The frame of a group turns, which adds a product of slopes.
    size = [slopes[i] * bends[j] + bends[i] * slopes[j] + slopes[i] * slopes[j] for i, j in pairs]
    return jnp.stack(brackets), jnp.stack(size)[:, None]
