"""Is it in equilibrium at kT?

    ⟨p_i v_i⟩ = kT for each i,     ½⟨p, v⟩/kT ~ Γ(f/2),     ⟨(zU)²⟩ = kT ⟨z z U⟩ for every left-invariant field z,     ⟨U⟩ as exp(−H/kT) has it

p is relative to its value at rest (p − ∂L/∂v at v = 0). The third is the configurational temperature: it does not depend on momenta, so it shows a
wrong force that a thermostat hides. Where masses depend on q, U stands for U − ½ kT ln det M. All of them are exact for the Gibbs measure; a scheme
has a bias of some order in h besides, which is why a claim has a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings.bath import Bath
from bismut.findings.checks import Study
from bismut.findings.consistency import without_forward
from bismut.findings.finding import Finding, Verdict, not_measured
from bismut.findings.sampling import Sample
from bismut.findings.statistics import close_to, gamma_distribution, mean_of, ratio_of
from bismut.mechanics import State, System
from bismut.spaces import SE2, SE3, SO2, SO3, Point, Power, Product, Space

_DIRECTIONS = 4  # random ones along which U is differentiated twice, where there are many degrees of freedom
_MANY = 12


def axes_of(space: Space) -> tuple[list[str], list[int]]:
    """Names of the axes that have temperatures of their own, and for each component of a flat velocity the axis it belongs to.

    Equal bodies share their axes; a space with many coordinates is one axis.
    """
    if isinstance(space, Product):
        return _joined(space.factors, numbered=True)
    if isinstance(space, Power):
        if isinstance(space.base, Product):  # arrays of one factor come together, body by body
            return _joined([factor**space.count for factor in space.base.factors], numbered=False)
        names, which = axes_of(space.base)
        return names, which * space.count
    n = space.dim
    turning = {SO3: 3, SO2: 1, SE3: 3, SE2: 1}.get(type(space), 0)
    if n > _MANY:
        return ["coordinates"], [0] * n
    return [f"rotation {i + 1}" if i < turning else f"coordinate {i - turning + 1}" for i in range(n)], list(range(n))


def _joined(factors: Sequence[Space], numbered: bool) -> tuple[list[str], list[int]]:
    """The axes of several factors, one after the other; names that occur twice get the number of their factor."""
    names: list[str] = []
    which: list[int] = []
    for number, factor in enumerate(factors):
        own, axes = axes_of(factor)
        prefix = f"{number + 1}: " if numbered and any(name in names for name in own) else ""
        which += [len(names) + axis for axis in axes]
        names += [prefix + name for name in own]
    return names, which


def axis_names(system: System) -> list[str]:
    """Of the temperatures that are measured: one for all under constraints."""
    return ["all"] if system.constraints else axes_of(system.space)[0]


def kinetic_values(system: System, kT: float, t: Any) -> Callable[[State], dict[str, Any]]:
    """½⟨p, v⟩/kT and p_i v_i/kT of each axis, of one state."""
    names, which = axes_of(system.space)
    share = np.zeros((len(names), system.space.dim))
    share[which, np.arange(system.space.dim)] = 1
    share /= share.sum(1, keepdims=True)

    def of(state: State) -> dict[str, Any]:
        p, v = relative_motion(system, state, t)
        kinetic = 0.5 * (p @ v) / kT
        excess = 2 * kinetic / system.freedom - 1
        return {"kinetic": kinetic, "excess": excess, "axes": excess[None] + 1 if system.constraints else jnp.asarray(share, p.dtype) @ (p * v) / kT}

    return of


def sampled_values(study: Study, bath: Bath) -> Callable[[State], dict[str, Any]]:
    """All that is recorded of one state, in units of kT."""
    system = study.system
    kinetic = kinetic_values(system, bath.kT, study.t0)
    slopes = None if system.constraints or without_forward(system) else configurational(system, bath.kT, study.t0)

    def of(state: State) -> dict[str, Any]:
        values = kinetic(state) | {"potential": system.potential(state.q, study.t0) / bath.kT}
        if slopes is not None:
            values["steep"], values["curved"] = slopes(state.q)
        return values | {f"own {name}": jnp.asarray(function(state), system.dtype) for name, function in study.observables.items()}

    return of


def relative_motion(system: System, state: State, t: Any) -> tuple[Any, Any]:
    """(p − a, v), flat, with a the momentum at rest."""
    flat = system.space.flatten
    v = system.velocity(state.q, state.p, t)
    return flat(state.p) - flat(system.momentum(state.q, jax.tree.map(jnp.zeros_like, v), t)), flat(v)


def effective_potential(system: System, kT: float, t: Any) -> Callable[[Point], Any]:
    """U − ½ kT ln det M: its Boltzmann factor is the density of configurations by the invariant measure."""
    if system.constant_mass:
        return lambda q: system.potential(q, t)
    return lambda q: system.potential(q, t) - 0.5 * kT * jnp.linalg.slogdet(system.mass(q, None, t))[1]


def configurational(system: System, kT: float, t: Any) -> Callable[[Point], tuple[Any, Any]]:
    """(Σ (zU)²/kT², Σ z z U/kT) over the axes, or over a few fixed random directions z where there are many."""
    space, U = system.space, effective_potential(system, kT, t)
    n, dtype = space.dim, system.dtype
    rows = np.eye(n) if n <= _MANY else np.random.default_rng(0).normal(size=(_DIRECTIONS, n)) / np.sqrt(n)

    def both(q: Point):
        def one(z):
            energy = lambda s: U(space.move(q, space.unflatten(z), s))
            rate = lambda s: jax.jvp(energy, (s,), (jnp.ones_like(s),))[1]
            zero = jnp.zeros((), dtype)
            slope, curvature = jax.jvp(rate, (zero,), (jnp.ones_like(zero),))
            return slope**2 / kT**2, curvature / kT

        steep, curved = jax.vmap(one)(jnp.asarray(rows, dtype))
        return jnp.sum(steep), jnp.sum(curved)

    return both


def temperatures(axes: np.ndarray, names: list[str], tolerance: float, source: str = "") -> list[Finding]:
    """A finding for each axis from values of p_i v_i/kT (looks, trajectories, axes), one for their mean over axes, and one that all are equal.

    It needs nothing but samples, so it judges other programs as well.
    """
    looks, count, _ = axes.shape
    sized = f"{count} trajectories, {looks} looks{source}"
    findings = [close_to("temperature", mean_of(axes.mean(-1)), 1.0, tolerance, f"⟨p v⟩/kT a degree of freedom, {sized}")]
    if len(names) > 1:
        findings += [
            close_to(f"temperature, {name}", mean_of(axes[..., i]), 1.0, tolerance, f"⟨p v⟩/kT of this axis, {sized}") for i, name in enumerate(names)
        ]
        findings.append(_equipartition(axes, names, tolerance))
    return findings


def _equipartition(axes: np.ndarray, names: list[str], tolerance: float) -> Finding:
    """No axis is off the mean of all, whatever that is; the probability counts each axis once."""
    departures = [close_to("", mean_of(axes[..., i] - axes.mean(-1)), 0.0, tolerance, "") for i in range(len(names))]
    alarms, doubts = ([getattr(one, which) or 0.0 for one in departures] for which in ("alarm", "doubt"))
    suspicious = any((one.alarm or 1) < 0.5 for one in departures)
    worst = int(np.argmin(alarms) if suspicious else np.argmax([abs(one.measured) for one in departures]))
    one, how = departures[worst], f"largest departure of an axis ({names[worst]}) from the mean over axes, in kT"
    alarm, doubt = min(1.0, len(names) * min(alarms)), min(1.0, sum(doubts))
    return Finding("equipartition", one.measured, tolerance, Verdict.undecided, how, one.error, 0.0, alarm, doubt, one.samples)


def kinetic_distribution(kinetic: np.ndarray, system: System, tolerance: float) -> list[Finding]:
    """The distribution of the kinetic energy (looks, trajectories), from the last look: one sample of each trajectory."""
    return gamma_distribution(kinetic[-1], system.freedom / 2, tolerance)


def configurational_temperature(sample: Sample, system: System, tolerance: float) -> Finding:
    law = "configurational temperature"
    if "steep" not in sample.values:
        return not_measured(law, "constraints" if system.constraints else without_forward(system) or "no derivatives")
    steep, curved = sample.values["steep"], sample.values["curved"]
    if not np.nanmax(np.abs(steep)) > 1e-12:
        return not_measured(law, "nothing depends on where the system is")
    bottom = mean_of(curved)
    if not abs(bottom.value) > 5 * bottom.error:
        return not_measured(law, "⟨z z U⟩ is not known to differ from 0; more samples would tell")
    return close_to(law, ratio_of(steep, curved), 1.0, tolerance, "⟨(zU)²⟩/kT⟨z z U⟩, from positions alone")
