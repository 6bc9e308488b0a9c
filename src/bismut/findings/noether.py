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
from bismut.findings.memory import evaluate
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.constraint import jacobian, nearest_point
from bismut.mechanics.hamiltonian import bracket, hamiltonian_field
from bismut.spaces import Point, Space, Velocity, add, pair

Generator = Callable[[Space, Point], Velocity]
Change = Callable[[Generator], Array]

_PLACES = 12  # along the path, each with one random neighbour
_FAR = 0.1  # how far neighbours are at least, in units of velocities: a path may stay where it began


class ProbePoints(NamedTuple):
    """Random points and velocities near a path (momenta, where H stands for L), and, under constraints, points of the surface."""

    q: Point
    v: Velocity
    surface: Point


class SymmetryDefect(NamedTuple):
    """Largest relative change under a symmetry, at any probe point, of the Lagrangian, the stochastic potentials and the constraints; and the largest
    relative work of forces, steady and random, along it."""

    lagrangian: Any
    noise: Any
    constraint: Any
    force: Any

    def text(self, limit: float) -> str:
        names = {"L": self.lagrangian, "the noise": self.noise, "the constraint": self.constraint}
        changed = " and ".join(f"{name} ({value:.1g})" for name, value in names.items() if not value <= limit)
        worked = "" if self.force <= limit else f"forces do work along it ({self.force:.1g})"
        return ", and ".join(filter(None, [f"no symmetry: it changes {changed}" if changed else "", worked]))


def momentum_maps(scheme: Scheme, states: State, t, claimed: bool, probes: ProbePoints | None = None) -> list[Finding]:
    """One finding for each symmetry that the system names. A momentum map is claimed to be kept only if the symmetry is one near the path."""
    system = scheme.system
    if not system.symmetries:
        return [not_measured("momentum maps", "the system names no symmetries")] if claimed else []
    if not system.moves:
        return [not_measured("momentum maps", "without a Lagrangian it is unknown whether a symmetry is one")]
    eps, steps = float(np.finfo(system.dtype).eps), len(jax.tree.leaves(states.p)[0]) - 1
    generators = [symmetry.generators for symmetry in system.symmetries.values()]
    maps = evaluate(jax.vmap(lambda s: [_maps(system, each, s, t) for each in generators]), states)
    defects = symmetry_defects(system, generators, probe_points(system, states, t) if probes is None else probes, t)
    findings = []
    for name, values_terms_locked, defect in zip(system.symmetries, maps, defects, strict=True):
        law, how = f"momentum map {name!r}", f"largest change in {steps} steps over Σ|p ξ|"
        values, terms, locked = map(np.asarray, values_terms_locked)
        size = terms.max(0)
        if not (size > 1e3 * eps * locked.max(0)).any():
            findings.append(not_measured(law, "nothing moves along the symmetry; start from a state that does"))
            continue
        if any(np.isnan(defect)):
            findings.append(not_measured(law, "L, noise or constraint are not finite near the path, so invariance cannot be judged"))
            continue
        drift = float((np.abs(values - values[0]).max(0) / np.where(size > 0, size, 1.0)).max())
        limit = 1e-10 if system.dtype == np.float64 else 1e-4
        invariant = all(value <= limit for value in defect)
        findings.append(at_most(law, drift, 1e3 * eps, claimed and invariant, how, "not claimed" if invariant else defect.text(limit)))
    return findings


def _maps(system: System, generators: tuple[Generator, ...], state: State, t) -> tuple[Array, Array, Array]:
    """J of each generator, Σ|p_i ξ_i|, and ⟨Mξ, ξ⟩, the momentum of moving along the symmetry at unit rate."""
    space = system.space
    p = space.flatten(state.p)
    rest = None if system.in_phase_space else space.flatten(system.momentum(state.q, space.zero(system.dtype), t))

    def one(generator):
        direction = generator(space, state.q)
        xi = space.flatten(direction)
        if rest is None:  # moving along ξ may have no momentum of its own
            return p @ xi, jnp.abs(p) @ jnp.abs(xi), jnp.abs(xi) @ jnp.abs(xi)
        moving = space.flatten(system.momentum(state.q, direction, t)) - rest
        return p @ xi, jnp.abs(p) @ jnp.abs(xi), jnp.abs(moving @ xi)

    values, terms, locked = zip(*map(one, generators), strict=True)
    return jnp.stack(values), jnp.stack(terms), jnp.stack(locked)


def probe_points(system: System, states: State, t) -> ProbePoints:
    """Half of the points as far from the path as it is long, half at a tenth: one scale alone would miss what the units hide."""
    space, dtype = system.space, system.dtype
    count = len(jax.tree.leaves(states.p)[0])
    places = jax.tree.map(lambda leaf: np.asarray(leaf)[np.linspace(0, count - 1, _PLACES).astype(int)], states)
    rng = np.random.default_rng(0)
    moves, turns = (rng.normal(size=(_PLACES, space.dim)).astype(dtype) for _ in range(2))

    def near(places: State, begin: Point) -> ProbePoints:
        away = jax.vmap(lambda q: space.gap(q, begin))(places.q)
        length = jnp.clip(jnp.max(jnp.abs(away)), 0.0, 1.0)
        reach = jnp.where(jnp.arange(_PLACES)[:, None] % 2 == 0, length, _FAR)
        q = jax.vmap(lambda q, e: space.move(q, space.unflatten(e)))(places.q, reach * moves)
        moving = (lambda q, p: p) if system.in_phase_space else (lambda q, p: system.velocity(q, p, t))
        v = jax.vmap(lambda q, p: space.flatten(moving(q, p)))(places.q, places.p)
        speed = jnp.max(jnp.abs(v))
        speed = jnp.where(speed > 0, 0.3 * speed, _FAR)
        v = jax.vmap(lambda v, e: add(space.unflatten(v), space.unflatten(e)))(v, speed * turns)
        return ProbePoints(q, v, _surface(system, q, places.q, t) if system.constraints else places.q)

    return evaluate(near, places, jax.tree.map(lambda leaf: np.asarray(leaf)[0], states.q))


