"""Observers of transport: what moved, since when, and how fast.

    X(t_k) = Σ_j δ_j,   δ_j = q_j ⊖ q_{j−1},    J_j = δ_j/h        or, of a flux J,     X(t_k) = Σ_j ½(J_j + J_{j−1}) δt

    MSD_ab(τ) = ⟨ΔX_a ΔX_b⟩,      G_ab(τ) = ⟨J_a(t) ΔX_b⟩ − ½⟨J_a δ_b⟩ ≈ ∫₀^τ ⟨J_a(t) J_b(t − s)⟩ ds,       ΔX = X(t) − X(t − τ)

less what the mean drift v and the mean flux J̄ contribute, v_a v_b τ² and J̄_a v_b (τ − h/2): transport is of fluctuations. Every lag is an origin. G
is the running integral of Green and Kubo. Half of its first term is left out, as in a trapezoid, so that it is the slope of Einstein's relation,

    G(τ) + G(τ)ᵀ = [MSD(τ) − MSD(τ − h)]/h        for stationary δ of any scheme, at any step,

and no time step is lost in quadrature. The velocity M⁻¹p at the end of a step would not do: where drifts are rescaled or a step ends in a bath it is
not δ/h, not even in the mean, and its G is off by a factor, 1/b or (γh/2)/sinh(γh/2) of a free particle. A flux of the user's own is integrated by
trapezoids of its values, and nothing is left out of it. Leading axes of a displacement are bodies, over which is averaged; the last one has the
components a, b.

X is added up step by step wherever that matters (`looks_between`). On a group q_j ⊖ q_{j−1} of many steps is not the integral of the velocity: of a
free Brownian rotation log R is too short, and D by about 0.12 · 2Dδt, 5 % at the longest stride in which no turn is lost.
"""

from __future__ import annotations

import math
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
from bismut.ensembles.starts import start_at
from bismut.flows import Brownian, Langevin
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener
from bismut.spaces import Euclidean, Power, Product, Space


def bodies_and_components(space: Space, v: Any) -> jax.Array:
    """A displacement as (bodies, components): all of it for one body, side by side the arrays of each of several."""
    count = space.count if isinstance(space, Power) else 1
    return jnp.concatenate([jnp.reshape(leaf, (count, -1)) for leaf in jax.tree.leaves(v)], 1)


def looks_between(space: Space, flux: Callable | None, every: int, seen: bool) -> tuple[int, int]:
    """Steps between looks and looks between lags, where lags are `every` steps apart: a look at each step where its displacement is needed, because
    it is the flux (`seen`) or because displacements do not add up. The integral of a flux, which may cost more than a step, is taken at the lags."""
    return (every, 1) if flux is not None or (adds_up(space) and not seen) else (1, every)


def adds_up(space: Space) -> bool:
    """Whether the displacement over many steps is the sum of those of its steps."""
    match space:
        case Product():
            return all(map(adds_up, space.factors))
        case Power():
            return adds_up(space.base)
    return type(space) is Euclidean


def turned_in_a_step(scheme: Scheme, start: Any, step: float) -> float:
    """By what part of half a turn an angle changes in a step: 5 standard deviations of what a thermal velocity, or overdamped motion, makes of it."""
    if not isinstance(scheme, Langevin | Brownian):
        return 0.0
    system, space = scheme.system, by_angles(scheme.space)
    q = start_at(scheme, start, 0.0).one(Wiener(0)).q
    turned = jax.vmap(lambda e: space.gap(space.move(q, space.unflatten(2 * math.pi * e)), q))(jnp.eye(space.dim, dtype=system.dtype))
    angles = np.all([np.abs(leaf).reshape(space.dim, -1).max(1) < 1e-3 for leaf in map(np.asarray, jax.tree.leaves(turned))], 0)
    light = np.diag(np.linalg.inv(np.asarray(system.mass(q, None, 0.0))))[angles].max(initial=0.0)
    spread = float(scheme.temperature(0.0, system.parameters)) * light * (2 * step if isinstance(scheme, Brownian) else step**2)
    return 5 * math.sqrt(spread) / math.pi


