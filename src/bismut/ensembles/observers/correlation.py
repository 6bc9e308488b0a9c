"""Autocorrelation functions.

    C(τ) = ⟨x(t) x(t + τ)⟩ − ⟨x⟩²,       ρ(τ) = C(τ)/C(0),       τ_int = ½ + Σ_{k ≥ 1} ρ(k δt)   (in units of the time δt between looks)

Every look is an origin: the last values are kept in a short memory, and products with the newest are summed lag by lag.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import moments
from bismut.ensembles.moments import Moments
from bismut.ensembles.observers.measuring import Measuring
from bismut.ensembles.observers.report import Report, component_axes, short
from bismut.ensembles.observers.watcher import Clock
from bismut.errors import DomainError


class Lagged(NamedTuple):
    """Samples so far, the last values (newest first), and sums over origins for each lag; values are taken relative to `about`."""

    count: Any
    recent: Any
    products: Any
    total: Any


class Products(NamedTuple):
    """Over trajectories: moments of the mean product at each lag, and of the mean value."""

    products: Moments
    mean: Moments


class Autocorrelation(Measuring):
    """Covariance and correlation of an observable with itself, component by component, at lags 0, 1, ... looks."""

    lags: int = eqx.field(static=True)
    about: float = eqx.field(static=True)

    def begin(self, setting, sight):
        x = self.values(sight)
        zeros = jnp.zeros((self.lags, *x.shape), x.dtype)
        return Lagged(jnp.zeros((), jnp.int32), zeros, zeros, jnp.zeros_like(x))

    def look(self, memory, setting, sight):
        x = self.values(sight) - self.about
        # Before the memory is full, the missing values are zeros and add nothing.
        recent = jnp.concatenate([x[None], memory.recent[:-1]])
        return Lagged(memory.count + 1, recent, memory.products + recent * x, memory.total + x)

    def end(self, memory, setting, sight, index):
        origins = jnp.maximum(memory.count - jnp.arange(self.lags), 1).astype(memory.total.dtype)
        products = memory.products / origins.reshape(-1, *[1] * memory.total.ndim)
        mean = memory.total / jnp.maximum(memory.count, 1)
        return Products(moments.gather(jnp.moveaxis(products, 0, 1), sight.counted), moments.gather(mean, sight.counted))

    def merge(self, a, b):
        return Products(moments.merge(a.products, b.products), moments.merge(a.mean, b.mean))

    def report(self, name, summary, clock: Clock):
        n = np.asarray(summary.products.n)
        mean = np.asarray(summary.mean.mean)
        covariance = np.asarray(summary.products.mean) - mean**2
        spread = np.sqrt(summary.products.second / np.maximum(n - 1, 1) / np.maximum(n, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = covariance / covariance[0]
        looks = clock.steps // clock.every + 1
        known = (np.arange(self.lags) < looks).reshape(-1, *[1] * mean.ndim)
        axes = component_axes(name, mean.shape)
        step = clock.h * clock.every
        # Summed to the first lag at which nothing is left to see; beyond it there is only noise.
        positive = np.cumprod(np.nan_to_num(correlation) > 0, axis=0) * known
        integrated = step * (0.5 + np.sum(np.nan_to_num(correlation[1:]) * positive[1:], axis=0))
        variables = {
            "covariance": (("lag", *axes), np.where(known, covariance, np.nan)),
            "correlation": (("lag", *axes), np.where(known, correlation, np.nan)),
            "stderr": (("lag", *axes), np.where(known & (n > 1), spread, np.nan)),
            "mean": (axes, mean + self.about),
            "integrated_time": (axes, integrated),
        }
        return Report(name, variables, {"lag": step * np.arange(self.lags)}, f"integrated correlation time {short(integrated)}")


def autocorrelation(of, *, lags: int = 100, about: float = 0.0, every: int | None = None) -> Autocorrelation:
    """The autocorrelation function of a function of a State, at so many lags of `every` steps. `about`: a value near the mean, if that is large."""
    if not isinstance(lags, int) or lags < 1:
        raise DomainError(f"lags must be a whole number ≥ 1, but {lags!r} came.")
    return Autocorrelation(of, lags, float(about), every=every)
