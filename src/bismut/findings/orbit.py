"""Is balanced Hamiltonian noise in equilibrium at kT?

    ⟨Σ {H, H_i}²⟩ = kT ⟨Σ {{H, H_i}, H_i}⟩            exact for exp(−H/kT), on every coadjoint orbit

Each {·, H_i} keeps the Liouville measure, so integration by parts gives this for every noise, whatever H is: the configurational temperature along
the fields of the noise. It asks for no kinetic energy, and no quadrature over the orbit.
"""

from __future__ import annotations

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bismut.ensembles import perform, request
from bismut.findings.chance import near, ratio_of
from bismut.findings.effort import seconds_for, step_operations
from bismut.findings.equilibrium import GROUP
from bismut.findings.finding import Finding, not_measured
from bismut.host import evaluate
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.balance import Balance, slopes
from bismut.mechanics.hamiltonian import field

_TRAJECTORIES, _BURN, _LOOKS = 2048, 8, 16  # relaxation times before looks, and between first and last of them
_LAW = "temperature on the orbit"


def orbit_temperature(
    scheme: Scheme, state: State, *, step: float, seed: int, budget: float, tolerance: float, temperature: float | None
) -> list[Finding]:
    """Both sides of the law over an ensemble, with as many looks as were paid for."""
    system, begun = scheme.system, time.monotonic()
    balance = system.dissipation
    assert isinstance(balance, Balance)
    if balance.temperature.value is None and temperature is None:
        return [replace(not_measured(_LAW, "the bath changes in time"), group=GROUP)]
    kT = float(balance.temperature(jnp.zeros((), system.dtype), system.parameters)) if temperature is None else float(temperature)
    rate = float(evaluate(lambda q, p: _rate(system, q, p), state.q, state.p))
    if not rate > 0:
        return [replace(not_measured(_LAW, "no noise moves the start"), group=GROUP)]
    apart = int(np.clip(np.ceil(1 / (rate * step)), 5, 2000))
    seen = jax.jit(jax.vmap(lambda q, p: _sides(system, q, p)))
    result = perform(request(scheme, state, step=step, trajectories=_TRAJECTORIES, seed=seed, every=apart, steps=_BURN * apart), progress=False)
    price = seconds_for(_TRAJECTORIES * apart * step_operations(scheme, state), result.provenance.mode)  # of a look
    looks = []
    while len(looks) < np.clip(budget / price - _BURN, 2, _LOOKS):
        result = perform(request(scheme, continue_from=result, every=apart, steps=apart), progress=False)
        assert result.final is not None
        looks.append([np.asarray(side) for side in seen(result.final.q, result.final.p)])
    steep, curved = (np.stack([look[side] for look in looks]) for side in (0, 1))
    words = f"⟨Σ{{H, H_i}}²⟩/kT⟨Σ{{{{H, H_i}}, H_i}}⟩, {_TRAJECTORIES} trajectories, {len(looks)} looks"
    finding = near(_LAW, ratio_of(steep / kT, curved), 1.0, tolerance, words, group=GROUP)
    return [replace(finding, seed=seed, seconds=time.monotonic() - begun)]


def _sides(system: System, q, p):
    """Σ {H, H_i}², and Σ {{H, H_i}, H_i}."""
    zero, now = jnp.zeros((), system.dtype), jax.tree.map(jnp.zeros_like, p)

    def along(i):
        there = field(system.space, lambda q, p: system.noise_hamiltonian(q, p)[i], q, p)
        return jax.jvp(lambda e, p: slopes(system, system.space.nudge(q, e), p, zero)[i], (now, p), there)

    values, bends = zip(*map(along, range(system.channels)), strict=True)
    return jnp.sum(jnp.stack(values) ** 2), jnp.sum(jnp.stack(bends))


def _rate(system: System, q, p):
    """−½ Σ X_i(X_i(z))·z/|z|²: how fast noise alone makes a state forget where it was."""
    z, back = ravel_pytree((q, p))

    def moved(i, z):
        q, p = back(z)
        v, dp = field(system.space, lambda q, p: system.noise_hamiltonian(q, p)[i], q, p)
        dq = jax.jvp(lambda e: system.space.nudge(q, e), (jax.tree.map(jnp.zeros_like, p),), (v,))[1]
        return ravel_pytree((dq, dp))[0]

    twice = [jax.jvp(lambda z, i=i: moved(i, z), (z,), (moved(i, z),))[1] for i in range(system.channels)]
    return jnp.abs(0.5 * jnp.sum(jnp.stack(twice), 0) @ z) / (z @ z)
