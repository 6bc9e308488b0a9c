"""Is balanced Hamiltonian noise in equilibrium at kT?

    ⟨Σ {H, H_i}²⟩ = kT ⟨Σ {{H, H_i}, H_i}⟩            exact for exp(−H/kT), on every coadjoint orbit

Each {·, H_i} keeps the Liouville measure, so integration by parts gives this for every noise, whatever H is: the configurational temperature along
the fields of the noise. It needs no kinetic energy, and no quadrature over the orbit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bismut.ensembles import complete_run, request
from bismut.findings.checks import Study
from bismut.findings.cost import seconds_for, step_operations
from bismut.findings.finding import Finding, not_measured
from bismut.findings.memory import evaluate
from bismut.findings.statistics import close_to, ratio_of
from bismut.mechanics import System
from bismut.mechanics.fluctuation_dissipation import BracketDissipation, energy_brackets
from bismut.mechanics.hamiltonian import hamiltonian_field

_TRAJECTORIES, _BURN, _LOOKS = 2048, 8, 16  # relaxation times before looks, and between first and last of them


def orbit_temperature(study: Study) -> Finding:
    """Both sides of the law over an ensemble, with as many looks as the budget pays for."""
    scheme, system, state, law = study.scheme, study.system, study.state, "temperature on the orbit"
    balance = system.dissipation
    assert isinstance(balance, BracketDissipation)
    if balance.temperature.value is None and study.temperature is None:
        return not_measured(law, "the bath changes in time")
    t0 = jnp.asarray(study.t0, system.dtype)
    kT = float(balance.temperature(t0, system.parameters)) if study.temperature is None else float(study.temperature)
    rate = float(evaluate(lambda q, p: _rate(system, q, p, t0), state.q, state.p))
    if not rate > 0:
        return not_measured(law, "no noise moves the start")
    every = int(np.clip(np.ceil(1 / (rate * study.step)), 5, 2000))
    sides = jax.jit(jax.vmap(lambda q, p: _sides(system, q, p, t0)))
    course = {"step": study.step, "trajectories": _TRAJECTORIES, "seed": study.seed, "t0": study.t0}
    result = complete_run(request(scheme, state, steps=_BURN * every, every=every, **course))
    price = seconds_for(_TRAJECTORIES * every * step_operations(scheme, state), result.provenance.mode)  # of a look
    looks = []
    while len(looks) < np.clip(study.budget / price - _BURN, 2, _LOOKS):
        result = complete_run(request(scheme, continue_from=result, every=every, steps=every))
        assert result.final is not None
        looks.append([np.asarray(side) for side in sides(result.final.q, result.final.p)])
    steep, curved = (np.stack([look[side] for look in looks]) for side in (0, 1))
    how = f"⟨Σ{{H, H_i}}²⟩/kT⟨Σ{{{{H, H_i}}, H_i}}⟩, {_TRAJECTORIES} trajectories, {len(looks)} looks"
    return close_to(law, ratio_of(steep / kT, curved), 1.0, study.tolerance, how)


def _sides(system: System, q, p, t):
    """Σ {H, H_i}², and Σ {{H, H_i}, H_i}."""
    zero = jax.tree.map(jnp.zeros_like, p)

    def channel(i):
        there = hamiltonian_field(system.space, lambda q, p: system.noise_hamiltonian(q, p, t)[i], q, p)
        return jax.jvp(lambda e, p: energy_brackets(system, system.space.nudge(q, e), p, t)[i], (zero, p), there)

    values, bends = zip(*map(channel, range(system.channels)), strict=True)
    return jnp.sum(jnp.stack(values) ** 2), jnp.sum(jnp.stack(bends))


def _rate(system: System, q, p, t):
    """−½ Σ X_i(X_i(z))·z/|z|²: how fast noise alone decorrelates a state."""
    z, back = ravel_pytree((q, p))

    def moved(i, z):
        q, p = back(z)
        v, dp = hamiltonian_field(system.space, lambda q, p: system.noise_hamiltonian(q, p, t)[i], q, p)
        dq = jax.jvp(lambda e: system.space.nudge(q, e), (jax.tree.map(jnp.zeros_like, p),), (v,))[1]
        return ravel_pytree((dq, dp))[0]

    twice = [jax.jvp(lambda z, i=i: moved(i, z), (z,), (moved(i, z),))[1] for i in range(system.channels)]
    return jnp.abs(0.5 * jnp.sum(jnp.stack(twice), 0) @ z) / (z @ z)
