"""Trapezoid action.

    S_d(q0, q1) = (h/2) [L(q0, v) + L(q1, v)] + ½ [γ(q0) + γ(q1)]·ΔW,      v = (q1 ⊖ q0)/h

The integral is replaced by the mean of its values at the ends. For L = T(v) − U(q) this is the Störmer–Verlet method on ℝⁿ and the Lie–Verlet
method on a group; for any other L it is what the same principle gives.
"""

from bismut.actions.action import Action
from bismut.mechanics import Claims
from bismut.registry import SCHEMES


@SCHEMES.register
class Verlet(Action):
    """Second order; explicit on ℝⁿ for L = T(v) − U(q)."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True, self_adjoint=True)

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        return 0.5 * h * (L(q0, v, t) + L(q1, v, t + h)) + 0.5 * (gamma(q0, t) + gamma(q1, t + h)) @ dW
