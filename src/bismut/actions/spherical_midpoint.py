"""Midpoint discrete Hamiltonian on the sphere |μ| = |μ0| of so(3)*.

    K_d(μ̄) = h H(r μ̄/|μ̄|) + H_i(r μ̄/|μ̄|) ΔW_i,        r = |μ0|

The midpoint's, with H and the noises looked at on the orbit, where alone they mean anything: as functions that are constant along rays. Then ξ =
∂K_d/∂μ̄ is at right angles to μ̄, so that μ̄ = (μ0 + μ1)/2 and μ1 − μ0 = μ̄ × ξ with Cayley's retraction: the spherical midpoint rule of McLachlan,
Modin and Verdier (Phys. Rev. E 89, 061301 (2014)). It keeps every quadratic H, and with it whatever noise commutes with one, to the tolerance of
the solve.
"""

import jax.numpy as jnp

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.errors import BismutError
from bismut.mechanics import Claims
from bismut.registry import SCHEMES
from bismut.spaces import SO3, Dual


@SCHEMES.register
class SphericalMidpoint(DiscreteHamiltonian):
    """Second order, implicit, on so(3)* without advected quantities: quadratic energies are conserved."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True)

    def __check_init__(self):
        space = self.system.space
        if not (isinstance(space, Dual) and isinstance(space.group, SO3) and space.shape is None):
            raise BismutError(f"SphericalMidpoint steps LiePoisson(SO3(), ...) without advected quantities, got {space}. Use HamiltonianMidpoint.")

    def on_orbit(self, function, p0):
        if p0 is None:
            return function

        def on_orbit(q, p, t):
            size = p @ p
            return function(q, p * jnp.sqrt((p0 @ p0) / jnp.where(size > 0, size, 1.0)), t)

        return on_orbit

    def __call__(self, H, N, q0, q1, x, p, h, dW, t):
        t = t + h / 2
        return h * H(q0, p, t) + N(q0, p, t) @ dW
