"""The step that follows from an action.

    solve   p0 = −D₁S_d(q0, q0 ⊕ h v) − f⁻   for v,      then   q1 = q0 ⊕ h v,   p1 = D₂S_d(q0, q1) + f⁺

Under constraints g(q, t) = 0 the nodes carry multipliers (increments, of size √h), and the new momentum is projected:

    solve   p0 + G(q0)ᵀΛ = −D₁S_d − f⁻,   g(q1, t1) = 0   for v and Λ,      then   p1 ← p1 + G(q1)ᵀΛ′   with   G(q1) v(q1, p1) + ∂g/∂t = 0

A surface that moves does the work −Λ·∂g/∂t, which goes into the ledger. For the trapezoid action this is RATTLE. The unknown is the velocity. How the
equation is solved is read off the action itself, from what its derivatives depend on:

    linear     ∂(residual)/∂v does not depend on v: one correction is exact (explicit schemes on ℝⁿ end here)
    cells      the potential part of −D₁S does not depend on v: only T couples components, and it decouples into cells
    Newton     otherwise, on all components at once

Where S_d = S_T(v) + S_U(q0, q1), derivatives of potential and noise are taken once, outside Newton's loop, and what remains is free motion: one
equation for each factor of each body, which stops when it has converged, whatever the others do.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bismut.actions.action import Action
from bismut.flows.ledger import record_action_step
from bismut.flows.legendre import Impulses, driven, explicit_velocities, free_momenta, momenta
from bismut.mechanics import State, System, newton
from bismut.mechanics.constraint import covector, project, work
from bismut.mechanics.kkt import KKT, kkt_layout
from bismut.mechanics.newton import Cells, JacobianLayout
from bismut.mechanics.subsystems import free_motion, map_subsystems, potentials_only
from bismut.precision import cast
from bismut.programs.dependence import affine, depends
from bismut.spaces import Point, Velocity, add
from bismut.tracing import structural_query

_NEAR = 0.5  # displacement in one step (radians, on a group) up to which the velocity before it is the guess


class Solve(NamedTuple):
    """How the equation of one step was solved."""

    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]

    @classmethod
    def explicit(cls, dtype: Any) -> "Solve":
        """The outcome of a step that solves nothing."""
        return cls(jnp.zeros((), dtype), jnp.array(True), jnp.zeros((), int))

    @classmethod
    def worst(cls, solves: "list[Solve]") -> "Solve":
        """The outcome of several solves: the worst residual, all converged, all iterations."""
        if not solves:
            return cls.explicit(None)
        residual, converged, iterations = zip(*solves, strict=True)
        return cls(jnp.max(jnp.stack(residual)), jnp.all(jnp.stack(converged)), jnp.sum(jnp.stack(iterations)))


class StepEquation(NamedTuple):
    """What is known of the equation of a step before any number is."""

    linear: bool
    cells: Cells
    constrained: KKT | None = None

    @property
    def layout(self) -> JacobianLayout:
        return self.cells if self.constrained is None else self.constrained

    def describe(self) -> str:
        blocks = " and ".join(f"{count} of size {size}" for count, size in self.cells.runs)
        text = f"{'linear, one exact correction' if self.linear else 'Newton'}; blocks: {blocks}"
        if self.constrained is None:
            return text
        band = self.constrained.band
        return f"{text}; multipliers: {len(band.order)}, {'dense' if band.full else f'banded with half-width {band.half}'}"


class VariationalFlow(eqx.Module):
    """The flow of an action."""

    scheme: Action
    with_ledger: bool = eqx.field(static=True, default=False)  # whether entries are made here; a substep leaves them to the step it is part of

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory."""
        action, system = self.scheme, self.scheme.system
        explicit = explicit_velocities(action, state.q, state.p, dW, t)
        if system.constant_mass and not system.constraints and self._splits() and additive(action):
            new, solve = self._kick_and_drift(state, h, dW, t, explicit)
        else:
            new, solve = self._solve(state, h, dW, t, explicit)
        if self.with_ledger and state.ledger is not None:
            new = record_action_step(action, state, new, h, dW, t, explicit)
        return cast(new, system.dtype), solve

    def _kick_and_drift(self, state: State, h, dW, t, explicit) -> tuple[State, Solve]:
        """The step where S = S_T(v) + S_U(q0, q1): −D₁S_T(v) = p0 + D₁S_U is solved for each subsystem, and p1 = D₂S_T + D₂S_U."""
        action = self.scheme
        impulses = Impulses(action, state.q, h, dW, t, explicit)
        push = impulses.at_start()
        p = state.p if push is None else add(state.p, push)
        solve_one = lambda subsystem, q, p: drift(action.on(subsystem), q, p, h, t)
        q1, p1, residual, converged, iterations = map_subsystems(free_motion(action.system), solve_one, state.q, p)
        push = impulses.at_end(q1)
        p1 = p1 if push is None else add(p1, push)
        over_all = lambda reduce, tree: reduce(jnp.stack([reduce(leaf) for leaf in jax.tree.leaves(tree)]))
        return State(q1, p1, state.ledger), Solve(over_all(jnp.max, residual), over_all(jnp.all, converged), over_all(jnp.max, iterations))

    def _solve(self, state: State, h, dW, t, explicit) -> tuple[State, Solve]:
        """The step as one equation for all of v, and of the multipliers."""
        action, system = self.scheme, self.scheme.system
        space, n = action.space, action.space.dim
        target = space.flatten(state.p)

        def both(x):
            v = space.unflatten(x[:n])
            q1 = space.move(state.q, v, h)
            p0, p1 = momenta(action, state.q, q1, v, h, dW, t, explicit)
            gap = space.flatten(p0) - target
            if system.constraints:
                gap = jnp.concatenate([gap - covector(system, state.q, x[n:], t), system.constraint(q1, t + h)])
            return gap, q1, p1

        both = jax.jit(both, inline=True)  # evaluated twice, traced once
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

    @structural_query
    def structure(self) -> StepEquation:
        """How the step equation can be solved, read off its program."""
        action, system = self.scheme, self.scheme.system
        space, dtype = action.space, system.dtype
        x, q, one = jnp.zeros(space.dim, dtype), space.origin(dtype), jnp.ones((), dtype)
        dW = jnp.zeros(action.channels, dtype)
        explicit = explicit_velocities(action, q, space.zero(dtype), dW, one)

        def residual(x):
            v = space.unflatten(x)
            q1 = space.move(q, v, one)
            return space.flatten(momenta(action, q, q1, v, one, dW, one, explicit)[0]), system.constraint(q1, one)

        linear = affine(residual, x)
        cells = system.step_cells if self._splits() else newton.dense(space.dim)
        return StepEquation(linear, cells, kkt_layout(cells, system.constraint_sparsity) if system.constraints else None)

    def _splits(self) -> bool:
        """Whether only T couples components of v in the equation, in its cells."""
        action, system = self.scheme, self.scheme.system
        return system.separable and (action.explicit_force or not system.force_sees_velocity) and self._potential_is_explicit()

    @structural_query
    def _potential_is_explicit(self) -> bool:
        """Whether the part S_U of the action that holds potential, noise and the work of forces leaves the equation alone: it is free of v, and
        ∂S_U/∂q0 free of q1."""
        action, system = self.scheme, self.scheme.system
        space, dtype = action.space, system.dtype
        zero, q, one = space.zero(dtype), space.origin(dtype), jnp.ones((), dtype)
        dW = jnp.zeros(action.channels, dtype)
        L = potentials_only(system).lagrangian
        explicit = explicit_velocities(action, q, zero, dW, one)

        def S(q0, q1, v):
            worked = driven(action, *jax.lax.stop_gradient((q0, q1, v)), one, dW, one, explicit, L)
            return action(*worked, q0, q1, v, one, dW, one)

        return not depends(lambda v: S(q, q, v), zero) and not depends(lambda q1: jax.grad(S)(q, q1, zero), q)


