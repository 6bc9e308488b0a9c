"""Midpoint discrete Hamiltonian.

    K_d(q0, q1, p̄) = h H(q̄, p̄) + H_i(q̄, p̄) ΔW_i,      q̄ = q0 ⊕ x/2,   x = q1 ⊖ q0

On ℝⁿ this is the implicit midpoint rule, p̄ = (p0 + p1)/2. It is Stratonovich's as it is, and keeps every quadratic invariant of a linear system.
"""

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.mechanics import Claims
from bismut.registry import SCHEMES


@SCHEMES.register
class HamiltonianMidpoint(DiscreteHamiltonian):
    """Second order, implicit; noise may depend on the momentum."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True)

    def __call__(self, H, N, q0, q1, x, p, h, dW, t):
        middle, t = self.space.move(q0, x, 0.5), t + h / 2
        return h * H(middle, p, t) + N(middle, p, t) @ dW