class Moving(Watcher):
    """What observers of transport share: the displacement since the last look."""

    part: Callable | None = eqx.field(static=True)
    flux: Callable | None = eqx.field(static=True)

    def picked(self, scheme: Scheme, v: Any) -> jax.Array:
        """The chosen part of a displacement or a velocity, (bodies, components)."""
        chosen = bodies_and_components(scheme.space, v) if self.part is None else jnp.asarray(self.part(v))
        return jnp.reshape(chosen, (-1, chosen.shape[-1] if chosen.ndim else 1))

    def current(self, scheme: Scheme, state: State, t) -> jax.Array:
        """J of the user's own, (bodies, components)."""
        assert self.flux is not None
        flux = value_of(self.flux, scheme, state, t)
        return jnp.reshape(flux, (-1, flux.shape[-1] if flux.ndim else 1))

    def gained(self, scheme: Scheme, q: Any, old: jax.Array, state: State, new: jax.Array, time) -> jax.Array:
        """What X gains between two looks."""
        if self.flux is None:
            return self.picked(scheme, by_angles(scheme.space).subtract(state.q, q))
        return 0.5 * time * (old + new)


class Spreading(NamedTuple):
    """Looks so far; time, point and flux of the last one; X, its recent values at lags (newest first); sums of J, or of δ in its place, and those of
    each lag."""

    count: Any
    t: Any
    q: Any
    flux: Any
    position: Any
    recent: Any
    mean: KahanSum
    squares: KahanSum
    products: KahanSum


class Summary(NamedTuple):
    """Over trajectories: the numbers of all lags (2, lags, d² + 1), those of the drift (v, J̄), and their covariances times n."""

    lags: moments.Moments
    drift: moments.Joint
    cross: np.ndarray  # (2, lags, d² + 1, 2d)


