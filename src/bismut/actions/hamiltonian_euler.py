"""Generating function of the second kind, H_d⁺(q0, p1), and its adjoint.

    left end    K_d(q0, q1, p̄) = h H(q0, p̄) + H_i(q0, p̄) ΔW_i + ½ ⟨∂_q H_i, ∂_p H_j⟩(q0, p̄) ΔW_i ΔW_j,      p̄ = p1 on ℝⁿ
    right end   K_d(q0, q1, p̄) = h H(q1, p̄) + H_i(q1, p̄) ΔW_i − ½ ⟨∂_q H_i, ∂_p H_j⟩(q1, p̄) ΔW_i ΔW_j,      p̄ = p0 on ℝⁿ

The symplectic Euler methods. Where a noise sees both q and p, its value at one end alone has another limit than Stratonovich's; the last term brings
it back, and being part of the scalar it costs no symplecticity. It is left away where every noise sees q or p alone: there it vanishes on average.
"""

import equinox as eqx
import jax

from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.errors import BismutError, DomainError
from bismut.mechanics import Claims
from bismut.registry import SCHEMES
from bismut.spaces import pair


@SCHEMES.register
class HamiltonianEuler(DiscreteHamiltonian):
    """First order; explicit on ℝⁿ where q and p separate. Noise may depend on the momentum.

    end  where H and the noises are evaluated, "left" or "right"; one is the adjoint of the other
    """

    end: str = eqx.field(static=True, kw_only=True, default="left")
    claims = Claims(order=1, symplectic=True, momentum_maps=True)

    def __check_init__(self):
        if self.end not in ("left", "right"):
            raise DomainError(f'end must be "left" or "right", got {self.end!r}.')
        if self.system.kick_sees_velocity:
            raise BismutError(
                "HamiltonianEuler takes the momentum at one end of a step, which is not the Stratonovich limit for a random force that depends on "
                "the velocity. Use HamiltonianMidpoint or HamiltonianVerlet."
            )

    def __call__(self, H, N, q0, q1, x, p, h, dW, t):
        q, t, sign = (q0, t, 0.5) if self.end == "left" else (q1, t + h, -0.5)
        K = h * H(q, p, t) + N(q, p, t) @ dW
        if not self.mixed:
            return K
        slope = self.space.differential(lambda q: N(q, p, t) @ dW, q)
        return K + sign * pair(slope, jax.grad(lambda p: N(q, p, t) @ dW)(p))
