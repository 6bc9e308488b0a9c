"""Is a momentum map kept where the symmetry is one?

    J = ⟨p, ξ_Q(q)⟩ = Σ_i p_i ξ_i        kept  if  L, every γ_i and the surface g = 0  are unchanged when q moves along ξ_Q, and v with it,
                                          and forces do no work along it, ⟨F, ξ_Q⟩ = 0

Whether they are unchanged is measured at random points near a computed path, at random velocities: a derivative that vanishes at a special point, as
that of x⁴ + y⁴ on an axis under rotations, says nothing. Changes of J are measured against the terms it is made of, Σ_i |p_i ξ_i|: from rest J itself
is zero, and round-off over zero is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.findings.finding import Finding, at_most, not_measured
from bismut.host import evaluate
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.constraint import jacobian, nearest_point
from bismut.mechanics.hamiltonian import bracket, field
from bismut.spaces import Point, Space, Velocity, add, pair

Generator = Callable[[Space, Point], Velocity]
Change = Callable[[Generator], Array]

_PLACES = 12  # along the path, each with one random neighbour
_FAR = 0.1  # how far neighbours are at least, in units of velocities: a path may stay where it began


class Breaking(NamedTuple):
    """Largest relative change under a symmetry, at any of the places, of the Lagrangian, the stochastic potentials and the constraints; and the
    largest relative work of forces, steady and random, along it."""

    lagrangian: Any
    noise: Any
    constraint: Any
    force: Any

    def words(self, limit: float) -> str:
        names = {"L": self.lagrangian, "the noise": self.noise, "the constraint": self.constraint}
        changed = " and ".join(f"{name} ({value:.1g})" for name, value in names.items() if not value <= limit)
        worked = "" if self.force <= limit else f"forces do work along it ({self.force:.1g})"
        return ", and ".join(filter(None, [f"no symmetry: it changes {changed}" if changed else "", worked]))


def noether(scheme: Scheme, states: State, claimed: bool, near: Near | None = None) -> list[Finding]:
    """One finding for each symmetry that the system names. A momentum map is claimed to be kept only if the symmetry is one near the path."""
    system = scheme.system
    eps, steps = float(np.finfo(system.dtype).eps), len(jax.tree.leaves(states.p)[0]) - 1
    generators = [symmetry.generators for symmetry in system.symmetries.values()]
    maps = evaluate(jax.vmap(lambda s: [_maps(system, each, s) for each in generators]), states)
    breakings = breaking(system, generators, neighbours(system, states) if near is None else near)
    findings = []
    for name, found, broken in zip(system.symmetries, maps, breakings, strict=True):
        law, words = f"momentum map {name!r}", f"largest change in {steps} steps over Σ|p ξ|"
        values, terms, locked = map(np.asarray, found)
        size = terms.max(0)
        if not (size > 1e3 * eps * locked.max(0)).any():
            findings.append(not_measured(law, "nothing moves along the symmetry; start from a state that does"))
            continue
        drift = float((np.abs(values - values[0]).max(0) / np.where(size > 0, size, 1.0)).max())
        limit = 1e-10 if system.dtype == np.float64 else 1e-4
        if any(np.isnan(broken)):
            findings.append(not_measured(law, "L, noise or constraint are not finite near the path, so invariance cannot be judged"))
            continue
        invariant = all(value <= limit for value in broken)
        unclaimed = "not claimed" if invariant else broken.words(limit)
        findings.append(at_most(law, drift, 1e3 * eps, claimed and invariant, words, unclaimed))
    return findings


def _maps(system: System, generators: tuple[Generator, ...], state: State) -> tuple[Array, Array, Array]:
    """J of each generator, Σ|p_i ξ_i|, and ⟨Mξ, ξ⟩, the momentum of moving along the symmetry at unit rate."""
    space = system.space
    p = space.flatten(state.p)
    rest = None if system.in_phase_space else space.flatten(system.momentum(state.q, space.zero(system.dtype)))

    def one(generator):
        along = generator(space, state.q)
        xi = space.flatten(along)
        if rest is None:  # moving along ξ may have no momentum of its own
            return p @ xi, jnp.abs(p) @ jnp.abs(xi), jnp.abs(xi) @ jnp.abs(xi)
        moving = space.flatten(system.momentum(state.q, along)) - rest
        return p @ xi, jnp.abs(p) @ jnp.abs(xi), jnp.abs(moving @ xi)

    values, terms, locked = zip(*map(one, generators), strict=True)
    return jnp.stack(values), jnp.stack(terms), jnp.stack(locked)


class Near(NamedTuple):
    """Random points and velocities near a path (momenta, where H stands for L), and, under constraints, points of the surface."""

    q: Point
    v: Velocity
    surface: Point


def neighbours(system: System, states: State) -> Near:
    """Half of the points as far from the path as it is long, half at a tenth: one scale alone would miss what the units hide."""
    space, dtype = system.space, system.dtype
    count = len(jax.tree.leaves(states.p)[0])
    places = jax.tree.map(lambda leaf: np.asarray(leaf)[np.linspace(0, count - 1, _PLACES).astype(int)], states)
    rng = np.random.default_rng(0)
    moves, turns = (rng.normal(size=(_PLACES, space.dim)).astype(dtype) for _ in range(2))

    def near(places: State, begin: Point) -> Near:
        away = jax.vmap(lambda q: space.gap(q, begin))(places.q)
        length = jnp.clip(jnp.max(jnp.abs(away)), 0.0, 1.0)
        reach = jnp.where(jnp.arange(_PLACES)[:, None] % 2 == 0, length, _FAR)
        q = jax.vmap(lambda q, e: space.move(q, space.unflatten(e)))(places.q, reach * moves)
        moving = (lambda q, p: p) if system.in_phase_space else system.velocity
        v = jax.vmap(lambda q, p: space.flatten(moving(q, p)))(places.q, places.p)
        speed = jnp.max(jnp.abs(v))
        speed = jnp.where(speed > 0, 0.3 * speed, _FAR)
        v = jax.vmap(lambda v, e: add(space.unflatten(v), space.unflatten(e)))(v, speed * turns)
        return Near(q, v, _surface(system, q, places.q) if system.constraints else places.q)

    return evaluate(near, places, jax.tree.map(lambda leaf: np.asarray(leaf)[0], states.q))


def _surface(system: System, q: Point, place: Point) -> Point:
    """The nearest points with g = 0, or the place on the path where none is found."""

    def one(q, place):
        point, root = nearest_point(system, q, 0.0)
        return jax.tree.map(lambda a, b: jnp.where(root.converged, a, b), point, place)

    return jax.vmap(one)(q, place)


def breaking(system: System, symmetries: Sequence[tuple[Generator, ...]], near: Near) -> list[Breaking]:
    """What each symmetry, given by its generators, changes at its worst place; NaN if nothing is finite anywhere."""
    if system.in_phase_space:
        return [_breaking_in_phase_space(system, generators, near) for generators in symmetries]

    def one(q: Point, v: Velocity, surface: Point):
        changes, leaving, work = _changes(system, q, v), _leaving(system, surface), _work(system, q, v)
        worst = lambda ask, generators: jnp.max(jnp.stack([ask(generator) for generator in generators]), initial=0.0)
        return [Breaking(*(worst(ask, generators) for ask in (*changes, leaving, work))) for generators in symmetries]

    # Neighbours may lie outside the domain of a potential; those inside decide.
    worst = lambda value: float(np.nanmax(value)) if np.isfinite(value).any() else float("nan")
    return [Breaking(*(worst(np.asarray(value)) for value in found)) for found in evaluate(jax.vmap(one), *near)]


def _breaking_in_phase_space(system: System, generators: tuple[Generator, ...], near: Near) -> Breaking:
    """|{H, J}| and |{H_i, J}| over the size of the products they are made of; `near.v` are momenta here."""
    space, m = system.space, system.channels

    def one(q: Point, p: Velocity):
        maps = [lambda q, p, g=g: pair(p, g(space, q)) for g in generators]
        functions = [system.hamiltonian, *(lambda q, p, i=i: system.noise_hamiltonian(q, p)[i] for i in range(m))]
        size = lambda f: sum(jnp.sum(jnp.abs(space.flatten(part))) for part in field(space, f, q, p))
        ratio = lambda f, J: jnp.abs(bracket(space, f, J, q, p)) / jnp.maximum(size(f) * size(J), jnp.finfo(system.dtype).tiny)
        found = [jnp.max(jnp.stack([ratio(f, J) for J in maps])) for f in functions]
        worked = list(map(_work(system, q, system.velocity(q, p)), generators)) if system.has_impulses else []
        none = jnp.zeros((), system.dtype)
        return found[0], jnp.max(jnp.stack(found[1:]), initial=0.0) if m else none, jnp.max(jnp.stack(worked), initial=0.0) if worked else none

    found = evaluate(jax.vmap(one), near.q, near.v)
    H, noise, force = (float(np.nanmax(value)) if np.isfinite(value).any() else float("nan") for value in map(np.asarray, found))
    return Breaking(H, noise, 0.0, force)


# What a system feels at a place is the same for all symmetries, so it is found once and asked for each generator.


def _changes(system: System, q: Point, v: Velocity) -> tuple[Change, Change]:
    """|⟨dL, (ξ, δv)⟩| over the size of its terms and of L, and the same for each γ_i."""
    space = system.space
    at = lambda x: space.move(q, space.unflatten(x))
    zero, flat = jnp.zeros(space.dim, system.dtype), space.flatten(v)
    L, (felt_q, felt_v) = jax.value_and_grad(lambda x, u: system.lagrangian(at(x), space.unflatten(u)), argnums=(0, 1))(zero, flat)
    slopes, noise = jax.jacrev(lambda x: system.noise(at(x)))(zero), system.noise(q)

    def of_lagrangian(generator: Generator) -> Float[Array, ""]:
        xi, turn = space.flatten(generator(space, q)), space.flatten(carried(space, generator, q, v))
        return _relative(jnp.concatenate([felt_q * xi, felt_v * turn]), L)

    return of_lagrangian, lambda generator: jax.vmap(_relative)(slopes * space.flatten(generator(space, q)), noise)


def _leaving(system: System, q: Point) -> Change:
    """|G ξ| over the size of its terms: whether the symmetry leads off the surface g = 0."""
    return _along(system, q, jacobian(system, q, 0.0) if system.constraints else None)


def _work(system: System, q: Point, v: Velocity) -> Change:
    """|⟨F, ξ⟩| over the size of its terms, for every force."""
    space = system.space
    forces = [space.flatten(system.force(q, v))[None]] if system.pushed else []
    forces += [jax.vmap(space.flatten)(system.random_force(q, v))] if system.random_forces else []
    return _along(system, q, jnp.concatenate(forces) if forces else None)


def _along(system: System, q: Point, rows: Float[Array, "k n"] | None) -> Change:
    """|⟨row, ξ⟩| over the size of its terms, for every row."""
    if rows is None:
        return lambda generator: jnp.zeros(0, system.dtype)
    return lambda generator: jax.vmap(lambda row: _relative(row * system.space.flatten(generator(system.space, q)), 0.0))(rows)


def _relative(terms: Float[Array, " n"], value) -> Float[Array, ""]:
    size = jnp.sum(jnp.abs(terms)) + jnp.abs(value)
    return jnp.abs(jnp.sum(terms)) / jnp.where(size == 0, 1.0, size)


def carried(space: Space, generator: Generator, q: Point, v: Velocity) -> Velocity:
    """How v changes when the curve it belongs to is moved along a symmetry: d/ds of the velocity of the moved curve."""

    def velocity(s):
        there = space.move(q, generator(space, q), s)
        curve = lambda e: space.move(space.move(q, v, e), generator(space, space.move(q, v, e)), s)
        return jax.jvp(lambda e: space.subtract(curve(e), there), (jnp.zeros_like(s),), (jnp.ones_like(s),))[1]

    zero = jnp.zeros((), jax.tree.leaves(v)[0].dtype)
    return jax.jvp(velocity, (zero,), (jnp.ones_like(zero),))[1]