def drift(action: Action, q: Point, p: Velocity, h, t) -> tuple[Point, Velocity, Any, Any, Any]:
    """The step of a subsystem that moves freely, L = T(v): (q1, p1), and how it was solved."""
    system, space = action.system, action.space
    target = space.flatten(p)

    def both(x):
        p0, p1 = free_momenta(action, q, space.unflatten(x), h, t)
        return space.flatten(p0) - target, p1

    both = jax.jit(both, inline=True)  # evaluated three times, traced once
    residual = lambda x: both(x)[0]
    linear = affine(residual, jnp.zeros(space.dim, system.dtype))
    root = newton.solve(residual, _guess(system, q, p, h, t, linear), system.step_cells, linear, _floor(system, q, h))
    gap, p1 = both(root.x)
    return space.move(q, space.unflatten(root.x), h), p1, jnp.max(jnp.abs(gap)), root.converged, root.iterations


@structural_query
def additive(action: Action) -> bool:
    """Whether S_d is evidently a sum over its evaluations of L, so that a sum of Lagrangians is a sum of actions."""
    system, space = action.system, action.space
    q, zero, one, dW = space.origin(system.dtype), space.zero(system.dtype), jnp.ones((), system.dtype), jnp.zeros(action.channels, system.dtype)
    evaluations = 0

    def S(values):
        nonlocal evaluations
        evaluations = 0

        def L(q, v, t):
            nonlocal evaluations
            evaluations += 1
            return values[evaluations - 1] if values is not None else one

        return action(L, lambda q, t: dW, q, q, zero, one, dW, one)

    jax.eval_shape(lambda: S(None))
    return evaluations > 0 and affine(S, jnp.ones(evaluations, system.dtype))


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
