"""Do the functions that a user wrote belong together?

    df·e  against  (f(q ⊕ εe) − f(q ⊕ −εe))/2ε            for L, U and every γ_i: derivatives may be given by hand
    dF = 0                                                 for a force in a bath: one that has a curl has no Gibbs measure
    p1 − p0 of S_d  against that of its system's action    as h → 0, for a discrete Lagrangian that names its system

A function with a jax.custom_vjp has a gradient and nothing else: laws that need the derivative of a step, or a second one of U, cannot be measured,
and the report names the function.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions import Discrete, Midpoint
from bismut.errors import BismutError
from bismut.findings.checks import Study, check, in_velocities
from bismut.findings.finding import Finding, at_most, not_measured
from bismut.findings.memory import evaluate
from bismut.findings.noether import ProbePoints
from bismut.findings.structure import LARGEST
from bismut.flows import Langevin, end_momenta
from bismut.mechanics import Scheme, System
from bismut.mechanics.heat import Drag
from bismut.programs import custom_gradients
from bismut.registry import CHECKS
from bismut.spaces import Point, Velocity

_PAIRS = 4  # of random directions, where there are many
_LEVELS = (1.0, 0.25, 0.0625)  # of the step, for what should vanish with it
_REMEDY = "Give it its derivative with jax.custom_jvp instead, from which JAX has both."
_CUSTOM_VJP = f"a function of the step has a jax.custom_vjp, and so no forward derivative. {_REMEDY}"


@CHECKS.register
@check("consistency", ("derivatives of L",), rank=30, cost=0.5, label=("derivatives",), applies=in_velocities)
def derivatives(study: Study) -> list[Finding]:
    """Automatic derivatives of the user's functions, against finite differences of their values."""
    system = study.system
    functions = {"derivatives of L": lambda q, v: system.lagrangian(q, v, study.t0)[None]}
    if system.channels:
        functions["derivatives of the noise"] = lambda q, v: system.noise(q, study.t0)
    assert study.probes is not None
    return [_against_differences(system, law, function, study.probes) for law, function in functions.items()]


def _against_differences(system: System, law: str, function: Callable, probes: ProbePoints) -> Finding:
    space, n = system.space, system.space.dim
    tiny = limit = 1e-2 if system.dtype == np.float32 else 1e-5
    count = len(jax.tree.leaves(probes.v)[0])
    directions = jnp.asarray(np.random.default_rng(1).normal(size=(count, 2 * n)) / np.sqrt(2 * n), system.dtype)

    def one(q: Point, v: Velocity, e):
        at = lambda s: function(space.move(q, space.unflatten(e[:n]), s), space.unflatten(space.flatten(v) + s * e[n:]))
        zero = jnp.zeros((), system.dtype)
        slope = jax.jvp(at, (zero,), (jnp.ones_like(zero),))[1]
        difference = (at(zero + tiny) - at(zero - tiny)) / (2 * tiny)
        size = jnp.abs(slope) + jnp.abs(difference) + jnp.abs(at(zero))
        return jnp.abs(slope - difference) / jnp.where(size > 0, size, 1.0)

    off = np.asarray(evaluate(jax.vmap(one), probes.q, probes.v, directions))
    if not np.isfinite(off).any():
        return not_measured(law, "they are not finite near the path")
    return at_most(law, float(np.nanmax(off)), limit, True, f"against finite differences at {count} places near the path")


@CHECKS.register
@check("consistency", ("S_d",), rank=31, applies=lambda scheme: isinstance(scheme, Discrete) and in_velocities(scheme))
def right_action(study: Study) -> list[Finding]:
    """A discrete Lagrangian against the midpoint action of its system: the momentum it adds in a step, without and with noise.

    The differences fall with h if both approximate the same action; what is left at h → 0 is extrapolated linearly.
    """
    return [_action_gap(study, noisy) for noisy in ((False, True) if study.scheme.channels else (False,))]


def _action_gap(study: Study, noisy: bool) -> Finding:
    scheme, probes, step = study.scheme, study.probes, study.step
    assert isinstance(scheme, Discrete)
    assert probes is not None
    other = Midpoint(scheme.system, retraction=scheme.retraction)
    space, dtype, m = scheme.space, scheme.system.dtype, scheme.channels
    normals = jnp.asarray(np.random.default_rng(2).normal(size=(len(jax.tree.leaves(probes.v)[0]), m)), dtype)

    def gained(action, q, q1, h, dW):
        p0, p1 = end_momenta(action, q, q1, h, dW, study.t0)
        return space.flatten(p1) - space.flatten(p0)

    def one(h):
        def at(q, v, z):
            q1 = space.move(q, v, h)
            none, dW = jnp.zeros(m, dtype), jnp.sqrt(h) * z

            def impulse(action):
                quiet = gained(action, q, q1, h, none)
                return (gained(action, q, q1, h, dW) - quiet) / jnp.sqrt(h) if noisy else quiet / h

            own, reference = impulse(scheme), impulse(other)
            return jnp.max(jnp.abs(own - reference)), jnp.max(jnp.abs(reference))

        return jax.vmap(at)(probes.q, probes.v, normals)

    gaps, sizes = zip(*(map(np.asarray, evaluate(one, jnp.asarray(step * level, dtype))) for level in _LEVELS), strict=True)
    worst = np.array([np.nanmax(gap) / max(np.nanmax(sizes[-1]), 1e-300) for gap in gaps])
    rest = max((4 * worst[2] - worst[1]) / 3, 0.0)  # a line through the two smallest steps, at h = 0
    law, what = ("S_d: its noise", "Σ γ_i ΔW_i") if noisy else ("S_d: its Lagrangian", "h L")
    how = f"what is left at h → 0 of the difference to {what} of its system, relative; {worst[0]:.1g} at h = {step:g}"
    return at_most(law, float(rest), 0.02, True, how)


