"""Holonomic constraints g(q, t) = 0 and their hidden half, G(q) v + ∂g/∂t = 0.

    Gᵀλ = d⟨λ, g⟩,        p ← p + Gᵀλ   with   G v(q, p + Gᵀλ) + ∂g/∂t = 0,        q ← q ⊕ v   with   M v = Gᵀλ,  g(q ⊕ v) = 0

The momenta that belong to motion on the surface are those with G v = −∂g/∂t, which is 0 unless the surface moves; the second formula is the
projection onto them, orthogonal in the kinetic energy, the third brings a nearby point to the surface by the shortest way in the same sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DegenerateError, DomainError
from bismut.mechanics import newton
from bismut.mechanics.directional import along
from bismut.mechanics.kkt import Sparsity, kkt_layout
from bismut.mechanics.newton import Root
from bismut.mechanics.state import State, over_batch
from bismut.mechanics.validation import PROBE_TIMES
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Velocity
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.mechanics.system import System

TOLERANCE = 1e-9  # how far off the surface a start may lie; a step brings it to round-off


def covector(system: System, q: Point, multipliers: Float[Array, " k"], t) -> Float[Array, " n"]:
    """Gᵀλ as one vector."""
    space = system.space
    weighted = lambda e: system.constraint(space.nudge(q, e), t) @ multipliers
    return space.flatten(jax.grad(weighted)(space.zero(system.dtype)))


def rate(system: System, q: Point, v: Velocity, t) -> Float[Array, " k"]:
    """G v + ∂g/∂t, how fast the constraints are being left."""
    space = system.space
    leaving = along(lambda e: system.constraint(space.nudge(q, e), t), (space.zero(system.dtype),), (v,), system.constraint_has_jvp)
    return leaving + speed(system, q, t) if system.moving_constraint else leaving


def speed(system: System, q: Point, t) -> Float[Array, " k"]:
    """∂g/∂t, how fast the surface moves."""
    t = jnp.asarray(t, system.dtype)
    return along(lambda t: system.constraint(q, t), (t,), (jnp.ones_like(t),), system.constraint_has_jvp)


def work(system: System, q: Point, multipliers: Float[Array, " k"], t) -> Float[Array, ""]:
    """⟨Gᵀλ, v⟩ = −λ·∂g/∂t, the work that an impulse of a moving surface does; a surface at rest does none."""
    return -multipliers @ speed(system, q, t)


def project(system: System, q: Point, p: Velocity, t) -> tuple[Velocity, Root]:
    """The momentum projected onto the tangent space of the constraints, and the solve, for (v, λ).

    Where every body has a constant mass of its own and the multipliers form a band, only they are solved for, G M⁻¹(p + Gᵀλ) + ∂g/∂t = 0: a third of
    the operations of the whole system. Few multipliers keep to that: their bits are published.
    """
    space, target, n = system.space, system.space.flatten(p), system.space.dim
    layout = kkt_layout(system.cells, system.constraint_sparsity)
    if system.decouples and not layout.band.full:
        pushed = lambda multipliers: space.unflatten(target + covector(system, q, multipliers, t))
        motion = lambda multipliers: system.velocity(q, pushed(multipliers), t)
        guess = jnp.zeros(system.constraints, system.dtype)
        root = newton.solve(lambda multipliers: rate(system, q, motion(multipliers), t), guess, layout.band, linear=True)
        return pushed(root.x), root._replace(x=jnp.concatenate([space.flatten(motion(root.x)), root.x]))

    def residual(x):
        v = space.unflatten(x[:n])
        gap = space.flatten(system.momentum(q, v, t)) - target - covector(system, q, x[n:], t)
        return jnp.concatenate([gap, rate(system, q, v, t)])

    guess = jnp.zeros(n + system.constraints, system.dtype)
    root = newton.solve(residual, guess, layout, linear=system.quadratic)
    return space.unflatten(target + covector(system, q, root.x[n:], t)), root


def nearest_point(system: System, q: Point, t) -> tuple[Point, Root]:
    """The point with g = 0 reached from q along M v = Gᵀλ."""
    space, n = system.space, system.space.dim
    at_rest = space.flatten(system.momentum(q, space.zero(system.dtype), t))

    def residual(x):
        v = space.unflatten(x[:n])
        pull = space.flatten(system.momentum(q, v, t)) - at_rest - covector(system, q, x[n:], t)
        return jnp.concatenate([pull, system.constraint(space.move(q, v), t)])

    layout = kkt_layout(system.cells, system.constraint_sparsity)
    root = newton.solve(residual, jnp.zeros(n + system.constraints, system.dtype), layout, linear=False, floor=1e-15)
    return space.move(q, space.unflatten(root.x[:n])), root


def jacobian(system: System, q: Point, t) -> Float[Array, "k n"]:
    """G as a matrix."""
    return jax.vmap(lambda row: covector(system, q, row, t))(jnp.eye(system.constraints, dtype=system.dtype))


def check_independent(system: System, q: Point, t) -> None:
    """Refuse a point where the constraints do not determine their multipliers; name the rows."""
    slopes = evaluate(lambda q: jacobian(system, q, t), q)
    if traced(slopes):
        return
    G = np.asarray(slopes)
    if not np.isfinite(G).all():
        rows = _rows(np.flatnonzero(~np.isfinite(G).all(1)))
        raise DegenerateError(f"The gradient of constraint {rows} is not finite at the start. A norm has none at 0: constrain |x|² instead of |x|.")
    norms = np.linalg.norm(G, axis=1)
    largest = norms.max(initial=0.0)
    if (norms <= 1e-10 * max(largest, 1e-300)).any() or largest == 0:
        rows = _rows(np.flatnonzero(norms <= 1e-10 * max(largest, 1e-300)))
        raise DegenerateError(f"The gradient of constraint {rows} vanishes at the start, so it constrains nothing there. Write it so that ∇g ≠ 0.")
    if _well_apart(G / norms[:, None]):
        return
    combination, values, _ = np.linalg.svd(G / norms[:, None])
    if len(values) < len(norms) or values[-1] < 1e-8:
        weights = combination[:, -1]
        rows = np.flatnonzero(np.abs(weights) > 1e-6)
        formula = " ".join(f"{weights[i]:+.2g}∇g[{i}]/|∇g[{i}]|" for i in rows[:6]) + (" ..." if len(rows) > 6 else "")
        raise DegenerateError(f"The constraints {_rows(rows)} depend on each other at the start: {formula} = 0. Remove the redundant one.")


def _well_apart(rows: np.ndarray) -> bool:
    """Whether unit rows are evidently independent: 1/σ² ≤ tr (R Rᵀ)⁻¹ for their smallest singular value σ. (Singular values of 1000 take 8 s.)"""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(rows @ rows.T))
    except np.linalg.LinAlgError:
        return False
    return bool(np.sum(inverse**2) < 1e10)  # σ > 1e-5, which the squares of double precision resolve


def check_start(system: System, state: State, batch: tuple[int, ...], t) -> None:
    """Refuse states that are off the surface or leaving it, at the time of the start."""
    if traced(state, t, system.parameters, system.constraint(jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], state.q), t)):
        return
    first = jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], state)
    check_independent(system, first.q, t)
    allowed = TOLERANCE if system.dtype == np.float64 else 1e-4
    size = 1 + max(float(np.abs(np.asarray(leaf)).max()) for leaf in jax.tree.leaves(state))
    for name, function, message in (
        ("g(q)", lambda q, p: system.constraint(q, t), "The start lies off the constraints"),
        ("G v", lambda q, p: rate(system, q, system.velocity(q, p, t), t), "The start velocity leads off the constraints"),
    ):
        values = np.abs(np.asarray(evaluate(over_batch(function, batch), state.q, state.p))).reshape(-1, system.constraints).max(0)
        if not (values <= allowed * size).all():
            worst = int(np.argmax(np.where(np.isnan(values), np.inf, values)))
            raise DomainError(f"{message}: |{name}| is {values[worst]:.3g} in row {worst}. scheme.start(..., project=True) brings it onto them.")


def sparsity(system: System) -> Sparsity:
    """Which components of a velocity each constraint depends on: those that, replaced by NaN, make it NaN.

    Where parameters are traced, other numbers stand in for them; where the constraint closes over something traced, it may depend on everything.
    """
    stand_in = jax.tree.map(lambda leaf: np.linspace(0.5, 1.5, leaf.size, dtype=leaf.dtype).reshape(leaf.shape), system.parameters)
    system = system.with_parameters(stand_in) if traced(system.parameters) else system
    patterns = [_pattern(system.at(t)) for t in (PROBE_TIMES if system.moving_constraint else PROBE_TIMES[:1])]
    known = [pattern for pattern in patterns if pattern is not None]
    if len(known) < len(patterns):
        return (tuple(range(system.space.dim)),) * system.constraints
    return tuple(tuple(map(int, np.flatnonzero(row))) for row in np.any(known, axis=0))


def _pattern(system: System) -> np.ndarray | None:
    """Whether a constraint (row) depends on a component (column); None where that depends on something traced."""
    space = system.space

    def nan_and_slope():
        somewhere = space.unflatten(jnp.asarray(0.3 * np.random.default_rng(0).normal(size=space.dim), system.dtype))
        q, place = space.move(space.origin(system.dtype), somewhere), jnp.arange(space.dim)
        poisoned = lambda c: system.constraint(space.nudge(q, space.unflatten(jnp.where(place == c, jnp.nan, 0.0))))
        return jnp.isnan(jax.vmap(poisoned)(place)).T, jacobian(system, q, None)

    missing, slope = evaluate(nan_and_slope)
    # A comparison with NaN can hide a branch, so a derivative that is not zero counts as well.
    return None if traced(missing, slope) else np.asarray(missing) | (np.asarray(slope) != 0)


def _rows(indices) -> str:
    return ", ".join(f"g[{i}]" for i in indices[:8]) + (" ..." if len(indices) > 8 else "")
