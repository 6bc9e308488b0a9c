"""The step that follows from an action.

    solve   p0 = −D₁S_d(q0, q0 ⊕ h v) − f⁻   for v,      then   q1 = q0 ⊕ h v,   p1 = D₂S_d(q0, q1) + f⁺

Under constraints g(q, t) = 0 the nodes carry multipliers (increments, of size √h), and the new momentum is projected:

    solve   p0 + G(q0)ᵀΛ = −D₁S_d − f⁻,   g(q1, t1) = 0   for v and Λ,      then   p1 ← p1 + G(q1)ᵀΛ′   with   G(q1) v(q1, p1) + ∂g/∂t = 0

A surface that moves does the work −Λ·∂g/∂t, which goes into the ledger. For the trapezoid action this is RATTLE. The unknown is the velocity. How the
equation is solved is found out from the action itself, by asking what its derivatives depend on:

    linear     ∂(residual)/∂v does not depend on v: one correction is exact (explicit schemes on ℝⁿ end here)
    cells      the potential part of −D₁S does not depend on v: only T couples components, and it falls into cells
    Newton     otherwise, on all components at once
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bismut.actions.action import Action
from bismut.flows.books import of_action
from bismut.flows.legendre import Impulses, driven, free_momenta, momenta, seen
from bismut.mechanics import State, System, newton
from bismut.mechanics.constraint import covector, project, work
from bismut.mechanics.dependence import affine, depends
from bismut.mechanics.newton import Cells, Layout
from bismut.mechanics.saddle import Saddle, saddle
from bismut.precision import cast
from bismut.spaces import Point, Velocity, add
from bismut.tracing import without_numbers

_NEAR = 0.5  # displacement in one step (radians, on a group) up to which the velocity before it is the guess


class Solve(NamedTuple):
    """How the equation of one step was solved."""

    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]


class Structure(NamedTuple):
    """What is known of the equation of a step before any number is."""

    linear: bool
    cells: Cells
    constrained: Saddle | None = None

    @property
    def layout(self) -> Layout:
        return self.cells if self.constrained is None else self.constrained

    @property
    def words(self) -> str:
        blocks = " and ".join(f"{count} of size {size}" for count, size in self.cells.runs)
        text = f"{'linear, one exact correction' if self.linear else 'Newton'}; blocks: {blocks}"
        if self.constrained is None:
            return text
        band = self.constrained.band
        return f"{text}; multipliers: {len(band.order)}, {'dense' if band.full else f'banded with half-width {band.half}'}"


class Variational(eqx.Module):
    """The flow of an action."""

    scheme: Action
    books: bool = eqx.field(static=True, default=False)  # whether a ledger is kept here; a piece of a larger step leaves that to it

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory."""
        action, system = self.scheme, self.scheme.system
        before = seen(action, state.q, state.p, dW, t)
        if system.inert and not system.constraints and self._splits() and additive(action):
            new, solve = self._kick_and_drift(state, h, dW, t, before)
        else:
            new, solve = self._solve(state, h, dW, t, before)
        if self.books and state.ledger is not None:
            new = of_action(action, state, new, h, dW, t, before)
        return cast(new, system.dtype), solve

    def _kick_and_drift(self, state: State, h, dW, t, before) -> tuple[State, Solve]:
        """The step where S = S_T(v) + S_U(q0, q1): −D₁S_T(v) = p0 + D₁S_U is solved piece by piece, and p1 = D₂S_T + D₂S_U."""
        action, free = self.scheme, self.scheme.system.without_potential()
        impulses = Impulses(action, state.q, h, dW, t, before)
        push = impulses.at_start()
        p = state.p if push is None else add(state.p, push)
        q1, p1, residual, converged, iterations = free.apart(lambda piece, q, p: drift(action.on(piece), q, p, h, t), state.q, p)
        push = impulses.at_end(q1)
        p1 = p1 if push is None else add(p1, push)
        whole = lambda reduce, tree: reduce(jnp.stack([reduce(leaf) for leaf in jax.tree.leaves(tree)]))
        return State(q1, p1, state.ledger), Solve(whole(jnp.max, residual), whole(jnp.all, converged), whole(jnp.max, iterations))

    def _solve(self, state: State, h, dW, t, before) -> tuple[State, Solve]:
        """The step as one equation for all of v, and of the multipliers."""
        action, system = self.scheme, self.scheme.system
        space, n = action.space, action.space.dim
        target = space.flatten(state.p)

        def both(x):
            v = space.unflatten(x[:n])
            q1 = space.move(state.q, v, h)
            p0, p1 = momenta(action, state.q, q1, v, h, dW, t, before)
            short = space.flatten(p0) - target
            if system.constraints:
                short = jnp.concatenate([short - covector(system, state.q, x[n:], t), system.constraint(q1, t + h)])
            return short, q1, p1

        both = jax.jit(both, inline=True)  # looked at twice, traced once
        structure = self.structure()
        guess = jnp.concatenate([_guess(system, state.q, state.p, h, t, structure.linear), jnp.zeros(system.constraints, system.dtype)])
        root = newton.solve(lambda x: both(x)[0], guess, structure.layout, structure.linear, _floor(system, state.q, h))
        residual, q1, p1 = both(root.x)
        converged, ledger = root.converged, state.ledger
        if system.constraints:
            p1, projection = project(system, q1, p1, t + h)
            converged = converged & projection.converged
            if system.moving_constraint and ledger is not None:
                done = work(system, state.q, root.x[n:], t) + work(system, q1, projection.x[n:], t + h)
                ledger = eqx.tree_at(lambda ledger: ledger.work, ledger, ledger.work + done)
        return State(q1, p1, ledger), Solve(jnp.max(jnp.abs(residual)), converged, root.iterations)

    @without_numbers
    def structure(self) -> Structure:
        """How the step equation can be solved, read off its jaxpr."""
        action, system = self.scheme, self.scheme.system
        space, dtype = action.space, system.dtype
        x, q, one = jnp.zeros(space.dim, dtype), space.origin(dtype), jnp.ones((), dtype)
        dW = jnp.zeros(action.channels, dtype)
        before = seen(action, q, space.zero(dtype), dW, one)

        def residual(x):
            v = space.unflatten(x)
            q1 = space.move(q, v, one)
            return space.flatten(momenta(action, q, q1, v, one, dW, one, before)[0]), system.constraint(q1, one)

        linear = affine(residual, x)
        cells = system.step_cells if self._splits() else newton.dense(space.dim)
        return Structure(linear, cells, saddle(cells, system.touches) if system.constraints else None)

    def _splits(self) -> bool:
        """Whether only T couples components of v in the equation, in its cells."""
        action, system = self.scheme, self.scheme.system
        return system.separable and (action.explicit_force or not system.force_sees_velocity) and self._potential_is_explicit()

    @without_numbers
    def _potential_is_explicit(self) -> bool:
        """Whether the part S_U of the action that holds potential, noise and the work of forces leaves the equation alone: it is free of v, and
        ∂S_U/∂q0 free of q1."""
        action, system = self.scheme, self.scheme.system
        space, dtype = action.space, system.dtype
        zero, q, one = space.zero(dtype), space.origin(dtype), jnp.ones((), dtype)
        dW = jnp.zeros(action.channels, dtype)
        L = system.without_kinetic_energy().lagrangian

        before = seen(action, q, zero, dW, one)

        def S(q0, q1, v):
            worked = driven(action, *jax.lax.stop_gradient((q0, q1, v)), one, dW, one, before, L)
            return action(*worked, q0, q1, v, one, dW, one)

        return not depends(lambda v: S(q, q, v), zero) and not depends(lambda q1: jax.grad(S)(q, q1, zero), q)


