"""The step that follows from a discrete Hamiltonian.

    solve   x = ∂K_d/∂p̄,   p0 = −D₁S   for p̄ and x,      then   q1 = q0 ⊕ x,   p1 = D₂S,        S = ⟨p̄, x⟩ − K_d

With a = p̄ − ∂K_d/∂x, and a0, a1 the covectors that it exerts on the ends, D₁S = a0 − ∂K_d/∂q0 and D₂S = a1 − ∂K_d/∂q1. Forces do their virtual work
at the nodes, half of it at each: p0 = −D₁S − f⁻, p1 = D₂S + f⁺. What balances noise Hamiltonians moves their Wiener processes
(`mechanics/balance.py`). What is unknown is read off K_d:

    p̄ alone    where ∂K_d/∂p̄ does not see x, so that x follows from p̄
    linear     where what is left of the equation is affine in the unknowns: one correction is exact
    Newton     otherwise, on p̄ and x together
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.flows.books import of_states
from bismut.flows.variational import Solve
from bismut.mechanics import State, System, newton
from bismut.mechanics.balance import Balance
from bismut.mechanics.dependence import affine, depends
from bismut.mechanics.kicks import combined
from bismut.precision import cast
from bismut.spaces import Point, Velocity, add, scale
from bismut.tracing import without_numbers


class Ends(NamedTuple):
    """What a displacement and an inner momentum make of a step: the momenta at its ends, ∂K_d/∂p̄, which x must be, and the kicks ∂K_d/∂q at the
    ends."""

    p0: Velocity
    p1: Velocity
    x: Velocity
    kicks: tuple[Velocity, Velocity]


class Shape(NamedTuple):
    """What is known of the equation of a step before any number is."""

    follows: bool  # x from p̄
    linear: bool

    @property
    def words(self) -> str:
        how = "linear, one exact correction" if self.linear else "Newton"
        return f"for {'p̄, from which x follows' if self.follows else 'p̄ and x together'}; {how}"


def ends(scheme: DiscreteHamiltonian, q0: Point, x: Velocity, p: Velocity, h, dW: Float[Array, " m"], t, p0: Velocity | None = None) -> Ends:
    """`p0` is the momentum before the step, for schemes that look at H on its orbit."""
    space, system = scheme.space, scheme.system
    q1 = space.move(q0, x)
    H, N = scheme.looked_at(system.hamiltonian, p0), scheme.looked_at(system.noise_hamiltonian, p0)
    if isinstance(system.dissipation, Balance):
        dW = dW + h * system.dissipation.rates(system, space.move(q0, x, 0.5), p, t + h / 2)

    def K(e0, e1, y, p):
        return scheme(H, N, space.nudge(q0, e0), space.nudge(q1, e1), y, p, h, dW, t)

    zero = jax.tree.map(jnp.zeros_like, p)
    at0, at1, ax, ap = jax.grad(K, (0, 1, 2, 3))(zero, zero, x, p)
    if system.has_impulses:
        at0, at1 = add(at0, impulse(system, q0, p, -h, -dW, t)), add(at1, impulse(system, q1, p, -h, -dW, t + h))
    a0, a1 = space.ends(q0, q1, x, add(p, scale(-1.0, ax)))
    return Ends(add(at0, scale(-1.0, a0)), add(a1, scale(-1.0, at1)), ap, (at0, at1))


def impulse(system: System, q: Point, p: Velocity, h, dW: Float[Array, " m"], t) -> Velocity:
    """½ (F h + Σ F_j ΔW_j) at a node, with the velocity ∂H/∂p of the inner momentum: half of the virtual work of a step is done at each end."""
    v, whole = system.velocity(q, p, t), system.space.zero(system.dtype)
    if system.pushed:
        whole = scale(h, system.force(q, v, t))
    if system.random_forces:
        weights = dW[system.potentials : system.potentials + system.random_forces]
        whole = add(whole, combined(system.random_force(q, v, t), weights))
    return scale(0.5, whole)


class Generated(eqx.Module):
    """The flow of a discrete Hamiltonian."""

    scheme: DiscreteHamiltonian

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory."""
        scheme, space = self.scheme, self.scheme.space
        n, target, shape = space.dim, space.flatten(state.p), self.shape()
        rest = jax.tree.map(jnp.zeros_like, state.p)
        at = jax.jit(lambda x, p: ends(scheme, state.q, x, p, h, dW, t, state.p), inline=True)  # looked at four times, traced once

        def parts(y):
            p = space.unflatten(y[:n])
            x = at(rest, p).x if shape.follows else space.unflatten(y[n:])
            return x, at(x, p)

        def short(x, found):
            off = space.flatten(found.p0) - target
            return off if shape.follows else jnp.concatenate([off, space.flatten(x) - space.flatten(found.x)])

        residual = lambda y: short(*parts(y))
        guess = target if shape.follows else jnp.concatenate([target, space.flatten(at(rest, state.p).x)])
        reach = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves((state.q, state.p))]))
        floor = 4 * jnp.finfo(scheme.system.dtype).eps * reach
        root = self.root(residual, guess, shape, floor)
        x, found = parts(root.x)
        new = of_states(scheme.system, state, State(space.move(state.q, x), self.arrival(state, x, found)), h, dW, t)
        return cast(new, scheme.system.dtype), Solve(jnp.max(jnp.abs(short(x, found))), root.converged, root.iterations)

    def root(self, residual: Callable, guess: Float[Array, " n"], shape: Shape, floor) -> newton.Root:
        return newton.solve(residual, guess, newton.dense(guess.shape[0]), shape.linear, floor)

    def arrival(self, state: State, x: Velocity, found: Ends) -> Velocity:
        """The momentum at the end of a step."""
        return found.p1

    @without_numbers
    def shape(self) -> Shape:
        """How the equation can be solved, read off its jaxpr."""
        scheme, space, dtype = self.scheme, self.scheme.space, self.scheme.system.dtype
        n, q, one, dW = space.dim, space.origin(dtype), jnp.ones((), dtype), jnp.zeros(scheme.channels, dtype)
        zero = jnp.zeros(n, dtype)
        at = jax.jit(lambda x, p: ends(scheme, q, space.unflatten(x), space.unflatten(p), one, dW, one, space.zero(dtype)), inline=True)
        follows = not depends(lambda x: at(x, zero).x, zero)
        if follows:
            return Shape(True, affine(lambda p: space.flatten(at(space.flatten(at(zero, p).x), p).p0), zero))

        def whole(y):
            found = at(y[n:], y[:n])
            return space.flatten(found.p0), y[n:] - space.flatten(found.x)

        return Shape(False, affine(whole, jnp.zeros(2 * n, dtype)))
