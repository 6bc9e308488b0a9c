"""Which temperature a scheme says it has, and how fast it forgets.

    rate = tr(Γ M⁻¹)/n        momenta forget in 1/rate

A scheme claims exp(−H/kT) if friction and noise balance at one kT and nothing else drives it: then equilibrium can be measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings.finding import Finding, at_most
from bismut.flows import Langevin
from bismut.host import evaluate
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.friction import Friction, Nothing
from bismut.mechanics.heat import Drag
from bismut.mechanics.kicks import rows


class Bath(NamedTuple):
    """kT, and the rate at which momenta forget."""

    kT: float
    rate: float


def bath_of(scheme: Scheme, state: State, step: float, temperature: float | None = None) -> tuple[Bath | None, str]:
    """The bath that a scheme claims, or None and the reason, empty where there is nothing to say. `temperature` is a claim of the user's."""
    system = scheme.system
    law = _law(scheme)
    if law is None and temperature is None:
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
    if isinstance(friction, Nothing) or not kT > 0:
        return None, "" if temperature is None else "there is no friction"
    rate = _rate(system, friction, state, kT)
    return (Bath(kT, rate), "") if rate > 0 else (None, "there is no friction at the start")


def _law(scheme: Scheme) -> tuple[Friction, float] | None:
    now = jnp.zeros((), scheme.system.dtype)
    if isinstance(scheme, Langevin):
        # What the scheme was told, not what its pieces make of it.
        return scheme.friction, float(scheme.temperature(now, scheme.system.parameters))
    drag = scheme.system.dissipation
    return (drag.friction, float(drag.temperature(now, scheme.system.parameters))) if isinstance(drag, Drag) else None


def _driven(scheme: Scheme) -> str:
    """What keeps a scheme from having an equilibrium."""
    system = scheme.system
    if isinstance(scheme, Langevin):
        if scheme.schedule is not None or _moves(scheme.temperature.function):
            return "the bath changes in time"
        if scheme.moving.channels:
            return "noise drives the system beside the bath, and nothing balances it"
    elif isinstance(system.dissipation, Drag) and _moves(system.dissipation.temperature.function):
        return "the bath changes in time"
    return "the system depends on time" if system.time_dependent else ""


def heated(scheme: Scheme, state: State, tolerance: float) -> Finding | None:
    """Whether noise beside a bath is too weak to be noticed; None where there is none, or where it was asked for.

    Γ takes 2kT tr(ΓM⁻¹) of what noise of intensity BBᵀ gives, tr(BBᵀM⁻¹): where both are uniform, kT rises by their ratio.
    """
    if not isinstance(scheme, Langevin) or not scheme.unbalanced or scheme.own_noise is not None or not scheme.system.quadratic:
        return None
    system = scheme.system
    now = jnp.zeros((), system.dtype)
    kT = float(scheme.temperature(now, system.parameters))

    def given(q):
        slopes = rows(scheme.moving, q, now)
        return jnp.trace(slopes @ jnp.linalg.solve(system.mass(q), slopes.T)) / system.space.dim

    rate = _rate(system, scheme.friction, state, kT)
    rise = float(evaluate(given, state.q)) / (2 * kT * rate) if rate > 0 else np.inf
    words = 'of kT, by which noise beside the bath raises it, at the start; own_noise="drives" if it is meant to'
    return replace(at_most("temperature", rise, tolerance, True, words), group="equilibrium")


def _moves(law: Any) -> bool:
    return law is not None and "t" in law.wants


def _rate(system: System, friction: Friction, state: State, kT: float) -> float:
    space, n = system.space, system.space.dim

    def trace(q):
        M = system.mass(q)
        drag = jax.vmap(lambda v: friction.drag(system, q, v, jnp.zeros((), system.dtype), jnp.asarray(kT, system.dtype)))(
            jnp.eye(n, dtype=system.dtype)
        )
        return jnp.trace(jnp.linalg.solve(M, drag.T)) / n

    # The friction may vanish just there: somewhere about it counts as well.
    away = space.move(state.q, space.unflatten(jnp.linspace(0.1, 0.3, n, dtype=system.dtype)))
    return float(np.mean([float(evaluate(trace, q)) for q in (state.q, away)]))