def _surface(system: System, q: Point, place: Point, t) -> Point:
    """The nearest points with g = 0, or the place on the path where the search does not converge."""

    def one(q, place):
        point, root = nearest_point(system, q, t)
        return jax.tree.map(lambda a, b: jnp.where(root.converged, a, b), point, place)

    return jax.vmap(one)(q, place)


def symmetry_defects(system: System, symmetries: Sequence[tuple[Generator, ...]], probes: ProbePoints, t) -> list[SymmetryDefect]:
    """What each symmetry, given by its generators, changes at its worst point; NaN if nothing is finite anywhere."""
    measure = _in_phase_space if system.in_phase_space else _in_velocities
    # Probe points may lie outside the domain of a potential; those inside decide.
    worst = lambda value: float(np.nanmax(value)) if np.isfinite(value).any() else float("nan")
    defects = evaluate(jax.vmap(lambda *point: measure(system, symmetries, t, *point)), *probes)
    return [SymmetryDefect(*(worst(np.asarray(value)) for value in defect)) for defect in defects]


def _worst(values: Sequence[Any], dtype: Any):
    return jnp.max(jnp.stack(values), initial=0.0) if values else jnp.zeros((), dtype)


def _in_velocities(system: System, symmetries: Sequence[tuple[Generator, ...]], t, q: Point, v: Velocity, surface: Point) -> list[SymmetryDefect]:
    # The derivatives at a point are the same for all symmetries, so they are evaluated once and contracted with each generator.
    changes = (*_changes(system, q, v, t), _leaving(system, surface, t), _work(system, q, v, t))
    return [SymmetryDefect(*(_worst([change(g) for g in generators], system.dtype) for change in changes)) for generators in symmetries]


def _in_phase_space(system: System, symmetries: Sequence[tuple[Generator, ...]], t, q: Point, p: Velocity, surface: Point) -> list[SymmetryDefect]:
    """|{H, J}| and |{H_i, J}| over the size of the products in them."""
    del surface
    space, tiny = system.space, jnp.finfo(system.dtype).tiny
    H, *noises = (
        lambda q, p: system.hamiltonian(q, p, t),
        *(lambda q, p, i=i: system.noise_hamiltonian(q, p, t)[i] for i in range(system.channels)),
    )
    size = lambda f: sum(jnp.sum(jnp.abs(space.flatten(part))) for part in hamiltonian_field(space, f, q, p))

    def ratio(f, generator):
        J = lambda q, p: pair(p, generator(space, q))
        return jnp.abs(bracket(space, f, J, q, p)) / jnp.maximum(size(f) * size(J), tiny)

    def one(generators):
        worst = lambda functions: _worst([ratio(f, g) for f in functions for g in generators], system.dtype)
        work = list(map(_work(system, q, system.velocity(q, p, t), t), generators)) if system.has_impulses else []
        return SymmetryDefect(worst([H]), worst(noises), jnp.zeros((), system.dtype), _worst(work, system.dtype))

    return list(map(one, symmetries))


def _changes(system: System, q: Point, v: Velocity, t) -> tuple[Change, Change]:
    """|⟨dL, (ξ, δv)⟩| over the size of its terms and of L, and the same for each γ_i."""
    space = system.space
    at = lambda x: space.move(q, space.unflatten(x))
    zero, flat = jnp.zeros(space.dim, system.dtype), space.flatten(v)
    L, (L_q, L_v) = jax.value_and_grad(lambda x, u: system.lagrangian(at(x), space.unflatten(u), t), argnums=(0, 1))(zero, flat)
    slopes, noise = jax.jacrev(lambda x: system.noise(at(x), t))(zero), system.noise(q, t)

    def of_lagrangian(generator: Generator) -> Float[Array, ""]:
        xi, turn = space.flatten(generator(space, q)), space.flatten(carried(space, generator, q, v))
        return _relative(jnp.concatenate([L_q * xi, L_v * turn]), L)

    return of_lagrangian, lambda generator: jax.vmap(_relative)(slopes * space.flatten(generator(space, q)), noise)


def _leaving(system: System, q: Point, t) -> Change:
    """|G ξ| over the size of its terms: whether the symmetry leads off the surface g = 0."""
    return _contracted(system, q, jacobian(system, q, t) if system.constraints else None)


def _work(system: System, q: Point, v: Velocity, t) -> Change:
    """|⟨F, ξ⟩| over the size of its terms, for every force."""
    space = system.space
    forces = [space.flatten(system.force(q, v, t))[None]] if system.pushed else []
    forces += [jax.vmap(space.flatten)(system.random_force(q, v, t))] if system.random_forces else []
    return _contracted(system, q, jnp.concatenate(forces) if forces else None)


def _contracted(system: System, q: Point, rows: Float[Array, "k n"] | None) -> Change:
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
