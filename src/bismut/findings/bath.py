"""The temperature that a scheme claims, and how fast momenta relax.

    rate = tr(Γ M⁻¹)/n        momenta decorrelate in 1/rate

A scheme claims exp(−H/kT) if friction and noise balance at one kT and nothing else drives it: then equilibrium can be measured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings.finding import Finding, at_most
from bismut.flows import Brownian, Langevin
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.covectors import noise_covectors
from bismut.mechanics.friction import Friction, NoFriction
from bismut.mechanics.heat import Drag
from bismut.programs.evaluation import evaluate


class Bath(NamedTuple):
    """kT, and the rate at which momenta relax."""

    kT: float
    rate: float


def bath_of(scheme: Scheme, state: State, step: float, t0: float, temperature: float | None = None) -> tuple[Bath | None, str]:
    """The bath that a scheme claims, or None and the reason, empty where there is nothing to say. `temperature` is a claim of the user's."""
    system = scheme.system
    law = _friction_and_temperature(scheme, t0)
    if isinstance(scheme, Brownian) and temperature is None:
        temperature = float(scheme.kT(jnp.asarray(t0, system.dtype)))
    if (law is None and temperature is None) or temperature == 0:
        return None, ""
    if not system.has_lagrangian:
        return None, "without a Lagrangian there is no kinetic energy"
    if not system.quadratic:
        return None, "the Hamiltonian is not quadratic in the momentum"
    if driven := _driven(scheme):
        return None, driven
    if law is None:
        assert temperature is not None
        return Bath(float(temperature), 0.01 / step), ""
    friction, kT = law
    kT = kT if temperature is None else float(temperature)
    if isinstance(friction, NoFriction) or not kT > 0:
        return None, "" if temperature is None else "there is no friction"
    rate = _rate(system, friction, state, kT, t0)
    return (Bath(kT, rate), "") if rate > 0 else (None, "there is no friction at the start")


def _friction_and_temperature(scheme: Scheme, t0: float) -> tuple[Friction, float] | None:
    """As the scheme declares them, not as its parts apply them."""
    now, parameters = jnp.asarray(t0, scheme.system.dtype), scheme.system.parameters
    if isinstance(scheme, Langevin):
        return scheme.friction, float(scheme.temperature(now, parameters))
    drag = scheme.system.dissipation
    return (drag.friction, float(drag.temperature(now, parameters))) if isinstance(drag, Drag) else None


def _driven(scheme: Scheme) -> str:
    """Why a scheme has no equilibrium; empty if it has one."""
    system = scheme.system
    if isinstance(scheme, Langevin):
        if scheme.schedule is not None or _moves(scheme.temperature.function):
            return "the bath changes in time"
        if scheme.moving.channels:
            return "noise drives the system beside the bath, and nothing balances it"
    elif isinstance(scheme, Brownian):
        if _moves(scheme.temperature.function):
            return "the bath changes in time"
        if system.forced:
            return "a force drives the system beside the bath"
    elif isinstance(system.dissipation, Drag) and _moves(system.dissipation.temperature.function):
        return "the bath changes in time"
    return "the system depends on time" if system.time_dependent else ""


def heated(scheme: Scheme, state: State, t0: float, tolerance: float) -> Finding | None:
    """Whether noise besides a bath is too weak to matter; None where there is none, or where it was asked for.

    Γ removes 2kT tr(ΓM⁻¹) of what noise of intensity BBᵀ adds, tr(BBᵀM⁻¹): where both are uniform, kT rises by their ratio.
    """
    if not isinstance(scheme, Langevin) or not scheme.unbalanced or scheme.own_noise is not None or not scheme.system.quadratic:
        return None
    system, now = scheme.system, jnp.asarray(t0, scheme.system.dtype)
    kT = float(scheme.temperature(now, system.parameters))

    def added(q):
        slopes = noise_covectors(scheme.moving, q, now)
        return jnp.trace(slopes @ jnp.linalg.solve(system.mass(q, None, now), slopes.T)) / system.space.dim

    rate = _rate(system, scheme.friction, state, kT, t0)
    rise = float(evaluate(added, state.q)) / (2 * kT * rate) if rate > 0 else np.inf
    how = 'of kT, by which noise beside the bath raises it, at the start; own_noise="drives" if it is meant to'
    return at_most("temperature", rise, tolerance, True, how)


def _moves(law: Any) -> bool:
    return law is not None and "t" in law.wants


def _rate(system: System, friction: Friction, state: State, kT: float, t0: float) -> float:
    space, n, dtype = system.space, system.space.dim, system.dtype

    def trace(q):
        drag = jax.vmap(lambda v: friction.drag(system, q, v, jnp.asarray(t0, dtype), jnp.asarray(kT, dtype)))(jnp.eye(n, dtype=dtype))
        return jnp.trace(jnp.linalg.solve(system.mass(q, None, jnp.asarray(t0, dtype)), drag.T)) / n

    # The friction may vanish at the start: a point nearby counts as well.
    away = space.move(state.q, space.unflatten(jnp.linspace(0.1, 0.3, n, dtype=dtype)))
    return float(np.mean([float(evaluate(trace, q)) for q in (state.q, away)]))
