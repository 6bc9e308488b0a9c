"""Is one step symplectic? Does it keep momentum maps, and phase volume?

In the frame of velocities at a state the canonical form is Ω = ⟨δp₂, η₁⟩ − ⟨δp₁, η₂⟩ + ⟨p, [η₁, η₂]⟩. A step with tangent map T, from the frame at
z0 to that at z1, is symplectic when TᵀΩ₁T = Ω₀. On a space without a group structure the bracket is that of the frame, found by differentiation.
Under constraints phase space is T*{g = 0}: both sides are compared on a basis of the directions that keep g(q) = 0 and G(q) v(q, p) = 0.

T has a column for each direction, and each carries all pairs of bodies along: memory as the cube of their number. Beyond a hundred degrees of freedom
Ω(Tu, Tv) = Ω(u, v) is measured along a few pairs of random directions instead, which no defect is orthogonal to; the volume is then not measured.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.flows import flow
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.mechanics.constraint import rate
from bismut.spaces import Space

LARGEST = 100  # degrees of freedom up to which T is written out
_PAIRS = 4  # of random directions beyond


def symplectic_form(space: Space, state: State) -> Float[Array, "z z"]:
    """The matrix of Ω at a state, positions before momenta."""
    one = jnp.eye(space.dim, dtype=state_dtype(state))
    return jnp.block([[space.bracket_form(state.q, state.p), one], [-one, jnp.zeros_like(one)]])


def tangent_map(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0) -> tuple[Float[Array, "z z"], State]:
    """The derivative of one step in local coordinates, and where the step leads."""
    step, z = _local_step(scheme, state, h, dW, t)
    return jax.jacfwd(step, has_aux=True)(z)


def _local_step(scheme: Scheme, state: State, h, dW, t):
    """One step in local coordinates, which also gives where it leads, and the coordinates of the state."""
    space, stepper = scheme.space, flow(scheme)
    n = space.dim

    def step(z):
        moved = State(space.move(state.q, space.unflatten(z[:n])), space.unflatten(z[n:]))
        new, _ = stepper.advance(moved, h, dW, t)
        return jnp.concatenate([space.flatten(space.subtract(new.q, jax.lax.stop_gradient(new.q))), space.flatten(new.p)]), new

    return step, jnp.concatenate([jnp.zeros(n, state_dtype(state)), space.flatten(state.p)])


def defect_along(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0, pairs: int = _PAIRS) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """max |Ω₁(Tu, Tv) − Ω₀(u, v)| over some pairs of random directions, and the size of the numbers it is made of; T is never written out."""
    return evaluate(lambda state: _along(scheme, state, h, dW, t, pairs), state)


def _along(scheme: Scheme, state: State, h, dW, t, pairs: int):
    space, n = scheme.space, scheme.space.dim
    step, z = _local_step(scheme, state, h, dW, t)
    directions = jnp.asarray(np.random.default_rng(0).normal(size=(2 * pairs, 2 * n)), z.dtype)
    if scheme.system.constraints:
        slope = _slope(scheme, state, t)
        directions = directions - jnp.linalg.solve(slope @ slope.T, slope @ directions.T).T @ slope  # what keeps g and its rate zero
    _, moved, end = jax.vmap(lambda u: jax.jvp(step, (z,), (u,), has_aux=True), out_axes=(None, 0, None))(directions)

    def form(at: State, u, v):
        turned = space.flatten(space.turning(at.q, space.unflatten(u[:n]), at.p))
        return v[n:] @ u[:n] - u[n:] @ v[:n] + turned @ v[:n]

    before = jax.vmap(lambda u, v: form(state, u, v))(directions[:pairs], directions[pairs:])
    after = jax.vmap(lambda u, v: form(end, u, v))(moved[:pairs], moved[pairs:])
    size = jnp.maximum(1.0, jnp.max(jnp.abs(moved))) ** 2 * jnp.maximum(1.0, jnp.max(jnp.abs(space.flatten(state.p))))
    return jnp.max(jnp.abs(after - before)), size


def symplectic_defect(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0) -> Float[Array, ""]:
    """max |TᵀΩ₁T − Ω₀| of one step from `state`, with T its Jacobian: round-off for a symplectic scheme. `dW` are the increments of the step."""
    return step_structure(scheme, state, h, dW, t)[0]


def volume_factor(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0) -> Float[Array, ""]:
    """The factor by which one step multiplies phase volume."""
    return step_structure(scheme, state, h, dW, t)[1]


def step_structure(scheme: Scheme, state: State, h, dW: Float[Array, " m"], t=0.0) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Symplectic defect and volume factor from one tangent map, and the size of the numbers they are made of: round-off is measured by it."""
    return evaluate(lambda state: _structure(scheme, state, h, dW, t), state)


def _structure(scheme: Scheme, state: State, h, dW, t):
    T, arrived = tangent_map(scheme, state, h, dW, t)
    basis = tangent_basis(scheme, state, t)
    moved = T @ basis
    before = basis.T @ symplectic_form(scheme.space, state) @ basis
    Omega = symplectic_form(scheme.space, arrived)
    after = moved.T @ Omega @ moved
    # The volume form is a power of Ω, so the factor is the root of a ratio of determinants.
    volume = jnp.sqrt(jnp.abs(jnp.linalg.det(after) / jnp.linalg.det(before)))
    size = jnp.maximum(1.0, jnp.max(jnp.abs(T))) ** 2 * jnp.maximum(1.0, jnp.max(jnp.abs(Omega)))
    return jnp.max(jnp.abs(after - before)), volume, size


def tangent_basis(scheme: Scheme, state: State, t=0.0) -> Float[Array, "z d"]:
    """Directions of phase space, as columns: all of them, or under constraints an orthonormal basis of those that keep g and its rate zero."""
    system, space = scheme.system, scheme.space
    n = space.dim
    if not system.constraints:
        return jnp.eye(2 * n, dtype=state_dtype(state))
    return jnp.linalg.svd(_slope(scheme, state, t), full_matrices=True)[2][2 * system.constraints :].T


def _slope(scheme: Scheme, state: State, t):
    """The derivative of g and of its rate."""
    system, space = scheme.system, scheme.space
    n = space.dim

    def hold(z):
        q, p = space.move(state.q, space.unflatten(z[:n])), space.unflatten(z[n:])
        return jnp.concatenate([system.constraint(q, t), rate(system, q, system.velocity(q, p, t), t)])

    return jax.jacfwd(hold)(jnp.concatenate([jnp.zeros(n, state_dtype(state)), space.flatten(state.p)]))


def state_dtype(state: State):
    return jax.tree.leaves(state.p)[0].dtype
