"""Midpoint action.

    S_d(q0, q1) = h L(q̄, v) + γ(q̄)·ΔW,     v = (q1 ⊖ q0)/h,   q̄ = q0 ⊕ h v/2

The path is replaced by the curve of the retraction and the integral by its value in the middle.
Nothing else is chosen here: step, momentum maps and symplectic form follow in `flows`.
"""

from bismut.actions.action import Action
from bismut.mechanics import Claims
from bismut.registry import SCHEMES


@SCHEMES.register
class Midpoint(Action):
    """Second order, implicit; with exp it is its own adjoint, with Cayley it is not."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True)

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        middle, t = self.space.move(q0, v, h / 2), t + h / 2
        return h * L(middle, v, t) + gamma(middle, t) @ dW
