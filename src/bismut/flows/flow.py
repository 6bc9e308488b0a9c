"""One step, whatever the scheme.

    φ_h(ω): (q0, p0) ↦ (q1, p1)

A `Flow` advances by itself; for an action the flow is derived (`variational`). Where a step ends with what the next one begins with, say the force
at q1, a flow is `CachesStep` (first same as last, FSAL): a run hands it on instead of computing it twice. It is computed anew where a run begins, by
the same kind of program, so a run that is cut equals one that is not, bit for bit.
"""

from abc import abstractmethod
from functools import singledispatch
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.errors import BismutError
from bismut.flows.hamiltonian_step import CoadjointFlow, HamiltonianFlow
from bismut.flows.variational import Solve, VariationalFlow
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.heat import Temperature


@runtime_checkable
class Advances(Protocol):
    """What the ensemble engine needs of a scheme."""

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]: ...


@runtime_checkable
class CachesStep(Advances, Protocol):
    """A flow that can use again what the step before has found."""

    def init_cache(self, state: State, t) -> Any:
        """What a step from here will use; () for nothing."""
        ...

    def step_with_cache(self, state: State, cache: Any, h, dW: Float[Array, " m"], t) -> tuple[State, Any, Solve]:
        """`advance` with what was found before, and what is found now."""
        ...


def init_cache(stepper: Advances, state: State, t) -> Any:
    return stepper.init_cache(state, t) if isinstance(stepper, CachesStep) else ()


def step_with_cache(stepper: Advances, state: State, cache: Any, h, dW: Float[Array, " m"], t) -> tuple[State, Any, Solve]:
    if isinstance(stepper, CachesStep):
        return stepper.step_with_cache(state, cache, h, dW, t)
    new, solve = stepper.advance(state, h, dW, t)
    return new, (), solve


class Flow(Scheme):
    """A scheme that states its own step."""

    constrained: ClassVar[bool] = False  # whether it can keep constraints

    def __check_init__(self):
        if isinstance(self.system, System) and self.system.constraints and not self.constrained:
            raise BismutError(f"{type(self).__name__} does not support constraints. Use an action such as VariationalEuler or Verlet, or Langevin.")

    def details(self) -> list[str]:
        """Lines for `explain`."""
        return []

    @abstractmethod
    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        """One step of one trajectory, and how it was solved."""


class BathFlow(Flow):
    """A flow with a temperature, whose step hands on what it ends with."""

    temperature: eqx.AbstractVar[Temperature]

    def kT(self, t) -> Float[Array, ""]:
        return self.temperature(t, self.system.parameters)

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        new, _, solve = self.step_with_cache(state, self.init_cache(state, t), h, dW, t)
        return new, solve

    @abstractmethod
    def init_cache(self, state: State, t) -> Any:
        """What a step from here will use; () for nothing."""

    @abstractmethod
    def step_with_cache(self, state: State, cache: Any, h, dW: Float[Array, " m"], t) -> tuple[State, Any, Solve]:
        """`advance` with what was found before, and what is found now."""


@singledispatch
def flow(scheme) -> Advances:
    """The flow of a scheme."""
    raise BismutError(f"Expected a scheme such as VariationalEuler(system), got {type(scheme).__name__}.")


@flow.register
def _(scheme: Action) -> Advances:
    return VariationalFlow(scheme, with_ledger=True)


@flow.register
def _(scheme: DiscreteHamiltonian) -> Advances:
    return CoadjointFlow(scheme) if scheme.system.reduced else HamiltonianFlow(scheme)


@flow.register
def _(scheme: Flow) -> Advances:
    return scheme
