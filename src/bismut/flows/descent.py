"""Downhill to a minimum of the potential energy, on every space and under constraints.

    v ← (1 − α) v + α |v| F/|F|,    v ← v + h M⁻¹F,    q ← q ⊕ h v        as long as ⟨F, v⟩ > 0 and U does not rise (FIRE, Bitzek et al.)

Where U would rise the step is taken back; there, and where ⟨F, v⟩ ≤ 0, motion begins anew with half the step. After some steps downhill h grows and α
shrinks. So U never rises but by round-off, whatever the first step. h stays below a part of 1/ω for the stiffest motion seen of late,

    h ≤ c/ω,     ω² = ⟨F₀ − F₁, v⟩/(h ⟨v, M v⟩),     a bound that eases a little with every step

because a step that outgrows a stiff direction shakes it, until U rises and all that was gained elsewhere is lost: of 216 Lennard-Jones points that
took two to four times the steps. F = −dU + Σ λ dg along constraints, which every move is brought back onto; lengths are those of the kinetic energy,
so that places and rotations are weighed by their masses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bismut.mechanics import System
from bismut.mechanics import constraint as holonomic
from bismut.spaces import Point, Velocity, add, pair, scale

_PATIENCE, _FASTER, _SLOWER, _MIX, _LESS = 5, 1.1, 0.5, 0.1, 0.99  # N_min, f_inc, f_dec, α_start, f_α of FIRE
_STABLE, _EASE = 0.5, 1.005  # c, and how the bound of h eases


class Descent(NamedTuple):
    """A point on its way downhill: its momentum, energy, force (tangent to constraints), step and its bound, mixing, and steps since motion
    began anew."""

    q: Point
    p: Velocity
    energy: Any
    force: Velocity
    h: Any
    most: Any
    mixing: Any
    downhill: Any


def slope(system: System, q: Point, t) -> tuple[Any, Velocity]:
    """U and F = −dU, projected onto the tangent space of constraints."""
    zero = system.space.zero(system.dtype)
    energy, rise = jax.value_and_grad(lambda e: system.potential(system.space.nudge(q, e), t))(zero)
    force = scale(-1.0, rise)
    return energy, holonomic.project(system, q, force, t)[0] if system.constraints else force


def begin(system: System, q: Point, h, t) -> Descent:
    energy, force = slope(system, q, t)
    one = jnp.ones((), system.dtype)
    return Descent(q, scale(0.0, force), energy, force, h * one, jnp.inf * one, _MIX * one, 0.0 * one)


def first_step(system: System, q: Point, t):
    """A tenth of the period over 2π along the force: √(⟨a, M a⟩/|⟨a, U″ a⟩|)/10."""
    space = system.space
    force = slope(system, q, t)[1]
    a = system.velocity(q, force, t)
    rise = jax.grad(lambda e: system.potential(space.nudge(q, e), t))
    bend = pair(jax.jvp(rise, (space.zero(system.dtype),), (a,))[1], a)
    return 0.1 * jnp.sqrt(pair(force, a) / jnp.abs(bend))


def step(system: System, now: Descent, t) -> Descent:
    """One step of FIRE."""
    a = system.velocity(now.q, now.force, t)
    p = add(now.p, scale(now.h, now.force))
    size, pull = pair(p, system.velocity(now.q, p, t)), pair(now.force, a)
    along = jnp.sqrt(size / jnp.where(pull > 0, pull, 1.0))
    p = add(scale(1 - now.mixing, p), scale(now.mixing * along, now.force))
    q, there = system.space.move(now.q, system.velocity(now.q, p, t), now.h), jnp.array(True)
    if system.constraints:
        q, root = holonomic.nearest_point(system, q, t)
        there = root.converged
        q = jax.tree.map(lambda new, old: jnp.where(there, new, old), q, now.q)
    energy, force = slope(system, q, t)
    if system.constraints:
        p = holonomic.project(system, q, p, t)[0]
    noise = 16 * jnp.finfo(system.dtype).eps * jnp.abs(now.energy)
    accepted = there & (energy <= now.energy + noise)  # false for NaN
    v = system.velocity(q, p, t)
    uphill = ~accepted | (pair(force, v) <= 0)
    bend = pair(add(now.force, scale(-1.0, force)), v) / (now.h * pair(p, v))  # ω²
    most = jnp.minimum(_EASE * now.most, jnp.where(bend > 0, _STABLE / jnp.sqrt(bend), jnp.inf))
    choose = lambda new, old: jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
    downhill = jnp.where(uphill, 0.0, now.downhill + 1)
    ripe = downhill > _PATIENCE
    return Descent(
        choose(q, now.q),
        jax.tree.map(lambda leaf: jnp.where(uphill, 0.0, leaf), p),
        jnp.where(accepted, energy, now.energy),
        choose(force, now.force),
        jnp.minimum(now.h * jnp.where(uphill, _SLOWER, jnp.where(ripe, _FASTER, 1.0)), most),
        most,
        jnp.where(uphill, _MIX, jnp.where(ripe, _LESS * now.mixing, now.mixing)),
        downhill,
    )
