"""Is one step symplectic? Does it keep momentum maps, phase volume, and after reduction the bracket?

    TᵀΩ₁T = Ω₀,      Ω = ⟨δp₂, η₁⟩ − ⟨δp₁, η₂⟩ + ⟨p, [η₁, η₂]⟩        in the frame of velocities at a state
    T B₀ Tᵀ = B₁,    B_ij(z) = {z_i, z_j},   z = (a, μ)               after reduction: a Poisson map, symplectic on each orbit

T is the tangent map of a step, from the frame at z0 to that at z1. On a space without a group structure the bracket is that of the frame, obtained by
differentiation. Under constraints phase space is T*{g = 0}: both sides are compared on a basis of the directions that keep g(q) = 0 and
G(q) v(q, p) = 0. After reduction by symmetry there is no symplectic form on all of (a, μ), but a bracket, which degenerates along Casimirs.

T has a column for each direction, and each carries all pairs of bodies: memory grows as the cube of their number. Beyond a hundred degrees of freedom
Ω(Tu, Tv) = Ω(u, v) is measured along a few pairs of random directions instead, which no defect is orthogonal to; the volume is then not measured.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from bismut.findings.memory import evaluate
from bismut.flows import flow
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import rate
from bismut.mechanics.scheme import required_time
from bismut.spaces import Space, poisson_tensor

LARGEST = 100  # degrees of freedom up to which T is written out
_PAIRS = 4  # of random directions beyond

Scalar = Float[Array, ""]


def symplectic_form(space: Space, state: State) -> Float[Array, "z z"]:
    """The matrix of Ω at a state, positions before momenta."""
    one = jnp.eye(space.dim, dtype=_dtype(state))
    return jnp.block([[space.bracket_form(state.q, state.p), one], [-one, jnp.zeros_like(one)]])


def symplectic_defect(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=None) -> Scalar:
    """max |TᵀΩ₁T − Ω₀| of one step from `state`, with T its Jacobian: round-off for a symplectic scheme. `dW` are the increments of the step, `t` its
    time, which may be omitted where nothing depends on it."""
    return step_structure(scheme, state, h, dW, required_time(scheme, t))[0]


def volume_factor(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t) -> Scalar:
    """The factor by which one step multiplies phase volume."""
    return step_structure(scheme, state, h, dW, t)[1]


def tangent_map(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t) -> tuple[Float[Array, "z z"], State]:
    """The derivative of one step in local coordinates, and the state it leads to."""
    step, z = _local_step(scheme, state, h, dW, t)
    return jax.jacfwd(step, has_aux=True)(z)


def _local_step(scheme: Scheme, state: State, h, dW, t):
    """One step in local coordinates, with the state it leads to, and the coordinates of the first state."""
    space, stepper = scheme.space, flow(scheme)

    def step(z):
        new, _ = stepper.advance(_at(space, state, z), h, dW, t)
        return jnp.concatenate([space.flatten(space.subtract(new.q, jax.lax.stop_gradient(new.q))), space.flatten(new.p)]), new

    return step, _coordinates(space, state)


def _coordinates(space: Space, state: State):
    """Local coordinates of a state in its own frame: zero for the position, then the momentum."""
    return jnp.concatenate([jnp.zeros(space.dim, _dtype(state)), space.flatten(state.p)])


def _at(space: Space, state: State, z) -> State:
    """The state with local coordinates z about another."""
    return State(space.move(state.q, space.unflatten(z[: space.dim])), space.unflatten(z[space.dim :]))


def step_structure(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t) -> tuple[Scalar, Scalar, Scalar]:
    """Symplectic defect and volume factor from one tangent map, and the size of the numbers in them, by which round-off is measured."""

    def structure(state: State):
        T, end = tangent_map(scheme, state, h, dW, t)
        basis = tangent_basis(scheme, state, t)
        moved = T @ basis
        before = basis.T @ symplectic_form(scheme.space, state) @ basis
        Omega = symplectic_form(scheme.space, end)
        after = moved.T @ Omega @ moved
        # The volume form is a power of Ω, so the factor is the root of a ratio of determinants.
        volume = jnp.sqrt(jnp.abs(jnp.linalg.det(after) / jnp.linalg.det(before)))
        return jnp.max(jnp.abs(after - before)), volume, _size(T, Omega)

    return evaluate(structure, state)


def random_defect(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t, pairs: int = _PAIRS) -> tuple[Scalar, Scalar]:
    """max |Ω₁(Tu, Tv) − Ω₀(u, v)| over some pairs of random directions, and the size of the numbers in it; T is never written out."""
    space, n = scheme.space, scheme.space.dim

    def form(at: State, u, v):
        turned = space.flatten(space.turning(at.q, space.unflatten(u[:n]), at.p))
        return v[n:] @ u[:n] - u[n:] @ v[:n] + turned @ v[:n]

    def structure(state: State):
        step, z = _local_step(scheme, state, h, dW, t)
        directions = jnp.asarray(np.random.default_rng(0).normal(size=(2 * pairs, 2 * n)), z.dtype)
        if scheme.system.constraints:
            slope = _constraint_slope(scheme, state, t)
            directions = directions - jnp.linalg.solve(slope @ slope.T, slope @ directions.T).T @ slope  # what keeps g and its rate zero
        _, moved, end = jax.vmap(lambda u: jax.jvp(step, (z,), (u,), has_aux=True), out_axes=(None, 0, None))(directions)
        before = jax.vmap(lambda u, v: form(state, u, v))(directions[:pairs], directions[pairs:])
        after = jax.vmap(lambda u, v: form(end, u, v))(moved[:pairs], moved[pairs:])
        return jnp.max(jnp.abs(after - before)), _size(moved, space.flatten(state.p))

    return evaluate(structure, state)


def poisson_defect(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t) -> tuple[Scalar, Scalar]:
    """max |T B₀ Tᵀ − B₁| of one step, and the size of the numbers in it."""
    z, back = ravel_pytree((state.q, state.p))

    def step(z):
        new, _ = flow(scheme).advance(State(*back(z)), h, dW, t)
        return ravel_pytree((new.q, new.p))[0]

    T = jax.jacfwd(step)(z)
    before, after = (poisson_tensor(scheme.space, *back(at)) for at in (z, step(z)))
    return jnp.max(jnp.abs(T @ before @ T.T - after)), _size(T, before)


def _size(T, form) -> Scalar:
    """Of the numbers in TᵀΩT."""
    return jnp.maximum(1.0, jnp.max(jnp.abs(T))) ** 2 * jnp.maximum(1.0, jnp.max(jnp.abs(form)))


def tangent_basis(scheme: Scheme, state: State, t) -> Float[Array, "z d"]:
    """Directions of phase space, as columns: all of them, or under constraints an orthonormal basis of those that keep g and its rate zero."""
    constraints = scheme.system.constraints
    if not constraints:
        return jnp.eye(2 * scheme.space.dim, dtype=_dtype(state))
    return jnp.linalg.svd(_constraint_slope(scheme, state, t), full_matrices=True)[2][2 * constraints :].T


def _constraint_slope(scheme: Scheme, state: State, t):
    """The derivative of g and of its rate."""
    system, space = scheme.system, scheme.space

    def constraint(z):
        at = _at(space, state, z)
        return jnp.concatenate([system.constraint(at.q, t), rate(system, at.q, system.velocity(at.q, at.p, t), t)])

    return jax.jacfwd(constraint)(_coordinates(space, state))


def _dtype(state: State):
    return jax.tree.leaves(state.p)[0].dtype
