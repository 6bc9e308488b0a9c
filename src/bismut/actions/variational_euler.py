"""Variational Euler action.

    left end    S_d(q0, q1) = h L(q0, v) + γ(q0)·ΔW,      v = (q1 ⊖ q0)/h
    right end   S_d(q0, q1) = h L(q1, v) + γ(q1)·ΔW

The integral is replaced by its value at one end of the interval. The two are adjoint to each other. For
L = T(v) − U(q) both are explicit on ℝⁿ (symplectic Euler); on a group the velocity is the only unknown. This is the scheme of the paper.
"""

import equinox as eqx

from bismut.actions.action import Action
from bismut.errors import DomainError
from bismut.mechanics import Claims
from bismut.registry import SCHEMES


@SCHEMES.register
class VariationalEuler(Action):
    """First order, the potential evaluated at one point per step; forces are explicit, as in the paper, which heats by O(h).

    end  where the potential is evaluated, "left" or "right"; one is the adjoint of the other
    """

    end: str = eqx.field(static=True, kw_only=True, default="left")
    claims = Claims(order=1, symplectic=True, momentum_maps=True)
    explicit_force = True

    def __check_init__(self):
        if self.end not in ("left", "right"):
            raise DomainError(f'end must be "left" or "right", got {self.end!r}.')

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        q, t = (q0, t) if self.end == "left" else (q1, t + h)
        return h * L(q, v, t) + gamma(q, t) @ dW
