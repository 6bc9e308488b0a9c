"""bismut itself."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import perform, request
from bismut.findings import peers
from bismut.flows import Langevin
from bismut.mechanics import State, mechanical
from bismut.spaces import SO3, Euclidean

_COPIES, _LOOKS = 4000, 60


def bodies() -> peers.Judged:
    """`Langevin` with BAOAB."""
    system = mechanical(Euclidean(3) * SO3(), mass=(1.0, list(peers.INERTIA)), potential=lambda q: 0.5 * q[0] @ q[0])
    return _run(Langevin(system, peers.KT, rate=peers.FRICTION), (jnp.zeros(3), jnp.eye(3)), peers.BODY_AXES, peers.BODY_STEP)


def well() -> peers.Judged:
    """`Langevin` with BAOAB."""
    system = mechanical(Euclidean(3), potential=lambda q: 0.5 * q @ q + 0.25 * jnp.sum(q**4))
    return _run(Langevin(system, peers.KT, peers.FRICTION), jnp.zeros(3), peers.WELL_AXES, peers.WELL_STEP)


def _run(scheme: Langevin, q: Any, names: list[str], step: float) -> peers.Judged:
    system, apart = scheme.system, round(1 / step)

    @jax.jit
    @jax.vmap
    def axes(state: State):
        flat = system.space.flatten
        return flat(state.p) * flat(system.velocity(state.q, state.p)) / peers.KT

    start = scheme.start(q, temperature=peers.KT)
    result = perform(request(scheme, start, step=step, trajectories=_COPIES, seed=1, steps=apart, every=apart), progress=False)
    looks = []
    for look in range(8 + _LOOKS):
        result = perform(request(scheme, continue_from=result, steps=apart, every=apart), progress=False)
        if look >= 8:
            looks.append(np.asarray(axes(State(result.final.q, result.final.p))))
    return peers.Judged("bismut, " + scheme.title, names, step, np.stack(looks))
