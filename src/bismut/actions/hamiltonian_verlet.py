"""Trapezoid discrete Hamiltonian.

    K_d(q0, q1, p̄) = (h/2) [H(q0, p̄) + H(q1, p̄)] + ½ [H_i(q0, p̄) + H_i(q1, p̄)] ΔW_i

The generating function of the Störmer–Verlet method, for any H: explicit on ℝⁿ where H and every H_i are sums T(p) + U(q). Its own adjoint, so that
Stratonovich's limit needs no correction.
"""

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.mechanics import Claims
from bismut.registry import SCHEMES


@SCHEMES.register
class HamiltonianVerlet(DiscreteHamiltonian):
    """Second order; explicit on ℝⁿ where q and p separate. Noise may depend on the momentum."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True, self_adjoint=True)

    def __call__(self, H, N, q0, q1, x, p, h, dW, t):
        return 0.5 * h * (H(q0, p, t) + H(q1, p, t + h)) + 0.5 * (N(q0, p, t) + N(q1, p, t + h)) @ dW