class Spread(Moving):
    """(MSD(2τ) − MSD(τ))/2τ and G(τ), each (lags, d, d), of every trajectory, less what the mean drift contributes; reported with errors over
    trajectories, and so their mean diagonal."""

    lags: int = eqx.field(static=True)
    seen: bool = eqx.field(static=True, default=True)  # whether there is a flux to multiply with
    stride: int = eqx.field(static=True, default=1)  # looks between lags

    def _size(self, scheme, flux):
        if self.flux is not None:
            return flux.shape
        return jax.eval_shape(lambda: self.picked(scheme, scheme.space.zero(scheme.system.dtype))).shape

    def begin(self, scheme, state, t):
        flux = None if self.flux is None else self.current(scheme, state, t)
        size = self._size(scheme, flux)
        sums = KahanSum.zero(jnp.zeros((self.lags, size[1], size[1]), scheme.system.dtype))
        blank = jnp.zeros(size, scheme.system.dtype)
        recent = jnp.zeros((self.lags, *size), scheme.system.dtype)
        mean = KahanSum.zero(blank[0])
        flux = blank if flux is None else flux
        return Spreading(jnp.zeros((), jnp.int32), jnp.asarray(t, blank.dtype), state.q, flux, blank, recent, mean, sums, sums)

    def look(self, memory, scheme, state, t):
        flux = memory.flux if self.flux is None else self.current(scheme, state, t)
        gained = self.gained(scheme, memory.q, memory.flux, state, flux, t - memory.t)
        position = memory.position + gained
        sums: tuple = (memory.recent, memory.mean, memory.squares, memory.products)

        def taken(recent, mean, squares, products):
            now = jnp.zeros_like(position) if not self.seen else gained if self.flux is None else flux
            recent = jnp.concatenate([position[None], recent[:-1]])
            known = (jnp.arange(self.lags, dtype=jnp.int32) * self.stride <= memory.count)[:, None, None]
            moved = jnp.where(known, position - recent, 0.0)
            over = lambda a, b: jnp.sum(a[..., :, None] * b[..., None, :], 1) / position.shape[0]
            rest = moved if self.flux is not None else jnp.where(known, moved - 0.5 * now, 0.0)
            squares, products = squares.add(over(moved, moved)), products.add(over(jnp.broadcast_to(now, moved.shape), rest))
            return recent, mean.add(jnp.sum(now, 0) / position.shape[0]), squares, products

        if self.stride == 1:
            sums = taken(*sums)
        else:
            # A loop of one round or of none: machine code leaves sums that are not due where they lie, where a branch would copy them in every step.
            due = memory.count % self.stride == 0
            sums = jax.lax.while_loop(lambda carry: carry[0], lambda carry: (jnp.zeros((), bool), *taken(*carry[1:])), (due, *sums))[1:]
        return Spreading(memory.count + 1, jnp.asarray(t, memory.t.dtype), state.q, flux, position, *sums), ()

    def close(self, tally, memory, ended):
        looks = (ended.looks - 1) // self.stride + 1
        origins = np.maximum(looks - np.arange(self.lags), 1)[:, None, None]
        squares, products, mean_flux = memory.squares.value() / origins, memory.products.value() / origins, memory.mean.value() / looks
        if self.flux is None:  # J = δ/h, of which there is none at the first look; an empty sum at lag 0
            products, mean_flux = products / ended.h, memory.mean.value() / (max(looks - 1, 1) * ended.h)
            products[:, 0] = 0.0
        half, lag = (self.lags - 1) // 2, ended.h * ended.every * self.stride * np.arange(self.lags)
        slopes = np.full_like(squares, np.nan)
        slopes[:, 1 : half + 1] = (squares[:, 2 : 2 * half + 1 : 2] - squares[:, 1 : half + 1]) / (2 * lag[1 : half + 1, None, None])
        both = np.stack([slopes, products], 1)
        mean = np.trace(both, axis1=-2, axis2=-1) / both.shape[-1]  # of its own: components of a trajectory are not independent
        both = np.concatenate([both.reshape(*mean.shape, -1), mean[..., None]], -1)
        drift = np.asarray(memory.position, float).mean(1) / max((ended.looks - 1) * ended.every * ended.h, 1e-300)
        drift = np.concatenate([drift, mean_flux], -1)
        joint, lags = moments.gather_joint(drift, ended.finished), moments.gather(both, ended.finished)
        off = (both - lags.mean)[ended.finished]
        own = (drift - joint.mean)[ended.finished]
        cross = np.stack([(off * own[:, i].reshape(-1, 1, 1, 1)).sum(0) for i in range(own.shape[1])], -1)
        return Summary(lags, joint, cross)

    def reach(self, lag: np.ndarray, h: float) -> np.ndarray:
        """To which time G integrates: to half a step before each lag, if δ/h is the flux."""
        return lag if self.flux is not None else np.maximum(lag - 0.5 * h, 0.0)

    def merge(self, a, b):
        share = a.drift.n * b.drift.n / max(a.drift.n + b.drift.n, 1)
        shift = (b.lags.mean - a.lags.mean)[..., None] * (b.drift.mean - a.drift.mean)
        return Summary(moments.merge(a.lags, b.lags), moments.merge_joint(a.drift, b.drift), a.cross + b.cross + share * shift)

    def report(self, name, summary, clock):
        n, d = int(summary.drift.n), summary.drift.mean.shape[0] // 2
        lag = clock.h * clock.every * self.stride * np.arange(self.lags)
        value, error = _fluctuations(summary, lag, self.reach(lag, clock.h))
        variables: dict = {}
        for kind, i in (("einstein", 0), ("green_kubo", 1)):
            for suffix, numbers in (("", value[i]), ("_stderr", error[i])):
                variables[kind + suffix] = (("lag", "a", "b"), numbers[:, :-1].reshape(-1, d, d))
                variables[f"{kind}_mean{suffix}"] = (("lag",), numbers[:, -1])
        drift, scatter = summary.drift.mean[:d], np.diagonal(summary.drift.scatter)[:d]
        variables |= {"drift": (("a",), drift), "drift_stderr": (("a",), np.sqrt(scatter / max(n - 1, 1) / max(n, 1)))}
        variables |= {"reach": (("lag",), self.reach(lag, clock.h)), "count": ((), np.asarray(n))}
        return ObserverReport(name, variables, {"lag": lag}, f"diffusion at {self.lags} lags")


