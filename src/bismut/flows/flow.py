"""One step, whatever the scheme.

    φ_h(ω): (q0, p0) ↦ (q1, p1)

A `Flow` advances by itself; for an action the flow is derived (`variational`).
"""

from abc import abstractmethod
from functools import singledispatch
from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float

from bismut.actions import Action
from bismut.errors import BismutError
from bismut.flows.variational import Solve, Variational
from bismut.mechanics import Scheme, State


@runtime_checkable
class Advances(Protocol):
    """What the ensemble engine needs of a scheme."""

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]: ...


class Flow(Scheme):
    """A scheme that states its own step."""

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
