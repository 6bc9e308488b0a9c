"""The step that follows from a discrete Hamiltonian.

    solve   x = ∂K_d/∂p̄,   p0 = −D₁S   for p̄ and x,      then   q1 = q0 ⊕ x,   p1 = D₂S,        S = ⟨p̄, x⟩ − K_d

With a = p̄ − ∂K_d/∂x, and a0, a1 the covectors that it exerts on the ends, D₁S = a0 − ∂K_d/∂q0 and D₂S = a1 − ∂K_d/∂q1. Forces do their virtual work
at the nodes, half of it at each: p0 = −D₁S − f⁻, p1 = D₂S + f⁺. What balances noise Hamiltonians moves their Wiener processes
(`mechanics/fluctuation_dissipation.py`). What is unknown is read off K_d:

    p̄ alone    where ∂K_d/∂p̄ does not see x, so that x follows from p̄
    linear     where what is left of the equation is affine in the unknowns: one correction is exact
    Newton     otherwise, on p̄ and x together

On the dual of an algebra (Lie–Poisson systems) the step is the coadjoint action of one group element,

    ξ = ∂K_d/∂μ̄,   μ0 = (dτ⁻¹_ξ)* μ̄ ,       μ1 = Ad*_{τ(ξ)} (μ0 − k0) − k1,   a1 = τ(ξ)⁻¹·a0        k = ∂K_d/∂a, as a covector of the algebra

which is the same step with a and μ varied by the group: the reduced discrete action. Since dτ⁻¹_{−ξ} = dτ⁻¹_ξ Ad_{τ(ξ)}, its end p1 = D₂S is the
coadjoint action on its beginning, and this form of it is taken: whatever ξ the equation was solved with, μ stays on its orbit, and Casimirs do not
depend on residuals. With Cayley's retraction on matrices it is the isospectral midpoint rule of Modin and Viviani,
W0 = (1 + ξ/2) W̃ (1 − ξ/2), W1 = (1 − ξ/2) W̃ (1 + ξ/2).
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.flows.ledger import record_between_states
from bismut.flows.variational import Solve
from bismut.mechanics import State, System, newton
from bismut.mechanics.covectors import combined
from bismut.mechanics.fluctuation_dissipation import BracketDissipation
from bismut.mechanics.small_linalg import UNROLLED
from bismut.precision import cast
from bismut.programs.dependence import affine, depends
from bismut.spaces import Dual, Point, Velocity, add, scale
from bismut.tracing import structural_query


class StepEnds(NamedTuple):
    """What a displacement and an inner momentum make of a step: the momenta at its ends, ∂K_d/∂p̄, which x must be, and the kicks ∂K_d/∂q at the
    ends."""

    p0: Velocity
    p1: Velocity
    x: Velocity
    kicks: tuple[Velocity, Velocity]


class Unknowns(NamedTuple):
    """What is known of the equation of a step before any number is."""

    x_follows: bool  # from p̄
    linear: bool

    def describe(self, how: str = "") -> str:
        how = how or ("linear, one exact correction" if self.linear else "Newton")
        return f"for {'p̄, from which x follows' if self.x_follows else 'p̄ and x together'}; {how}"


def step_ends(scheme: DiscreteHamiltonian, q0: Point, x: Velocity, p: Velocity, h, dW: Float[Array, " m"], t, p0: Velocity | None = None) -> StepEnds:
    """`p0` is the momentum before the step, for schemes that evaluate H on its orbit."""
    space, system = scheme.space, scheme.system
    q1 = space.move(q0, x)
    H, N = scheme.on_orbit(system.hamiltonian, p0), scheme.on_orbit(system.noise_hamiltonian, p0)
    if isinstance(system.dissipation, BracketDissipation):
        dW = dW + h * system.dissipation.rates(system, space.move(q0, x, 0.5), p, t + h / 2)

    def K(e0, e1, y, p):
        return scheme(H, N, space.nudge(q0, e0), space.nudge(q1, e1), y, p, h, dW, t)

    zero = jax.tree.map(jnp.zeros_like, p)
    at0, at1, ax, ap = jax.grad(K, (0, 1, 2, 3))(zero, zero, x, p)
    if system.has_impulses:
        at0, at1 = add(at0, impulse(system, q0, p, -h, -dW, t)), add(at1, impulse(system, q1, p, -h, -dW, t + h))
    a0, a1 = space.ends(q0, q1, x, add(p, scale(-1.0, ax)))
    return StepEnds(add(at0, scale(-1.0, a0)), add(a1, scale(-1.0, at1)), ap, (at0, at1))


def impulse(system: System, q: Point, p: Velocity, h, dW: Float[Array, " m"], t) -> Velocity:
    """½ (F h + Σ F_j ΔW_j) at a node, with the velocity ∂H/∂p of the inner momentum: half of the virtual work of a step is done at each end."""
    v, total = system.velocity(q, p, t), system.space.zero(system.dtype)
    if system.pushed:
        total = scale(h, system.force(q, v, t))
    if system.random_forces:
        weights = dW[system.potentials : system.potentials + system.random_forces]
        total = add(total, combined(system.random_force(q, v, t), weights))
    return scale(0.5, total)


class HamiltonianFlow(eqx.Module):
    """The flow of a discrete Hamiltonian."""

    scheme: DiscreteHamiltonian

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory."""
        scheme, space = self.scheme, self.scheme.space
        n, target, unknowns = space.dim, space.flatten(state.p), self.unknowns()
        rest = jax.tree.map(jnp.zeros_like, state.p)
        at = jax.jit(lambda x, p: step_ends(scheme, state.q, x, p, h, dW, t, state.p), inline=True)  # evaluated four times, traced once

        def parts(y):
            p = space.unflatten(y[:n])
            x = at(rest, p).x if unknowns.x_follows else space.unflatten(y[n:])
            return x, at(x, p)

        def residual(x, ends):
            gap = space.flatten(ends.p0) - target
            return gap if unknowns.x_follows else jnp.concatenate([gap, space.flatten(x) - space.flatten(ends.x)])

        guess = target if unknowns.x_follows else jnp.concatenate([target, space.flatten(at(rest, state.p).x)])
        reach = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves((state.q, state.p))]))
        floor = 4 * jnp.finfo(scheme.system.dtype).eps * reach
        root = self.root(lambda y: residual(*parts(y)), guess, unknowns, floor)
        x, ends = parts(root.x)
        new = record_between_states(scheme.system, state, State(space.move(state.q, x), self.end_momentum(state, x, ends)), h, dW, t)
        return cast(new, scheme.system.dtype), Solve(jnp.max(jnp.abs(residual(x, ends))), root.converged, root.iterations)

    def root(self, residual: Callable, guess: Float[Array, " n"], unknowns: Unknowns, floor) -> newton.Root:
        return newton.solve(residual, guess, newton.dense(guess.shape[0]), unknowns.linear, floor)

    def end_momentum(self, state: State, x: Velocity, ends: StepEnds) -> Velocity:
        """p1."""
        return ends.p1

    def describe(self) -> str:
        """How the equation is solved, for `explain`."""
        return self.unknowns().describe()

    @structural_query
    def unknowns(self) -> Unknowns:
        """How the equation can be solved, read off its program."""
        scheme, space, dtype = self.scheme, self.scheme.space, self.scheme.system.dtype
        n, q, one, dW = space.dim, space.origin(dtype), jnp.ones((), dtype), jnp.zeros(scheme.channels, dtype)
        zero = jnp.zeros(n, dtype)
        at = jax.jit(lambda x, p: step_ends(scheme, q, space.unflatten(x), space.unflatten(p), one, dW, one, space.zero(dtype)), inline=True)
        if not depends(lambda x: at(x, zero).x, zero):
            return Unknowns(True, affine(lambda p: space.flatten(at(space.flatten(at(zero, p).x), p).p0), zero))

        def equations(y):
            ends = at(y[n:], y[:n])
            return space.flatten(ends.p0), y[n:] - space.flatten(ends.x)

        return Unknowns(False, affine(equations, jnp.zeros(2 * n, dtype)))


class CoadjointFlow(HamiltonianFlow):
    """The flow of a discrete Hamiltonian on the dual of an algebra.

    Up to six unknowns are solved for by Newton's method, more by fixed-point iteration: r is the identity but for O(ξ), and a Jacobian of n² numbers
    costs more than many residuals.
    """

    def root(self, residual, guess, unknowns, floor):
        small = guess.shape[0] <= UNROLLED
        return super().root(residual, guess, unknowns, floor) if small else newton.fixed_point(residual, guess, floor)

    def describe(self) -> str:
        unknowns = self.unknowns()
        count = self.scheme.space.dim * (1 if unknowns.x_follows else 2)
        return unknowns.describe("" if count <= UNROLLED else f"{count} unknowns, iterated to round-off")

    def end_momentum(self, state, x, ends):
        space, (k0, k1) = self.scheme.space, ends.kicks
        assert isinstance(space, Dual)
        if space.shape is None:
            return space.carry(x, state.p)
        return add(space.carry(x, add(state.p, scale(-1.0, k0))), scale(-1.0, k1))
