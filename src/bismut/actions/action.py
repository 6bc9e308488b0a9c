"""A scheme is one scalar function.

    S_d(q0, q1; h, ΔW) ≈ ∫ L dt + Σ γ_i ∘ dW_i     over one step, given q at both ends

An action is handed the two ends and the velocity v = (q1 ⊖ q0)/h of the retraction's curve between them. v is redundant on purpose: a solver
that knows v need not recover it from q1 − q0, which would cost a factor 1/h in round-off, and a derivative at fixed ends knows how v answers
(`Space.ends`).
Steps, momenta, adjoints and symplectic forms follow in `flows`; nothing but the scalar is written here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from bismut.errors import BismutError
from bismut.mechanics import Claims, Scheme, System
from bismut.mechanics.system_fields import replaced
from bismut.spaces import Point, Space, Velocity, scale

Lagrangian = Callable[..., Float[Array, ""]]  # of (q, v, t)
Potentials = Callable[..., Float[Array, " m"]]  # of (q, t)


class Action(Scheme):
    """A discrete Lagrangian for a system. To define your own scheme, subclass it with `claims` and `__call__`.

    system      what it steps
    retraction  "cayley" or "exp", which connects the ends of a step on a group; that of the space by default
    """

    retraction: str | None = eqx.field(static=True, kw_only=True, default=None)
    # Whether a force is evaluated with the velocity at the start of the step (explicit, as in the paper) or with that of the step itself.
    explicit_force: ClassVar[bool] = False

    def __check_init__(self):
        if not isinstance(self.system, System):
            raise BismutError(f"{type(self).__name__} needs a System, got {type(self.system).__name__}.")
        _ = self.space  # an unknown retraction is refused now

    @property
    def space(self) -> Space:
        return self.system.space if self.retraction is None else self.system.space.using(self.retraction)

    @abstractmethod
    def __call__(self, L: Lagrangian, gamma: Potentials, q0: Point, q1: Point, v: Velocity, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
        """S_d for the given Lagrangian and potentials."""

    def impulses(self, q0: Point, q1: Point, h, dW: Float[Array, " m"], t) -> tuple[Velocity, Velocity] | None:
        """(f⁻, f⁺), impulses at both ends of a step beside those of the system's forces; None for none."""
        del q0, q1, h, dW, t
        return None

    @property
    def keeps_ledger(self) -> bool:
        return self.system.has_lagrangian

    def on(self, system: System) -> Action:
        """The same scheme for another system, such as a subsystem of this one."""
        return replaced(self, system=system)

    def adjoint(self) -> Action:
        """The scheme that undoes a step of this one when run backwards: S*(q0, q1; h, ΔW) = −S(q1, q0; −h, −ΔW)."""
        if self.explicit_force and self.system.force_sees_velocity:
            raise BismutError(
                f"{type(self).__name__} evaluates a force with the velocity at the start of the step; its adjoint would need the one at the end. "
                "Use Midpoint or Verlet, whose forces have an adjoint."
            )
        return Adjoint(self.system, self, retraction=self.retraction)


class Adjoint(Action):
    """−S(q1, q0; −h, −ΔW). The velocity is unchanged, because τ(−x) = τ(x)⁻¹."""

    of: Action

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.claims

    def on(self, system):
        return replaced(self, system=system, of=self.of.on(system))

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        return -self.of(L, gamma, q1, q0, v, -h, -dW, t + h)

    def impulses(self, q0, q1, h, dW, t):
        impulses = self.of.impulses(q1, q0, -h, -dW, t + h)
        return None if impulses is None else (scale(-1.0, impulses[1]), scale(-1.0, impulses[0]))

    @property
    def forced(self) -> bool:
        return self.of.forced

    @property
    def title(self) -> str:
        return f"Adjoint of {self.of.title}"

    def adjoint(self) -> Action:
        return self.of
