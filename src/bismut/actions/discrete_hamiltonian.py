"""A scheme of phase space is one scalar function as well.

    S(q0, p̄, q1) = ⟨p̄, x⟩ − K_d(q0, q1, p̄; h, ΔW),    x = q1 ⊖ q0,        K_d ≈ ∫ H dt + Σ H_i ∘ dW_i
    0 = ∂S/∂p̄,      p0 = −D₁S,      p1 = D₂S

The Hamilton–Pontryagin principle keeps the momentum as a variable of its own. Discretised as it stands it is a generating function, stationary in an
inner momentum p̄: a discrete Hamiltonian K_d is all that a scheme chooses. Noise may see the momentum here, and L need not exist.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import BismutError
from bismut.mechanics import Claims, Scheme, System
from bismut.programs.dependence import depends
from bismut.spaces import Point, Space, Velocity, scale

Hamiltonian = Callable[..., Float[Array, ""]]  # of (q, p, t)
Noises = Callable[..., Float[Array, " m"]]  # of (q, p, t)


class DiscreteHamiltonian(Scheme):
    """A discrete Hamiltonian for a system. To define your own, subclass it with `claims` and `__call__`.

    system      what it steps: any system without constraints; forces act at the nodes
    retraction  "cayley" or "exp", which connects the ends of a step on a group; that of the space by default
    """

    retraction: str | None = eqx.field(static=True, kw_only=True, default=None)
    phase_space = True

    def __check_init__(self):
        if not isinstance(self.system, System):
            raise BismutError(f"{type(self).__name__} needs a System, got {type(self.system).__name__}.")
        if not self.system.moves:
            raise BismutError(f"{type(self).__name__} needs a system with a Lagrangian or a Hamiltonian.")
        if self.system.constraints:
            raise BismutError(f"{type(self).__name__} does not support constraints. Use an action such as Verlet.")
        _ = self.space  # an unknown retraction is refused now

    @property
    def space(self) -> Space:
        return self.system.space if self.retraction is None else self.system.space.using(self.retraction)

    def on_orbit(self, function: Callable, p0: Velocity | None) -> Callable:
        """H or the noises as they are looked at from the momentum before a step: as they are."""
        del p0
        return function

    @abstractmethod
    def __call__(self, H: Hamiltonian, N: Noises, q0: Point, q1: Point, x: Velocity, p: Velocity, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
        """K_d for the given Hamiltonian and noises."""

    @property
    def implicit_noise(self) -> bool:
        """Whether a step is implicit in what its noise does, so that it has no solution for very large increments."""
        return self.mixed or (self.system.reduced and self.channels > 0)

    @property
    def keeps_ledger(self) -> bool:
        return True

    @property
    def supports_jumps(self) -> bool:
        return not self.mixed and not self.system.reduced and super().supports_jumps

    @property
    def mixed(self) -> bool:
        """Whether one of the noises sees both q and p."""
        system = self.system
        if not system.noise_hamiltonians:
            return False
        q, p, t = system.space.origin(system.dtype), system.space.zero(system.dtype), jnp.ones((), system.dtype)
        one = lambda i, q, p: system.noise_hamiltonian(q, p, t)[i]
        sees = lambda i: depends(lambda q: one(i, q, p), q) and depends(lambda p: one(i, q, p), p)
        return any(sees(i) for i in range(system.potentials, system.channels))

    def adjoint(self) -> DiscreteHamiltonian:
        """The scheme that undoes a step of this one when run backwards."""
        return AdjointHamiltonian(self.system, self, retraction=self.retraction)


class AdjointHamiltonian(DiscreteHamiltonian):
    """−K_d(q1, q0, p̄; −h, −ΔW)."""

    of: DiscreteHamiltonian

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.claims

    def __call__(self, H, N, q0, q1, x, p, h, dW, t):
        return -self.of(H, N, q1, q0, scale(-1.0, x), p, -h, -dW, t + h)

    @property
    def title(self) -> str:
        return f"Adjoint of {self.of.title}"

    def adjoint(self) -> DiscreteHamiltonian:
        return self.of
