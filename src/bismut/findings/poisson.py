"""Does a step keep the bracket, and what the bracket makes invariant?

    T B₀ Tᵀ = B₁,      B_ij(z) = {z_i, z_j},   z = (a, μ)            a Poisson map; on each orbit it is symplectic
    C(z_k) = C(z_0)                                                  Casimirs, and whatever else a system calls invariant

After reduction by symmetry there is no symplectic form on all of (a, μ), but a bracket, which degenerates along Casimirs. A step that keeps both is
symplectic on every coadjoint orbit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from bismut.findings.finding import Finding, at_most, not_measured
from bismut.flows import flow
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.noise import Path, counter
from bismut.spaces import poisson_tensor

_LARGEST = 100  # numbers of a state up to which the bracket is written out


def poisson_defect(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """max |T B₀ Tᵀ − B₁| of one step, and the size of the numbers it is made of."""
    z, back = ravel_pytree((state.q, state.p))
    step = lambda z: ravel_pytree(_pair(flow(scheme).advance(State(*back(z)), h, dW, t)[0]))[0]
    T = jax.jacfwd(step)(z)
    before, after = (poisson_tensor(scheme.space, *back(at)) for at in (z, step(z)))
    size = jnp.maximum(1.0, jnp.max(jnp.abs(T))) ** 2 * jnp.maximum(1.0, jnp.max(jnp.abs(before)))
    return jnp.max(jnp.abs(T @ before @ T.T - after)), size


def _pair(state: State):
    return state.q, state.p


def bracket_kept(scheme: Scheme, state: State, path: Path, step: float) -> Finding:
    """The defect of a step with three times the usual increment."""
    law, system = "Poisson map", scheme.system
    n = sum(leaf.size for leaf in jax.tree.leaves((state.q, state.p)))
    if n > _LARGEST:
        return not_measured(law, f"the bracket of {n} numbers; up to {_LARGEST} are tried. A smaller algebra of the same kind shows it")
    h = jnp.asarray(step, system.dtype)

    def structure(state: State):
        return poisson_defect(scheme, state, h, 3 * path.increment(counter(0), counter(0), scheme.channels, h, system.dtype))

    defect, size = map(float, evaluate(structure, state))
    limit = 5e4 * float(np.finfo(system.dtype).eps) * size
    return at_most(law, defect, limit, scheme.promised.symplectic and not scheme.forced, "max |T B Tᵀ − B| of one step, B_ij = {z_i, z_j}")


def invariants(scheme: Scheme, states: State) -> list[Finding]:
    """One finding for each invariant that the system names."""
    system, found = scheme.system, []
    eps, steps = float(np.finfo(system.dtype).eps), len(jax.tree.leaves(states.p)[0]) - 1
    # What the bracket keeps, every step on its orbits keeps; anything else is a belief of the user's, measured as well.
    for name in system.invariants:
        values, terms = evaluate(jax.vmap(lambda s, name=name: _with_terms(scheme, name, s)), states)
        size = np.asarray(terms, float).max(0)
        drift = float((np.abs(values - values[0]).max(0) / np.where(size > 0, size, 1.0)).max())
        words = f"largest change in {steps} steps over Σ|z ∂I/∂z|"
        found.append(at_most(f"Casimir {name}" if system.reduced else f"invariant {name!r}", drift, 1e3 * eps, scheme.promised.symplectic, words))
    return found


def _with_terms(scheme: Scheme, name: str, state: State) -> tuple[Array, Array]:
    """An invariant, flat, and the size of the terms it is made of: one that happens to be zero has round-off all the same."""
    z, back = ravel_pytree((state.q, state.p))
    of = lambda z: jnp.ravel(scheme.system.invariant(name, State(*back(z))))
    return of(z), jnp.abs(jax.jacfwd(of)(z)) @ jnp.abs(z)
