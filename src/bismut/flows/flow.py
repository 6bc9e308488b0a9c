"""One step, whatever the scheme.

    φ_h(ω): (q0, p0) ↦ (q1, p1)

A `Flow` advances by itself; for an action the flow is derived (`variational`).
"""

from abc import abstractmethod
from functools import singledispatch
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Array, Float

from bismut.actions import Action
from bismut.errors import BismutError
from bismut.flows.variational import Solve, Variational
from bismut.mechanics import Scheme, State, System


@runtime_checkable
class Advances(Protocol):
    """What the ensemble engine needs of a scheme."""

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]: ...


class Flow(Scheme):
    """A scheme that states its own step."""

    constrained: ClassVar[bool] = False  # whether it can keep constraints

    def __check_init__(self):
        if isinstance(self.system, System) and self.system.constraints and not self.constrained:
            raise BismutError(f"{type(self).__name__} knows nothing of constraints. Use an action such as VariationalEuler or Verlet, or Langevin.")

    def details(self) -> list[str]:
        """Lines for `explain`."""
        return []

    @abstractmethod
    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory, and how it was solved."""


@singledispatch
def flow(scheme) -> Advances:
    """The flow of a scheme."""
    raise BismutError(f"A scheme such as VariationalEuler(system) was wanted, but {type(scheme).__name__} came.")


@flow.register
def _(scheme: Action) -> Advances:
    return Variational(scheme)


@flow.register
def _(scheme: Flow) -> Advances:
    return scheme
