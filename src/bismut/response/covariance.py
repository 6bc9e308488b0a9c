"""What equilibrium says of derivatives.

    d⟨O⟩/dθ = ⟨∂O/∂θ⟩ − cov(O, ∂u/∂θ),        u = H/kT,   of overdamped motion U/kT

In equilibrium nothing has to be followed: averages over time of O, ∂u/∂θ and their product are enough, for thousands of parameters by one backward
pass through u. Per trajectory i the linearised estimate is

    e_i = (∂O/∂θ)_i − (O ∂u)_i + Ō (∂u)_i + O_i ⟨∂u⟩ − Ō ⟨∂u⟩

whose mean is the derivative and whose spread over independent trajectories is its error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import complete_run, request
from bismut.ensembles.observable import value_of
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.flows import Brownian, Langevin
from bismut.mechanics import Scheme
from bismut.noise import Path
from bismut.response.bath import no_bath
from bismut.response.parameters import Parameters, in_constraint, in_mass


class Products(NamedTuple):
    """Looks, and sums over them: O − o (M,), ∂O/∂θ (P, M), ∂u/∂θ (P,), (O − o) ∂u/∂θ (P, M); o is O at the first look."""

    count: Any
    reference: Any
    value: Any
    partial: Any
    slope: Any
    product: Any


class Covarying(Watcher):
    """Time averages of O, ∂u/∂θ and their product, trajectory by trajectory."""

    of: Any = eqx.field(static=True)
    parameters: Parameters = eqx.field(static=True)

    def _seen(self, scheme, state, t):
        theta = self._theta(scheme)
        value = lambda theta: jnp.ravel(value_of(self.of, self.parameters.put(scheme, theta), state, t))
        O = value(theta)
        few = self.parameters.count <= O.shape[0]
        partial = (jax.jacfwd if few else jax.jacrev)(value)(theta).T
        slope = jax.grad(lambda theta: reduced_energy(self.parameters.put(scheme, theta), state, t))(theta)
        return O, partial, slope

    def _theta(self, scheme):
        return self.parameters.traced_vector(scheme)

    def begin(self, scheme, state, t):
        O, partial, slope = self._seen(scheme, state, t)
        zero = jnp.zeros_like
        return Products(jnp.zeros((), O.dtype), O, zero(O), zero(partial), zero(slope), zero(partial))

    def look(self, memory, scheme, state, t):
        O, partial, slope = self._seen(scheme, state, t)
        O = O - memory.reference
        new = (memory.value + O, memory.partial + partial, memory.slope + slope, memory.product + slope[:, None] * O[None, :])
        return Products(memory.count + 1, memory.reference, *new), ()

    def close(self, tally, memory, ended):
        count = np.maximum(np.asarray(memory.count), 1)
        mean = lambda x: np.asarray(x) / count.reshape(-1, *[1] * (np.ndim(x) - 1))
        value, slope = mean(memory.value), mean(memory.slope)
        product = mean(memory.product) + slope[:, :, None] * np.asarray(memory.reference)[:, None, :]
        good = np.asarray(ended.finished)
        return tuple(x[good] for x in (value + np.asarray(memory.reference), mean(memory.partial), slope, product))

    def merge(self, a, b):
        return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))

    def report(self, name, summary, clock):
        value, partial, slope, product = summary
        variables = {
            "value": (("trajectory", "component"), value),
            "partial": (("trajectory", "parameter", "component"), partial),
            "slope": (("trajectory", "parameter"), slope),
            "product": (("trajectory", "parameter", "component"), product),
        }
        return ObserverReport(name, variables, {}, f"covariances of {len(value)} trajectories")


def reduced_energy(scheme: Any, state: Any, t) -> Any:
    """u = H/kT; of overdamped motion, whose momenta are drawn anew, U/kT."""
    system = scheme.system
    energy = system.potential(state.q, t) if isinstance(scheme, Brownian) else system.energy(state, t)
    return energy / scheme.temperature(t, system.parameters)


def why_not(scheme: Scheme, parameters: Parameters) -> str:
    """Why the stationary state is not exp(−H/kT), or not known to be; empty where it is."""
    if not isinstance(scheme, Langevin | Brownian):
        return "only Langevin and Brownian motion have a known stationary state"
    if why := no_bath(scheme):
        return why
    system = scheme.system
    if scheme.time_dependent:
        return "what depends on time has no stationary state"
    if system.pushed:
        return "a force that has no potential: the stationary state is not known"
    if isinstance(scheme, Langevin) and scheme.unbalanced:
        return "noise beside the bath: the stationary state is not known"
    if scheme.temperature.zero:
        return "kT = 0"
    if system.constraints and in_mass(scheme, parameters):
        return "a mass on a constraint, which changes the measure on it"
    if in_constraint(scheme, parameters):
        return "a parameter of a constraint, which moves the surface itself"
    return ""


def covariances(scheme: Scheme, start: Any, of: Any, parameters: Parameters, path: Path, *, step, steps, every, burn_in, first, trajectories, t0):
    """Estimates (n, P, M) of single trajectories, linearised, values (n, M), failures and the engine."""
    watch = Covarying(of, parameters, every=every)
    settings = {"step": step, "steps": steps, "burn_in": burn_in, "trajectories": trajectories, "first_trajectory": first, "t0": t0, "path": path}
    run = complete_run(request(scheme, start, observe={"covariance": watch}, keep_final=False, **settings))
    seen = run.observables["covariance"]
    value, partial, slope, product = (np.asarray(getattr(seen, name)) for name in ("value", "partial", "slope", "product"))
    O, G = value.mean(0), slope.mean(0)
    outer = lambda g, o: g[..., :, None] * o[..., None, :]
    each = partial - product + outer(G, value - O) + outer(slope - G, np.broadcast_to(O, value.shape)) + outer(G, O)
    return each, value, trajectories - len(value), run.request.engine_plan.engine.name
