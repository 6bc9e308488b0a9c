"""Where chains begin: spread over the domain, then led towards where ρ is large.

    q ← q ⊕ α dlog ρ,      α doubled where that raised log ρ, and quartered, the step undone, where it did not

A few dozen such steps bring starts from the far tails of ρ, where no step size would be right, to its bulk. Points of surfaces are drawn on them, or
brought there by the shortest way, and descend along them: dlog ρ without what is normal to the surface, Gᵀ(G Gᵀ)⁻¹G dlog ρ, and from q ⊕ α dlog ρ
to the nearest point of the surface. Without that a few chains in a hundred begin where no step of the others can be solved, and never move.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled
from bismut.errors import BismutError, DomainError
from bismut.mechanics import mechanical
from bismut.mechanics.constraint import nearest_point, project
from bismut.samplers.domain import checked_point
from bismut.samplers.target import Target
from bismut.spaces import Point, scale

_DESCENT = 40  # steps
_FIRST = 0.1  # length of the first one, for a force of any size
_TRIES = 5  # draws of starts that are to have a finite density
_NEAR = 1e-9  # how far off a surface a start may be


def spread_starts(target: Target, chains: int, seed: Any, start: Any = None) -> Point:
    """Where each chain begins; `start` gives the points instead."""
    domain = target.domain
    if start is not None:
        return _given(target, chains, start)
    q: Any = None
    good = np.zeros(chains, bool)
    for attempt in range(_TRIES):
        keys = jax.random.split(jax.random.key(int(np.random.SeedSequence([*seed, attempt]).generate_state(1)[0])), chains)
        drawn = jax.vmap(domain.random)(keys)
        try:
            drawn, U = _descended(target, drawn)
        except (TypeError, ValueError) as problem:
            if domain.constraint is None:
                raise
            raise BismutError(f"constraint(q) fails on {domain.space}: {str(problem).rstrip('.')}.") from problem
        fine = np.isfinite(np.asarray(U))
        new = ~good & fine
        q = drawn if q is None else jax.tree.map(lambda old, now, new=new: np.where(_across(new, now), now, old), q, drawn)
        good |= fine
        if good.all():
            return q
    if not good.any():
        raise DomainError(
            f"log_density is not finite, or no point of the surface was reached, at {chains} random points of the domain, {_TRIES} times over. "
            "Give start=, a point where it is finite for each chain, or one for all."
        )
    where = np.flatnonzero(good)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[where[np.arange(chains) % len(where)]], q)


def _given(target: Target, chains: int, start: Any) -> Point:
    domain = target.domain
    batch = checked_point(domain, start, "start")
    if batch not in ((), (chains,)):
        raise DomainError(f"start holds points with leading axes {batch}, but there are {chains} chains. Give one point, or one for each chain.")
    x = jax.tree.map(lambda leaf: np.array(np.broadcast_to(leaf, (chains, *np.shape(leaf)[len(batch) :])), float), start, is_leaf=_is_numbers)
    q = jax.vmap(domain.coordinates)(x)
    again = jax.vmap(domain.point)(q)
    off = max(float(np.max(np.abs(np.asarray(a) - b) / (1 + np.abs(b)))) for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(x), strict=True))
    if not off < _NEAR:
        raise DomainError(f"start holds points that are none of {domain.title}: the nearest ones are off by {off:.2g}.")
    if domain.constraint is not None:
        off = float(np.abs(jax.vmap(domain.constraint)(q)).max())
        if off > _NEAR:
            raise DomainError(f"start lies off the surface: |g| is {off:.3g}. Give points with g = 0, or omit start= to have them found.")
    if not np.isfinite(np.asarray(_density(target, q))).all():
        raise DomainError("log_density is not finite at the start. Give start= where it is, or omit it to have points found.")
    return q


def _is_numbers(value):
    """Whether a value is one array, though written as a list."""
    return not isinstance(value, dict | tuple)


def _across(mask, leaf):
    return np.reshape(mask, (-1, *[1] * (np.ndim(leaf) - 1)))


@compiled
def _density(target: Target, q: Point) -> Any:
    return jax.vmap(target.log_density)(q)


@compiled
def _descended(target: Target, q: Point) -> tuple[Point, Any]:
    return jax.vmap(lambda one: _descend(target, one))(q)


def _descend(target: Target, q: Point) -> tuple[Point, Any]:
    """Where a descent from q leads, and U there: ∞ if no point of the surface was reached, or none where ρ and its slope are numbers."""
    space = target.domain.space
    system = None if target.domain.constraint is None else mechanical(space, constraint=target.domain.constraint)

    def better(_, carry):
        q, U, force, alpha = carry
        tried, sound = space.move(q, scale(alpha, force)), True
        if system is not None:
            tried, root = nearest_point(system, tried, 0.0)
            sound = root.converged & (jnp.max(jnp.abs(system.constraint(tried))) < _NEAR)
        lower, steeper = target.potential(tried)
        if system is not None:
            steeper, root = project(system, tried, steeper, 0.0)
            sound = sound & root.converged
        size = jnp.linalg.norm(space.flatten(steeper))
        good = (lower < U) & jnp.isfinite(size) & sound
        keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)
        further = jnp.where(jnp.isfinite(U), 2 * alpha, _FIRST / (1 + size))
        return (*keep((tried, lower, steeper), (q, U, force)), jnp.where(good, further, alpha / 4))

    nowhere = (q, jnp.full((), jnp.inf), space.zero(), jnp.zeros(()))  # the first step only reaches the surface, so that all are one program
    return jax.lax.fori_loop(0, _DESCENT + 1, better, nowhere)[:2]