def _fluctuations(summary: Summary, lag: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (2, lags, d² + 1) less what the drift contributes, c m_ab, and their errors.

    m_ab = ⟨v_a⟩⟨v_b⟩, c = 3τ/2 of [MSD(2τ) − MSD(τ)]/2τ;      m_ab = ⟨J̄_a⟩⟨v_b⟩, c the `reach` of G(τ)

    A product of two means over n trajectories is too large by their covariance/n.
    """
    n, x, d = int(summary.drift.n), summary.drift.mean, summary.drift.mean.shape[0] // 2
    covariance, cross, second = (part / max(n - 1, 1) / max(n, 1) for part in (summary.drift.scatter, summary.cross, summary.lags.second))  # of means
    value, variance = summary.lags.mean.copy(), second.copy()
    for kind, times in enumerate((1.5 * lag, reach)):
        product, slope = np.zeros(d * d + 1), np.zeros((d * d + 1, 2 * d))
        for a in range(d):
            for b in range(d):
                i, row = a + kind * d, a * d + b
                product[row] = x[i] * x[b] - covariance[i, b]
                slope[row, i] += x[b]
                slope[row, b] += x[i]
        diagonal = np.arange(d) * (d + 1)
        product[-1], slope[-1] = product[diagonal].mean(), slope[diagonal].mean(0)
        size = times[:, None]
        value[kind] -= size * product
        own = np.einsum("ri,ij,rj->r", slope, covariance, slope)
        variance[kind] += size**2 * own - 2 * size * np.einsum("lri,ri->lr", cross[kind], slope)
    return value, np.sqrt(np.maximum(variance, 0.0))


class Drifting(NamedTuple):
    """Time and point of the last look, X, and X when the transient was over and before, at the times `shares` of it."""

    t: Any
    q: Any
    position: Any
    early: Any


_SHARES = (1.0, 0.75, 0.625, 0.5)  # of a transient; several, because what oscillates may be zero at one of them


class Drift(Moving):
    """(X(T) − X(t1))/(T − t1) of the first bodies of every trajectory, and the same from earlier times on, kept unchanged."""

    after: float = eqx.field(static=True)  # t1
    bodies: int = eqx.field(static=True, default=1)
    shares: tuple[float, ...] = eqx.field(static=True, default=_SHARES)

    def begin(self, scheme, state, t):
        size = jax.eval_shape(lambda: self.picked(scheme, scheme.space.zero(scheme.system.dtype))).shape
        zero = jnp.zeros(size, scheme.system.dtype)
        return Drifting(jnp.asarray(t, zero.dtype), state.q, zero, jnp.zeros((len(self.shares), *size), zero.dtype))

    def look(self, memory, scheme, state, t):
        position = memory.position + self.gained(scheme, memory.q, memory.position, state, memory.position, t - memory.t)
        early = jnp.stack([jnp.where(t <= share * self.after, position, kept) for share, kept in zip(self.shares, memory.early, strict=True)])
        return Drifting(jnp.asarray(t, memory.t.dtype), state.q, position, early), ()

    def close(self, tally, memory, ended):
        looks = ended.t0 + ended.h * ended.every * np.arange(ended.looks)
        begun = np.array([looks[looks <= share * self.after][-1] for share in self.shares])
        gained = np.asarray(memory.position, float)[:, None] - np.asarray(memory.early, float)
        slopes = gained[:, :, : self.bodies] / (looks[-1] - begun)[:, None, None]
        slopes[~np.asarray(ended.finished)] = np.nan
        return slopes, ended.trajectories

    def merge(self, a, b):
        return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock):
        slopes, numbers = summary
        axes = ("trajectory", "from", "body", "a")
        return ObserverReport(name, {"value": (axes, slopes)}, {"trajectory": numbers}, f"drift of {len(slopes)} trajectories")
