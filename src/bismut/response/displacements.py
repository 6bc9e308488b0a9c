"""Observers of transport: what moved, since when, and how fast.

    X(t_k) = Σ_j q_j ⊖ q_{j−1}         or, of a flux J,     X(t_k) = Σ_j ½(J_j + J_{j−1}) δt

    MSD_ab(τ) = ⟨ΔX_a ΔX_b⟩,      G_ab(τ) = ⟨J_a(t) ΔX_b⟩ = ∫₀^τ ⟨J_a(t) J_b(t − s)⟩ ds,       ΔX = X(t) − X(t − τ)

Every look is an origin. G is the running integral of Green and Kubo with the displacement itself as the sum, so no time step is lost in quadrature.
Leading axes of a displacement are bodies, over which is averaged; the last one has the components a, b.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import KahanSum
from bismut.ensembles.observable import value_of
from bismut.ensembles.observers.displacement import by_angles
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.mechanics import Scheme, State
from bismut.spaces import Power, Space


def bodies_and_components(space: Space, v: Any) -> jax.Array:
    """A displacement as (bodies, components): all of it for one body, side by side the arrays of each of several."""
    count = space.count if isinstance(space, Power) else 1
    return jnp.concatenate([jnp.reshape(leaf, (count, -1)) for leaf in jax.tree.leaves(v)], 1)


class Moving(Watcher):
    """What observers of transport share: the displacement since the last look, and the flux now."""

    part: Callable | None = eqx.field(static=True)
    flux: Callable | None = eqx.field(static=True)

    def picked(self, scheme: Scheme, v: Any) -> jax.Array:
        """The chosen part of a displacement or a velocity, (bodies, components)."""
        chosen = bodies_and_components(scheme.space, v) if self.part is None else jnp.asarray(self.part(v))
        return jnp.reshape(chosen, (-1, chosen.shape[-1] if chosen.ndim else 1))

    def current(self, scheme: Scheme, state: State, t) -> jax.Array:
        """J, (bodies, components)."""
        if self.flux is None:
            return self.picked(scheme, scheme.system.velocity(state.q, state.p, t))
        flux = value_of(self.flux, scheme, state, t)
        return jnp.reshape(flux, (-1, flux.shape[-1] if flux.ndim else 1))

    def gained(self, scheme: Scheme, q: Any, old: jax.Array, state: State, new: jax.Array, time) -> jax.Array:
        """What X gains between two looks."""
        if self.flux is None:
            return self.picked(scheme, by_angles(scheme.space).subtract(state.q, q))
        return 0.5 * time * (old + new)


class Spreading(NamedTuple):
    """Looks so far, time, point and flux of the last one, X, recent values of X (newest first), and sums for each lag."""

    count: Any
    t: Any
    q: Any
    flux: Any
    position: Any
    recent: Any
    squares: KahanSum
    products: KahanSum


class Spread(Moving):
    """(MSD(2τ) − MSD(τ))/2τ and G(τ), each (lags, d, d), of every trajectory; reported with errors over trajectories, and so their mean diagonal."""

    lags: int = eqx.field(static=True)
    seen: bool = eqx.field(static=True, default=True)  # whether there is a flux to multiply with

    def begin(self, scheme, state, t):
        flux = self._flux(scheme, state, t)
        size = jax.eval_shape(lambda: self.picked(scheme, scheme.space.zero(scheme.system.dtype)) if self.flux is None else flux).shape
        sums = KahanSum.zero(jnp.zeros((self.lags, size[1], size[1]), scheme.system.dtype))
        blank = jnp.zeros(size, scheme.system.dtype)
        recent = jnp.zeros((self.lags, *size), scheme.system.dtype)
        return Spreading(jnp.zeros((), jnp.int32), jnp.asarray(t, blank.dtype), state.q, flux, blank, recent, sums, sums)

    def _flux(self, scheme, state, t):
        if self.seen:
            return self.current(scheme, state, t)
        return jnp.zeros(jax.eval_shape(lambda: self.picked(scheme, scheme.space.zero(scheme.system.dtype))).shape, scheme.system.dtype)

    def look(self, memory, scheme, state, t):
        flux = self._flux(scheme, state, t)
        position = memory.position + self.gained(scheme, memory.q, memory.flux, state, flux, t - memory.t)
        recent = jnp.concatenate([position[None], memory.recent[:-1]])
        known = (jnp.arange(self.lags, dtype=jnp.int32) <= memory.count)[:, None, None]
        moved = jnp.where(known, position - recent, 0.0)
        mean = lambda a, b: jnp.sum(a[..., :, None] * b[..., None, :], 1) / position.shape[0]
        squares, products = memory.squares.add(mean(moved, moved)), memory.products.add(mean(jnp.broadcast_to(flux, moved.shape), moved))
        return Spreading(memory.count + 1, jnp.asarray(t, memory.t.dtype), state.q, flux, position, recent, squares, products), ()

    def close(self, tally, memory, ended):
        origins = np.maximum(ended.looks - np.arange(self.lags), 1)[:, None, None]
        squares, products = memory.squares.value() / origins, memory.products.value() / origins
        half, lag = (self.lags - 1) // 2, ended.h * ended.every * np.arange(self.lags)
        slopes = np.full_like(squares, np.nan)
        slopes[:, 1 : half + 1] = (squares[:, 2 : 2 * half + 1 : 2] - squares[:, 1 : half + 1]) / (2 * lag[1 : half + 1, None, None])
        both = np.stack([slopes, products], 1)
        mean = np.trace(both, axis1=-2, axis2=-1) / both.shape[-1]  # of its own: components of a trajectory are not independent
        return moments.gather(np.concatenate([both.reshape(*mean.shape, -1), mean[..., None]], -1), ended.finished)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock):
        n = np.asarray(summary.n)
        error = np.sqrt(summary.second / np.maximum(n - 1, 1) / np.maximum(n, 1))
        d = round((summary.mean.shape[-1] - 1) ** 0.5)
        variables: dict = {}
        for kind, i in (("einstein", 0), ("green_kubo", 1)):
            for suffix, numbers in (("", summary.mean[i]), ("_stderr", error[i])):
                variables[kind + suffix] = (("lag", "a", "b"), numbers[:, :-1].reshape(-1, d, d))
                variables[f"{kind}_mean{suffix}"] = (("lag",), numbers[:, -1])
        lag = clock.h * clock.every * np.arange(self.lags)
        return ObserverReport(name, variables | {"count": ((), n.max())}, {"lag": lag}, f"diffusion at {self.lags} lags")


class Drifting(NamedTuple):
    """Time and point of the last look, X, and X when the transient was over."""

    t: Any
    q: Any
    position: Any
    early: Any


class Drift(Moving):
    """(X(T) − X(t1))/(T − t1) of every trajectory, kept unchanged."""

    after: float = eqx.field(static=True)  # t1

    def begin(self, scheme, state, t):
        size = jax.eval_shape(lambda: self.picked(scheme, scheme.space.zero(scheme.system.dtype))).shape
        zero = jnp.zeros(size, scheme.system.dtype)
        return Drifting(jnp.asarray(t, zero.dtype), state.q, zero, zero)

    def look(self, memory, scheme, state, t):
        position = memory.position + self.gained(scheme, memory.q, memory.position, state, memory.position, t - memory.t)
        early = jnp.where(t <= self.after, position, memory.early)
        return Drifting(jnp.asarray(t, memory.t.dtype), state.q, position, early), ()

    def close(self, tally, memory, ended):
        looks = ended.t0 + ended.h * ended.every * np.arange(ended.looks)
        begun = looks[looks <= self.after * (1 + 1e-12)][-1]
        slopes = (np.asarray(memory.position, float) - np.asarray(memory.early, float))[:, 0] / (looks[-1] - begun)
        slopes[~np.asarray(ended.finished)] = np.nan
        return slopes, ended.trajectories

    def merge(self, a, b):
        return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock):
        slopes, numbers = summary
        return ObserverReport(name, {"value": (("trajectory", "a"), slopes)}, {"trajectory": numbers}, f"drift of {len(slopes)} trajectories")
