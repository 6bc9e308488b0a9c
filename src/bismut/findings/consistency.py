"""Do the pieces that a user wrote belong together?

df·e  against  (f(q ⊕ εe) − f(q ⊕ −εe))/2ε            for L, U and every γ_i: derivatives may be given by hand
dF = 0                                                 for a force in a bath: one that has a curl has no Gibbs measure
p1 − p0 of S_d  against that of its system's action    as h → 0, for a discrete Lagrangian that names its system
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions import Discrete, Midpoint
from bismut.findings.finding import Finding, at_most, not_measured
from bismut.findings.noether import Near
from bismut.flows import end_momenta
from bismut.host import evaluate
from bismut.mechanics import Scheme, System
from bismut.spaces import Point, Velocity

_LEVELS = (1.0, 0.25, 0.0625)  # of the step, for what should vanish with it


def derivatives(system: System, near: Near) -> list[Finding]:
    """What automatic differentiation makes of the user's functions, against finite differences of their values."""
    if not system.has_lagrangian:
        return []
    single = system.dtype == np.float32
    tiny, limit = (1e-2, 1e-2) if single else (1e-5, 1e-5)
    found = [("derivatives of L", lambda q, v: system.lagrangian(q, v)[None])]
    if system.channels:
        found.append(("derivatives of the noise", lambda q, v: system.noise(q)))
    return [_against_differences(system, name, function, near, tiny, limit) for name, function in found]


def _against_differences(system: System, law: str, function: Callable, near: Near, tiny: float, limit: float) -> Finding:
    space, n = system.space, system.space.dim
    count = len(jax.tree.leaves(near.v)[0])
    directions = jnp.asarray(np.random.default_rng(1).normal(size=(count, 2 * n)) / np.sqrt(2 * n), system.dtype)

    def one(q: Point, v: Velocity, e):
        at = lambda s: function(space.move(q, space.unflatten(e[:n]), s), space.unflatten(space.flatten(v) + s * e[n:]))
        zero = jnp.zeros((), system.dtype)
        slope = jax.jvp(at, (zero,), (jnp.ones_like(zero),))[1]
        difference = (at(zero + tiny) - at(zero - tiny)) / (2 * tiny)
        size = jnp.abs(slope) + jnp.abs(difference) + jnp.abs(at(zero))
        return jnp.abs(slope - difference) / jnp.where(size > 0, size, 1.0)

    off = np.asarray(evaluate(jax.vmap(one), near.q, near.v, directions))
    if not np.isfinite(off).any():
        return not_measured(law, "they are not finite near the path")
    return at_most(law, float(np.nanmax(off)), limit, True, f"against finite differences at {count} places near the path")


def curl(system: System, near: Near) -> Finding:
    """max |e_i F_j − e_j F_i − ⟨F, [e_i, e_j]⟩| over the size of its terms: 0 for a force that is the derivative of something."""
    space, n = system.space, system.space.dim
    law, zero = "force without a curl", space.zero(system.dtype)

    def one(q: Point):
        felt = lambda x: space.flatten(system.with_dissipation(None).force(space.move(q, space.unflatten(x)), zero))
        slope = jax.jacfwd(felt)(jnp.zeros(n, system.dtype)).T
        turned = space.bracket_form(q, space.unflatten(felt(jnp.zeros(n, system.dtype))))
        size = jnp.max(jnp.abs(slope)) + jnp.max(jnp.abs(turned))
        return jnp.max(jnp.abs(slope - slope.T - turned)) / jnp.where(size > 0, size, 1.0)

    off = np.asarray(evaluate(jax.vmap(one), near.q))
    if not np.isfinite(off).any():
        return not_measured(law, "it is not finite near the path")
    limit = 1e-3 if system.dtype == np.float32 else 1e-8
    return at_most(law, float(np.nanmax(off)), limit, True, "|dF| over the size of its terms; with a curl no Gibbs measure is invariant")


def right_action(scheme: Scheme, near: Near, step: float) -> list[Finding]:
    """A discrete Lagrangian against the midpoint action of its system: what it adds to the momentum in a step, without and with noise.

    The differences fall with h if both approximate the same action; what is left at h → 0 is extrapolated linearly.
    """
    if not isinstance(scheme, Discrete) or not scheme.system.has_lagrangian:
        return []
    other = Midpoint(scheme.system, retraction=scheme.retraction)
    findings = [_left(scheme, other, near, step, noisy=False)]
    return [*findings, _left(scheme, other, near, step, noisy=True)] if scheme.channels else findings


def _left(scheme: Discrete, other: Midpoint, near: Near, step: float, noisy: bool) -> Finding:
    system, space = scheme.system, scheme.space
    flat, dtype, m = space.flatten, system.dtype, scheme.channels
    normals = jnp.asarray(np.random.default_rng(2).normal(size=(len(jax.tree.leaves(near.v)[0]), m)), dtype)

    def gained(action, q, q1, h, dW):
        p0, p1 = end_momenta(action, q, q1, h, dW)
        return flat(p1) - flat(p0)

    def one(h):
        def at(q, v, z):
            q1 = space.move(q, v, h)
            none, dW = jnp.zeros(m, dtype), jnp.sqrt(h) * z

            def felt(action):
                quiet = gained(action, q, q1, h, none)
                return (gained(action, q, q1, h, dW) - quiet) / jnp.sqrt(h) if noisy else quiet / h

            mine, wanted = felt(scheme), felt(other)
            return jnp.max(jnp.abs(mine - wanted)), jnp.max(jnp.abs(wanted))

        return jax.vmap(at)(near.q, near.v, normals)

    gaps, sizes = zip(*(map(np.asarray, evaluate(one, jnp.asarray(step * level, dtype))) for level in _LEVELS), strict=True)
    worst = np.array([np.nanmax(gap) / max(np.nanmax(sizes[-1]), 1e-300) for gap in gaps])
    rest = max((4 * worst[2] - worst[1]) / 3, 0.0)  # a line through the two smallest steps, at h = 0
    law, what = ("S_d: its noise", "Σ γ_i ΔW_i") if noisy else ("S_d: its Lagrangian", "h L")
    words = f"what is left at h → 0 of the difference to {what} of its system, relative; {worst[0]:.1g} at h = {step:g}"
    return at_most(law, float(rest), 0.02, True, words)
