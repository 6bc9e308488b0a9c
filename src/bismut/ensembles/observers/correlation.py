"""Autocorrelation functions.

    C(τ) = ⟨(x(t) − μ)(x(t + τ) − μ)⟩,  μ = ⟨x⟩,       ρ(τ) = C(τ)/C(0),       τ_int = ½ + Σ_{k ≥ 1} ρ(k δt)   (in units of the time δt between looks)

Every look is an origin: the last values are kept in a short memory, and products with the newest ones are summed lag by lag. Centred at the end,
c_i(τ) = P_i(τ) − μ S_i(τ) + μ², S_i the mean of first factors plus that of second ones, for which the first values are kept too. Errors come from the
spread over trajectories of c_i(τ), and for ρ of c_i(τ) − ρ(τ) c_i(0): adding a constant to x changes nothing.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.moments import KahanSum
from bismut.ensembles.observers.report import ObserverReport, component_axes, short
from bismut.ensembles.observers.watcher import Clock, Measuring
from bismut.registry import OBSERVERS

TOGETHER = 8  # looks whose products are summed at once: a sum over origins is read and written once for all of them
_STRIP = 4  # lags at a time


class Lagged(NamedTuple):
    """Looks so far, the first values (behind them a place for all later ones), the last values, oldest first, and sums over origins for each lag,
    the longest first; values are taken relative to `about`. The last `count % TOGETHER` looks are not in the sums yet."""

    count: Any
    early: Any
    recent: Any
    products: KahanSum
    total: KahanSum


class Autocorrelation(Measuring):
    """Covariance and correlation of an observable with itself, component by component, at lags 0, 1, ... looks."""

    lags: int = eqx.field(static=True)
    about: float = eqx.field(static=True)

    @property
    def strips(self) -> int:
        return -(-self.lags // _STRIP)

    @property
    def newest(self) -> int:
        """Where the values are that the next sums begin with."""
        return self.strips * _STRIP - 1

    def begin(self, scheme, state, t):
        x = self.value(scheme, state, t)
        zeros = lambda length: jnp.zeros((length, *x.shape), x.dtype)
        # Before the memory is full, the missing values are zeros and add nothing.
        products = KahanSum.zero(zeros(self.newest + 1))
        return Lagged(jnp.zeros((), jnp.int32), zeros(self.lags + 1), zeros(self.newest + 1 + TOGETHER), products, KahanSum.zero(x))

    def look(self, memory, scheme, state, t):
        x, place = self.value(scheme, state, t) - self.about, memory.count % TOGETHER
        put = jax.lax.dynamic_update_index_in_dim
        recent = put(memory.recent, x, self.newest + place, 0)
        strips = jnp.where(place == TOGETHER - 1, self.strips, 0)
        last = recent[self.newest : self.newest + TOGETHER]
        _, recent, products = jax.lax.while_loop(lambda now: now[0] < strips, lambda now: _summed(last, *now), (0, recent, memory.products))
        early = put(memory.early, x, jnp.minimum(memory.count, self.lags), 0)
        return Lagged(memory.count + 1, early, recent, products, memory.total.add(x)), ()

    def close(self, tally, memory, ended):
        total, products, recent = memory.total.value()[:, None], memory.products.value(), np.asarray(memory.recent, float)
        with np.errstate(over="ignore", invalid="ignore"):  # of trajectories that failed
            waiting = ended.looks % TOGETHER
            for b in range(waiting):
                products = products + recent[:, self.newest + b, None] * recent[:, b : b + self.newest + 1]
            products = products[:, ::-1][:, : self.lags]
            recent = recent[:, : self.newest + waiting][:, ::-1]
            origins = np.maximum(ended.looks - np.arange(self.lags), 1).reshape(-1, *[1] * (total.ndim - 2))
            before = lambda values: np.concatenate([np.zeros_like(total), np.cumsum(np.asarray(values, float), 1)], 1)[:, : self.lags]
            # Without the last τ values, and without the first τ of them.
            factors = (2 * total - before(recent) - before(memory.early)) / origins
            products = products / origins
        first = lambda values: np.broadcast_to(values[:, :1], values.shape)
        return moments.gather_joint(np.stack([products, factors, first(products), first(factors)], -1), ended.finished)

    def merge(self, a, b):
        return moments.merge_joint(a, b)

    def report(self, name, summary, clock: Clock):
        n = int(summary.n)
        product, factors, mean = summary.mean[..., 0], summary.mean[..., 1], 0.5 * summary.mean[0, ..., 3]
        covariance = product - mean * factors + mean**2
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = covariance / covariance[0]
            # c(τ), and (c(τ) − ρ c(0))/C(0), as weights of (P(τ), S(τ), P(0), S(0)).
            one, zero, mu = np.ones_like(product), np.zeros_like(product), np.broadcast_to(mean, product.shape)
            of_covariance = np.stack([one, -mu, zero, zero], -1)
            of_correlation = np.stack([one, -mu, -correlation, mu * correlation], -1) / covariance[0][..., None]
        error = lambda w: np.sqrt(np.maximum((w[..., :, None] * summary.scatter * w[..., None, :]).sum(-1).sum(-1), 0) / max(n - 1, 1) / max(n, 1))
        known = (np.arange(self.lags) < clock.looks).reshape(-1, *[1] * mean.ndim)
        axes = component_axes(name, mean.shape)
        step = clock.h * clock.every
        # Summed to the first lag at which nothing is left to see; beyond it there is only noise.
        positive = np.cumprod(np.nan_to_num(correlation) > 0, axis=0) * known
        integrated = step * (0.5 + np.sum(np.nan_to_num(correlation[1:]) * positive[1:], axis=0))
        hidden = lambda values, shown: (("lag", *axes), np.where(shown, values, np.nan))
        variables = {
            "covariance": hidden(covariance, known),
            "correlation": hidden(correlation, known),
            "stderr": hidden(error(of_covariance), known & (n > 1)),
            "correlation_stderr": hidden(error(of_correlation), known & (n > 1)),
            "mean": (axes, mean + self.about),
            "integrated_time": (axes, integrated),
            "count": ((), np.asarray(n)),
        }
        return ObserverReport(name, variables, {"lag": step * np.arange(self.lags)}, f"integrated correlation time {short(integrated)}")

    def summary_bytes(self, row, looks, trajectories):
        return 20 * 8 * self.lags


def _summed(last, strip, recent, products):
    """Some lags: products of the last values with those before them; what will not be used again makes room."""
    first = strip * _STRIP
    window = jax.lax.dynamic_slice_in_dim(recent, first, TOGETHER + _STRIP)
    sum_of = lambda lag: sum(last[b] * window[lag + b] for b in range(TOGETHER))
    here = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, _STRIP), products)
    new = here.add(jnp.stack([sum_of(lag) for lag in range(_STRIP)]))
    put = lambda leaf, values: jax.lax.dynamic_update_slice_in_dim(leaf, values, first, 0)
    return strip + 1, put(recent, window[TOGETHER:]), jax.tree.map(put, products, new)


@OBSERVERS.register
@checked()
def autocorrelation(of, *, lags: int = 100, about: float = 0.0, every: int | None = None) -> Autocorrelation:
    """The autocorrelation function of a function of a State, at `lags` lags of `every` steps.

    `stderr` is the error of the covariance, `correlation_stderr` that of the correlation. `about`: a value near the mean, if that is so large that
    squares would lose digits.
    """
    return Autocorrelation(of, int(lags), float(about), every=every)
