"""Do the noises commute? Plain increments give strong order 1 if they do, and ½ if they do not: then Lévy areas are missing.

    X_i = k_i(q, v) ∂/∂p,      [X_i, X_j] = ∂k_j/∂p · k_i − ∂k_i/∂p · k_j        k = dγ_i(q) or F_i(q, v)
    X_i of H_i(q, p),          d{H_i, H_j} = 0                                   a constant bracket moves nothing

What depends on q alone commutes. Anything else is measured, at random points of phase space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from bismut.host import evaluate
from bismut.mechanics.hamiltonian import bracket
from bismut.precision import cast
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.mechanics.system import System

_POINTS = 4
_SMALL = 1e-9  # of the products that a bracket is the difference of


def commuting(system: System) -> bool:
    """Whether the noises of a system commute; what depends on traced numbers counts as if it did not."""
    if system.noise_hamiltonians:
        return system.channels == 1 or (not system.random_forces and _vanishes(_hamiltonian_brackets, system))
    if not system.kick_sees_velocity:
        return True
    return _vanishes(_force_brackets, system)


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
    moves = lambda found, size: np.isfinite(found).all() and (np.abs(found) > _SMALL * (1e-300 + size)).any()
    return not any(map(moves, *map(np.asarray, measured)))


def _force_brackets(system: System, q, p):
    space, m = system.space, system.channels

    def kicks(x):
        v = system.velocity(q, space.unflatten(x))
        return jax.vmap(lambda row: space.flatten(system.kick(q, v, row)))(jnp.eye(m, dtype=system.dtype))

    x = space.flatten(p)
    slopes, k = jax.jacfwd(kicks)(x), kicks(x)
    along = jnp.einsum("jab,ib->ija", slopes, k)  # ∂k_j/∂p · k_i
    return along - jnp.swapaxes(along, 0, 1), jnp.abs(along) + jnp.abs(jnp.swapaxes(along, 0, 1))


def _hamiltonian_brackets(system: System, q, p):
    """d{H_i, H_j} for every pair, and the size of the products it is made of."""
    space, n, m = system.space, system.space.dim, system.channels
    one = lambda i: lambda q, p: system.noise_hamiltonian(q, p)[i]
    at = lambda f: lambda z: f(space.move(q, space.unflatten(z[:n])), space.unflatten(z[n:]))
    here = jnp.concatenate([jnp.zeros(n, system.dtype), space.flatten(p)])
    slopes = [jnp.max(jnp.abs(jax.grad(at(one(i)))(here))) for i in range(m)]
    bends = [jnp.max(jnp.abs(jax.hessian(at(one(i)))(here))) for i in range(m)]
    pairs = [(i, j) for i in range(m) for j in range(i)]
    found = [jax.grad(at(lambda q, p, i=i, j=j: bracket(space, one(i), one(j), q, p)))(here) for i, j in pairs]
    # The frame of a group turns, which adds a product of slopes.
    size = [slopes[i] * bends[j] + bends[i] * slopes[j] + slopes[i] * slopes[j] for i, j in pairs]
    return jnp.stack(found), jnp.stack(size)[:, None]
