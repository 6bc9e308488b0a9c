"""One step as every run makes it: blocks of many trajectories, one that is kept whole, averages, studies of order.

    t_k = t0 + h k,        (state, cache)_k ↦ (state, cache)_{k+1},        a step that is not solved makes the state NaN, and NaN it stays

`cache` is what a step hands on to the next one, say the force at q1 (`CachesStep`). Clock, handing on and failure are here and nowhere else.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bismut.flows.flow import flow, init_cache, step_with_cache
from bismut.flows.variational import Solve
from bismut.mechanics import Scheme, State
from bismut.noise import Index


class Carry(NamedTuple):
    """A state on its way, and what its next step will use again."""

    state: State
    cache: Any


def time(t0, h, k: Index) -> Float[Array, ""]:
    """The time before step k, a 64-bit number as a pair of words."""
    dtype = jnp.result_type(h)
    return t0 + h * (k[0].astype(dtype) + jnp.asarray(2.0**32, dtype) * k[1].astype(dtype))


def begin(scheme: Scheme, state: State, t) -> Carry:
    state = state.state
    return Carry(state, init_cache(flow(scheme), state, t))


def step(scheme: Scheme, carry: Carry, h, dW: Float[Array, " m"], t) -> tuple[Carry, Solve]:
    """One step from time t, and how it was solved."""
    state, cache, solve = step_with_cache(flow(scheme), carry.state, carry.cache, h, dW, t)
    return Carry(jax.tree.map(lambda leaf: jnp.where(solve.converged, leaf, jnp.nan), state), cache), solve


def one_step(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t) -> State:
    """A step that knows of no other."""
    return step(scheme, begin(scheme, state, t), h, dW, t)[0].state


def walk(scheme: Scheme, state: State, h, increments: Float[Array, "most m"], steps, t0) -> State:
    """The state after a number of steps that is data, from time t0, each with its row of increments."""

    def one(k, carry):
        return step(scheme, carry, h, increments[k], t0 + h * k.astype(jnp.result_type(h)))[0]

    return jax.lax.fori_loop(0, steps, one, begin(scheme, state, t0)).state


def finite(state: State) -> Bool[Array, ""]:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]).all()
