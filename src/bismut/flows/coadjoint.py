"""The step of a Lie–Poisson system: coadjoint action of one group element.

    ξ = ∂K_d/∂μ̄,   μ0 = (dτ⁻¹_ξ)* μ̄ ,       μ1 = Ad*_{τ(ξ)} (μ0 − k0) − k1,   a1 = τ(ξ)⁻¹·a0        k = ∂K_d/∂a, as a covector of the algebra

It is the step of the discrete Hamiltonian, S = ⟨μ̄, ξ⟩ − K_d stationary in μ̄, with a and μ varied by the group: the reduced discrete action. Since
dτ⁻¹_{−ξ} = dτ⁻¹_ξ Ad_{τ(ξ)}, its end p1 = D₂S is the coadjoint action on its beginning, and this form of it is taken: whatever ξ the equation was
solved with, μ stays on its orbit, and Casimirs do not know of residuals. With Cayley's retraction on matrices it is the isospectral midpoint rule
of Modin and Viviani, W0 = (1 + ξ/2) W̃ (1 − ξ/2), W1 = (1 − ξ/2) W̃ (1 + ξ/2).

Up to six unknowns are found by Newton's method. More are iterated, y ← y − r(y), for r is the identity but for O(ξ), and a Jacobian of n² numbers
costs more than many residuals.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.flows.generating import Ends, Generated, Shape
from bismut.mechanics import State, newton
from bismut.mechanics.implicit import root
from bismut.mechanics.small import UNROLLED
from bismut.spaces import Dual, Velocity, add, scale

_MOST = 100  # iterations: at a rate of ⅔, beyond which a step is too long for its accuracy, so many reach round-off


class Coadjoint(Generated):
    """The flow of a discrete Hamiltonian on the dual of an algebra."""

    def root(self, residual: Callable, guess: Float[Array, " n"], shape: Shape, floor) -> newton.Root:
        if guess.shape[0] <= UNROLLED:
            return super().root(residual, guess, shape, floor)
        return iterated(residual, guess, floor)

    @property
    def words(self) -> str:
        """How the equation is solved."""
        shape = self.shape()
        unknowns = self.scheme.space.dim * (1 if shape.follows else 2)
        return shape.words if unknowns <= UNROLLED else f"{shape.words.split(';', maxsplit=1)[0]}; {unknowns} unknowns, iterated to round-off"

    def arrival(self, state: State, x: Velocity, found: Ends) -> Velocity:
        space, (k0, k1) = self.scheme.space, found.kicks
        assert isinstance(space, Dual)
        if space.shape is None:
            return space.carry(x, state.p)
        return add(space.carry(x, add(state.p, scale(-1.0, k0))), scale(-1.0, k1))


def iterated(residual: Callable, guess: Float[Array, " n"], floor) -> newton.Root:
    """The root of r(y) = y − contraction, until a correction is below the floor or stops shrinking at round-off; differentiated as the root it is."""

    def run(f, y, floor):
        def unfinished(loop):
            _, size, last, count = loop
            # A correction near round-off that does not shrink any more is round-off itself.
            settled = (size <= floor) | ((size <= 64 * floor) & (size >= last))
            return ~settled & jnp.isfinite(size) & (count < _MOST)

        def improve(loop):
            y, size, _, count = loop
            r = f(y)
            return y - r, jnp.max(jnp.abs(r)), size, count + 1

        infinite = jnp.full((), jnp.finfo(y.dtype).max, y.dtype)
        y, size, _, count = jax.lax.while_loop(unfinished, improve, (y, infinite, infinite, jnp.zeros((), int)))
        return y, ((size <= 64 * floor).astype(y.dtype), count.astype(y.dtype))

    def tangent(linear, b):
        # The Neumann series of a contraction: as many terms as the root may have had.
        def more(loop):
            x, r, count = loop
            return (jnp.max(jnp.abs(r)) > jnp.finfo(b.dtype).eps * jnp.max(jnp.abs(x))) & (count < _MOST)

        def term(loop):
            x, r, count = loop
            return x + r, b - linear(x + r), count + 1

        return jax.lax.while_loop(more, term, (jnp.zeros_like(b), b, jnp.zeros((), int)))[0]

    y, (converged, iterations) = root(residual, guess, run, tangent, floor)
    return newton.Root(y, converged > 0, iterations.astype(int))
