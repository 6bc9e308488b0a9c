"""Is it in equilibrium at kT?

    ⟨p_i v_i⟩ = kT for each i,     ½⟨p, v⟩/kT ~ Γ(f/2),     ⟨(zU)²⟩ = kT ⟨z z U⟩ for every left-invariant field z,     ⟨U⟩ as exp(−H/kT) has it

p is taken from where it rests (p − ∂L/∂v at v = 0). The third is the configurational temperature: it knows nothing of momenta, so it sees a wrong
force that a thermostat hides. Where masses depend on q, U stands for U − ½ kT ln det M. All of them are exact for the Gibbs measure; a scheme has its
own bias of some order in h beside, which is why a claim has a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings.bath import Bath
from bismut.findings.chance import distribution, mean_of, near, ratio_of
from bismut.findings.finding import Finding, Verdict, not_measured
from bismut.findings.forward import without_forward
from bismut.findings.sampling import Sample
from bismut.mechanics import State, System
from bismut.spaces import SE2, SE3, SO2, SO3, Point, Power, Product, Space

_DIRECTIONS = 4  # random ones along which U is differentiated twice, where there are many degrees of freedom
_MANY = 12

GROUP = "equilibrium"


def axes_of(space: Space) -> tuple[list[str], np.ndarray]:
    """Names of the axes whose temperatures are told apart, and for each component of a flat velocity the axis it belongs to.

    Equal bodies share their axes; of a space with many coordinates all are one.
    """
    names, which = _axes(space)
    return names, np.asarray(which)


def _axes(space: Space) -> tuple[list[str], list[int]]:
    if isinstance(space, Product):
        names, which = [], []
        for number, factor in enumerate(space.factors):
            own, places = _axes(factor)
            prefix = f"{number + 1}: " if len(space.factors) > 1 and any(name in names for name in own) else ""
            which += [len(names) + place for place in places]
            names += [prefix + name for name in own]
        return names, which
    if isinstance(space, Power):
        if isinstance(space.base, Product):  # arrays of one factor come together, body by body
            names, which = [], []
            for factor in space.base.factors:
                own, places = _axes(factor**space.count)
                which += [len(names) + place for place in places]
                names += own
            return names, which
        names, which = _axes(space.base)
        return names, which * space.count
    n = space.dim
    turning = {SO3: 3, SO2: 1, SE3: 3, SE2: 1}.get(type(space), 0)
    if n > _MANY:
        return ["coordinates"], [0] * n
    return [f"rotation {i + 1}" if i < turning else f"coordinate {i - turning + 1}" for i in range(n)], list(range(n))


def watcher(system: System, bath: Bath, observables: Mapping[str, Callable] | None = None) -> Callable[[State], dict[str, Any]]:
    """What is seen of one state, in units of kT."""
    space, kT = system.space, bath.kT
    names, which = axes_of(space)
    share = np.zeros((len(names), space.dim))
    share[which, np.arange(space.dim)] = 1
    share /= share.sum(1, keepdims=True)
    slopes = None if system.constraints or without_forward(system) else configurational(system, kT)

    def watch(state: State) -> dict[str, Any]:
        p, v = moving(system, state)
        kinetic = 0.5 * (p @ v) / kT
        seen = {"kinetic": kinetic, "excess": 2 * kinetic / system.freedom - 1, "potential": system.potential(state.q) / kT}
        seen["axes"] = jnp.asarray(share, p.dtype) @ (p * v) / kT if not system.constraints else seen["excess"][None] + 1
        if slopes is not None:
            seen["steep"], seen["curved"] = slopes(state.q)
        return seen | {f"own {name}": jnp.asarray(function(state), p.dtype) for name, function in (observables or {}).items()}

    return watch


def moving(system: System, state: State, t: Any = 0.0) -> tuple[Any, Any]:
    """(p − a, v), flat, with a the momentum at rest."""
    flat = system.space.flatten
    v = system.velocity(state.q, state.p, t)
    return flat(state.p) - flat(system.momentum(state.q, jax.tree.map(jnp.zeros_like, v), t)), flat(v)


def effective_potential(system: System, kT: float) -> Callable[[Point], Any]:
    """U − ½ kT ln det M: its Boltzmann factor is the density of configurations by the invariant measure."""
    if system.inert:
        return system.potential
    return lambda q: system.potential(q) - 0.5 * kT * jnp.linalg.slogdet(system.mass(q))[1]


def configurational(system: System, kT: float) -> Callable[[Point], tuple[Any, Any]]:
    """(Σ (zU)²/kT², Σ z z U/kT) over the axes, or over a few fixed random directions z where there are many."""
    space, U = system.space, effective_potential(system, kT)
    n, dtype = space.dim, system.dtype
    rows = np.eye(n) if n <= _MANY else np.random.default_rng(0).normal(size=(_DIRECTIONS, n)) / np.sqrt(n)

    def both(q: Point):
        def one(z):
            along = lambda s: U(space.move(q, space.unflatten(z), s))
            rate = lambda s: jax.jvp(along, (s,), (jnp.ones_like(s),))[1]
            zero = jnp.zeros((), dtype)
            slope, curvature = jax.jvp(rate, (zero,), (jnp.ones_like(zero),))
            return slope**2 / kT**2, curvature / kT

        steep, curved = jax.vmap(one)(jnp.asarray(rows, dtype))
        return jnp.sum(steep), jnp.sum(curved)

    return both


def temperatures(axes: np.ndarray, names: list[str], tolerance: float, words: str = "") -> list[Finding]:
    """A finding for each axis from values of p_i v_i/kT (looks, trajectories, axes), one for their mean over axes, and one that all are alike.

    It asks for nothing but samples, so it judges other programs as well.
    """
    looks, count, _ = axes.shape
    sized = f"{count} trajectories, {looks} looks{words}"
    whole = [mean_of(axes[..., i]) for i in range(len(names))]
    findings = [near("temperature", mean_of(axes.mean(-1)), 1.0, tolerance, f"⟨p v⟩/kT a degree of freedom, {sized}", group=GROUP)]
    if len(names) > 1:
        findings += [
            near(f"temperature, {name}", found, 1.0, tolerance, f"⟨p v⟩/kT of this axis, {sized}", group=GROUP)
            for name, found in zip(names, whole, strict=True)
        ]
        findings.append(_alike(axes, names, tolerance))
    return findings


def _alike(axes: np.ndarray, names: list[str], tolerance: float) -> Finding:
    """Equipartition: no axis is off the mean of all, whatever that is; the probability counts each axis once."""
    apart = [near("", mean_of(axes[..., i] - axes.mean(-1)), 0.0, tolerance, "") for i in range(len(names))]
    worst = (
        int(np.argmin([finding.alarm or 0.0 for finding in apart]))
        if any((f.alarm or 1) < 0.5 for f in apart)
        else int(np.argmax([abs(f.measured) for f in apart]))
    )
    one = apart[worst]
    alarm, doubt = min(1.0, len(names) * min(f.alarm or 0.0 for f in apart)), min(1.0, sum(f.doubt or 0.0 for f in apart))
    words = f"largest departure of an axis ({names[worst]}) from the mean over axes, in kT"
    return Finding("equipartition", one.measured, tolerance, Verdict.undecided, words, one.error, 0.0, alarm, doubt, one.samples, GROUP)


def kinetic(found: Sample, system: System, tolerance: float) -> list[Finding]:
    """The distribution of the kinetic energy, from the last look: one sample of each trajectory."""
    return distribution(found.values["kinetic"][-1], system.freedom / 2, tolerance, GROUP)


def configurational_temperature(found: Sample, system: System, tolerance: float) -> Finding:
    law = "configurational temperature"
    if "steep" not in found.values:
        return not_measured(law, "constraints" if system.constraints else without_forward(system) or "no derivatives")
    steep, curved = found.values["steep"], found.values["curved"]
    if not np.nanmax(np.abs(steep)) > 1e-12:
        return not_measured(law, "nothing depends on where the system is")
    bottom = mean_of(curved)
    if not abs(bottom.value) > 5 * bottom.error:
        return not_measured(law, "⟨z z U⟩ is not known to differ from 0; more samples would tell")
    return near(law, ratio_of(steep, curved), 1.0, tolerance, "⟨(zU)²⟩/kT⟨z z U⟩, from positions alone", group=GROUP)