def _force_in_a_bath(scheme: Scheme) -> bool:
    bath = isinstance(scheme, Langevin) or isinstance(scheme.system.dissipation, Drag)
    return in_velocities(scheme) and scheme.system._force is not None and bath


@CHECKS.register
@check("consistency", ("force without a curl",), rank=32, applies=_force_in_a_bath)
def curl(study: Study) -> list[Finding]:
    """max |e_i F_j − e_j F_i − ⟨F, [e_i, e_j]⟩| over the size of its terms: 0 for a force that is the derivative of something."""
    if not study.equilibrium:
        return []
    system, probes, law = study.system.with_dissipation(None), study.probes, "force without a curl"
    assert probes is not None
    space, n = system.space, system.space.dim

    directions = jnp.asarray(np.random.default_rng(3).normal(size=(2, _PAIRS, n)), system.dtype)

    def one(q: Point):
        force = lambda x: space.flatten(system.force(space.move(q, space.unflatten(x)), space.zero(system.dtype), study.t0))
        zero = jnp.zeros(n, system.dtype)
        if n > LARGEST:  # along pairs of random directions, which no curl is orthogonal to: a slope for each is too much
            slope = jax.vmap(lambda u, v: jax.jvp(force, (zero,), (u,))[1] @ v)
            turn = lambda u, v: space.flatten(space.turning(q, space.unflatten(u), space.unflatten(force(zero)))) @ v
            there, back, turned = slope(*directions), slope(*directions[::-1]), jax.vmap(turn)(*directions)
        else:
            there = jax.jacfwd(force)(zero).T
            back, turned = there.T, space.bracket_form(q, space.unflatten(force(zero)))
        size = jnp.max(jnp.abs(there)) + jnp.max(jnp.abs(turned))
        return jnp.max(jnp.abs(there - back - turned)) / jnp.where(size > 0, size, 1.0)

    off = np.asarray(evaluate(jax.vmap(one), probes.q))
    if not np.isfinite(off).any():
        return [not_measured(law, "it is not finite near the path")]
    limit = 1e-3 if system.dtype == np.float32 else 1e-8
    return [at_most(law, float(np.nanmax(off)), limit, True, "|dF| over the size of its terms; with a curl no Gibbs measure is invariant")]


# Functions without forward derivatives.


def without_forward(system: System) -> str | None:
    """The sentence that names a function of the system which has a gradient and no forward derivative; None if there is none."""
    space, dtype = system.space, system.dtype

    def second_derivative():
        q, z, s = space.origin(dtype), space.zero(dtype), jnp.ones((), dtype)
        energy = system.hamiltonian if system.in_phase_space else system.lagrangian
        rate = lambda s: jax.jvp(lambda s: energy(space.move(q, z, s), z, 0.0), (s,), (s,))[1]
        return jax.jvp(rate, (s,), (s,))

    try:
        jax.eval_shape(second_derivative)
    except Exception as problem:  # anything else is reported where it is met
        return custom_vjp_reason(problem)
    return None


def function_without_forward(system: System) -> str | None:
    """The same of every function of a system: a constraint, the noise, a force."""
    if (energy := without_forward(system)) is not None:
        return energy
    q, v = jax.eval_shape(lambda: (system.space.origin(system.dtype), system.space.zero(system.dtype)))
    of_point, of_both = (
        (system._constraint, system._noise),
        (system._force, system._random_force, system._noise_hamiltonian, *system.invariants.values()),
    )
    for function, arguments in [(one, (q,)) for one in of_point] + [(one, (q, v)) for one in of_both]:
        if function is not None and custom_gradients(lambda *a, f=function: system._call(f, *a, t=jnp.ones((), system.dtype)), *arguments):
            return f"{function!r} calls a function with a jax.custom_vjp, which has no forward derivative. {_REMEDY}"
    return None


def custom_vjp_reason(problem: Exception) -> str | None:
    """Why something could not be measured, if it is for a function without a forward derivative."""
    if "callbacks do not support JVP" in str(problem):
        return "a function calls Python, which has no forward derivative. Give the function that calls it one with jax.custom_jvp"
    if "custom_vjp" not in str(problem) and "custom_lin" not in str(problem):
        return None
    return str(problem) if isinstance(problem, BismutError) else _CUSTOM_VJP