def drift(action: Action, q: Point, p: Velocity, h, t) -> tuple[Point, Velocity, Any, Any, Any]:
    """The step of a piece that moves freely, L = T(v): (q1, p1), and how it was solved."""
    system, space = action.system, action.space
    target = space.flatten(p)

    def both(x):
        p0, p1 = free_momenta(action, q, space.unflatten(x), h, t)
        return space.flatten(p0) - target, p1

    both = jax.jit(both, inline=True)  # looked at three times, traced once
    residual = lambda x: both(x)[0]
    linear = affine(residual, jnp.zeros(space.dim, system.dtype))
    root = newton.solve(residual, _guess(system, q, p, h, t, linear), system.step_cells, linear, _floor(system, q, h))
    short, p1 = both(root.x)
    return space.move(q, space.unflatten(root.x), h), p1, jnp.max(jnp.abs(short)), root.converged, root.iterations


@without_numbers
def additive(action: Action) -> bool:
    """Whether S_d is evidently a sum over the places where it looks at L, so that a sum of Lagrangians is a sum of actions."""
    system, space = action.system, action.space
    q, zero, one, dW = space.origin(system.dtype), space.zero(system.dtype), jnp.ones((), system.dtype), jnp.zeros(action.channels, system.dtype)
    seen: list[None] = []

    def S(values):
        seen.clear()

        def L(q, v, t):
            seen.append(None)
            return values[len(seen) - 1] if values is not None else one

        return action(L, lambda q, t: dW, q, q, zero, one, dW, one)

    jax.eval_shape(lambda: S(None))
    return bool(seen) and affine(S, jnp.ones(len(seen), system.dtype))


def _guess(system: System, q: Point, p: Velocity, h, t, linear: bool) -> Float[Array, " n"]:
    """Where the momentum gives a velocity by a linear map, it is O(h) away from the one sought, and a better guess than rest; but not where it leads
    far, as about an axis with hardly any inertia."""
    rest = jnp.zeros(system.space.dim, system.dtype)
    if linear or not system.separable:
        return rest
    near = jax.lax.stop_gradient(system.space.flatten(system.velocity(q, p, t)))
    return jnp.where(jnp.abs(h) * jnp.max(jnp.abs(near)) < _NEAR, near, rest)


def _floor(system: System, q: Point, h) -> Float[Array, ""]:
    """A correction that moves no coordinate of q1 by more than a few units in the last place is round-off."""
    reach = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(q)]))
    return 16 * jnp.finfo(system.dtype).eps * reach / jnp.abs(h)
