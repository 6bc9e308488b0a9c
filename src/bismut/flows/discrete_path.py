"""Whole discrete paths: the action sum, its differential, and the discrete Euler–Lagrange equations.

    𝔊(q_0, ..., q_N) = Σ_k S_d(q_k, q_{k+1}),      d𝔊·δq = Σ_k (D₂S_d(q_{k−1}, q_k) + D₁S_d(q_k, q_{k+1}))·δq_k

A path is a solution exactly when d𝔊 vanishes at every inner point, or under constraints is normal to the surface there, a multiple Gᵀ Λ_k of its
gradients: this is the variational principle, and `action_differential` shows it.
With a force the virtual work of its impulses is included (the discrete Lagrange–d'Alembert principle).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.errors import BismutError
from bismut.flows.flow import flow
from bismut.flows.legendre import discrete_lagrangian, explicit_velocities, momenta
from bismut.mechanics import State
from bismut.mechanics.scheme import required_time
from bismut.programs.evaluation import evaluate, numpy_eager
from bismut.spaces import Point, Velocity, scale


@numpy_eager
def end_momenta(
    action: Action, q0: Point, q1: Point, h, dW: Float[Array, " m"], t: Any = None, *, p: Velocity | None = None
) -> tuple[Velocity, Velocity]:
    """The discrete Legendre transforms (p0, p1) = (−D₁S_d − f⁻, D₂S_d + f⁺) of one step.

    p  the momentum before the step; needed only where a force is explicit and depends on its velocity, as in VariationalEuler
    """
    if p is None and action.explicit_force and action.system.force_sees_velocity:
        raise BismutError(
            f"{type(action).__name__} evaluates a force with the velocity of the momentum before the step, which two points do not show. "
            "Give it as p=, or use Midpoint or Verlet for paths of a forced system."
        )
    t, v = required_time(action, t), scale(1 / h, action.space.subtract(q1, q0))
    return momenta(action, q0, q1, v, h, dW, t, None if p is None else explicit_velocities(action, q0, p, dW, t))


@numpy_eager
def noether_momenta(action: Action, name: str, q0: Point, q1: Point, h, dW, t: Any = None) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """J⁻ = ⟨−D₁S_d, ξ_Q(q0)⟩ and J⁺ = ⟨D₂S_d, ξ_Q(q1)⟩; equal when S_d is invariant."""
    p0, p1 = end_momenta(action, q0, q1, h, dW, t)
    system = action.system
    return system.momentum_map(name, State(q0, p0)), system.momentum_map(name, State(q1, p1))


@numpy_eager
def discrete_symplectic_form(action: Action, q0: Point, q1: Point, h, dW, t: Any = None) -> Float[Array, "n n"]:
    """The matrix M = −D₂D₁S_d = ∂p0/∂q1 in the frames at both ends: Ω(δ, ε) = δ₀ᵀ M ε₁ − ε₀ᵀ M δ₁ for variations (δ₀, δ₁), (ε₀, ε₁) of the ends."""
    space, dtype = action.space, action.system.dtype

    def left(e1):
        return space.flatten(end_momenta(action, q0, space.move(q1, space.unflatten(e1)), h, dW, t)[0])

    return jax.jacfwd(left)(jnp.zeros(space.dim, dtype))


@numpy_eager
def action_sum(action: Action, path: Point, h, dW: Float[Array, "steps m"], t0: Any = None) -> Float[Array, ""]:
    """𝔊 = Σ_k S_d(q_k, q_{k+1}; h, ΔW_k), the action of a path.

    path  points q_0 ... q_N, time along the first axis of each array
    dW    increments, one row per step
    """
    before, after, dW, times = _steps(path, h, dW, required_time(action, t0))

    def one(q0, q1, w, t):
        return discrete_lagrangian(action, q0, q1, scale(1 / h, action.space.subtract(q1, q0)), h, w, t)

    return jnp.sum(jax.vmap(one)(before, after, dW, times))


def action_differential(
    action: Action, path: Point, h, dW: Float[Array, "steps m"], t0: Any = None, *, p: Velocity | None = None
) -> Float[Array, "inner n"]:
    """d𝔊 and the virtual work of forces at the inner points of a path, one row each: zero along a solution, and only there; under constraints normal
    to the surface, and only there.

    p  momenta along the path, for an explicit force that depends on their velocities; the rest as for action_sum
    """

    def ends(q0, q1, w, t, p):
        return tuple(map(action.space.flatten, end_momenta(action, q0, q1, h, w, t, p=p)))

    def slopes(path, dW, p):
        start = None if p is None else jax.tree.map(lambda leaf: leaf[:-1], p)
        left, right = jax.vmap(ends)(*_steps(path, h, dW, required_time(action, t0)), start)
        return right[:-1] - left[1:]

    return evaluate(slopes, path, dW, p)


def euler_lagrange(action: Action, q0: Point, q1: Point, h, dW: Float[Array, "steps m"], t0: Any = None) -> Point:
    """The two-step form: the path through q0 and q1 that solves D₂S_d(q_{k−1}, q_k) + D₁S_d(q_k, q_{k+1}) = 0.

    dW holds the increments of all steps; the first belongs to the step from q0 to q1. From the first step that cannot be solved, points are NaN.
    """
    stepper = flow(action)

    def advance(pair, driven):
        q, q_next = pair
        before, after, t = driven
        _, p = end_momenta(action, q, q_next, h, before, t)
        new, solve = stepper.advance(State(q_next, p), h, after, t + h)
        q = jax.tree.map(lambda leaf: jnp.where(solve.converged, leaf, jnp.nan), new.q)
        return (q_next, q), q

    times = required_time(action, t0) + h * jnp.arange(dW.shape[0] - 1)
    _, rest = jax.lax.scan(advance, (q0, q1), (dW[:-1], dW[1:], times))
    return jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[None], c]), q0, q1, rest)


def _steps(path: Point, h, dW, t0):
    before = jax.tree.map(lambda leaf: leaf[:-1], path)
    after = jax.tree.map(lambda leaf: leaf[1:], path)
    return before, after, dW, t0 + h * jnp.arange(dW.shape[0])
