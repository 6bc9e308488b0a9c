"""Autocorrelation functions.

    C(τ) = ⟨x(t) x(t + τ)⟩ − ⟨x⟩²,       ρ(τ) = C(τ)/C(0),       τ_int = ½ + Σ_{k ≥ 1} ρ(k δt)   (in units of the time δt between looks)

Every look is an origin: the last values are kept in a short memory, and products with the newest are summed lag by lag. Errors come from the spread
over trajectories of the centred products, c_i(τ) = P_i(τ) − 2 μ m_i + μ², and for ρ of c_i(τ) − ρ(τ) c_i(0): the mean itself does not enter them.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.observers import sums
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.watcher import Clock
from bismut.errors import DomainError


class Lagged(NamedTuple):
    """The last values, newest first, and sums over origins for each lag; values are taken relative to `about`."""

    recent: Any
    products: sums.Sum
    total: sums.Sum


class Autocorrelation(Measuring):
    """Covariance and correlation of an observable with itself, component by component, at lags 0, 1, ... looks."""

    lags: int = eqx.field(static=True)
    about: float = eqx.field(static=True)

    def begin(self, scheme, state, t):
        x = self.value(scheme, state, t)
        recent = jnp.zeros((self.lags, *x.shape), x.dtype)
        return Lagged(recent, sums.zero(recent), sums.zero(x))

    def look(self, memory, scheme, state, t):
        x = self.value(scheme, state, t) - self.about
        # Before the memory is full, the missing values are zeros and add nothing.
        recent = jnp.concatenate([x[None], memory.recent[:-1]])
        return Lagged(recent, sums.add(memory.products, recent * x), sums.add(memory.total, x)), ()

    def close(self, tally, memory, ended):
        total, products = sums.value(memory.total), sums.value(memory.products)
        origins = np.maximum(ended.looks - np.arange(self.lags), 1).reshape(-1, *[1] * (total.ndim - 1))
        products = products / origins
        mean = np.broadcast_to(total[:, None] / max(ended.looks, 1), products.shape)
        return moments.gather_joint(np.stack([products, np.broadcast_to(products[:, :1], products.shape), mean], -1), ended.finished)

    def merge(self, a, b):
        return moments.merge_joint(a, b)

    def report(self, name, summary, clock: Clock):
        n = int(summary.n)
        product, mean = summary.mean[..., 0], summary.mean[0, ..., 2]
        covariance = product - mean**2
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = covariance / covariance[0]
            # Of c(τ) = P(τ) − 2μm, and of (c(τ) − ρ c(0))/C(0), as weights of (P(τ), P(0), m).
            of_covariance = np.stack([np.ones_like(product), np.zeros_like(product), np.broadcast_to(-2 * mean, product.shape)], -1)
            of_correlation = np.stack([np.ones_like(product), -correlation, -2 * mean * (1 - correlation)], -1) / covariance[0][..., None]
        error = lambda w: np.sqrt(np.maximum(np.einsum("...i,...ij,...j->...", w, summary.scatter, w), 0) / max(n - 1, 1) / max(n, 1))
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
        return Report(name, variables, {"lag": step * np.arange(self.lags)}, f"integrated correlation time {short(integrated)}")

    def held(self, row, looks, trajectories):
        return 12 * 8 * self.lags


def autocorrelation(of, *, lags: int = 100, about: float = 0.0, every: int | None = None) -> Autocorrelation:
    """The autocorrelation function of a function of a State, at so many lags of `every` steps.

    `stderr` is the error of the covariance, `correlation_stderr` that of the correlation. `about`: a value near the mean, if that is so large that
    squares would lose digits.
    """
    if not isinstance(lags, int) or lags < 1:
        raise DomainError(f"lags must be a whole number ≥ 1, but {lags!r} came.")
    return Autocorrelation(of, lags, float(about), every=every)
