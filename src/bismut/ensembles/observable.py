"""What is measured on the way: functions of a state, evaluated per trajectory.

A plain function of a `State` is an observable. Those here also need the system (its energy, a named momentum map) and are bound to it by the run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, ShapeError
from bismut.mechanics import Scheme, State, System
from bismut.showing import called


@dataclass(frozen=True)
class Observable:
    """A function of (system, state, t); `words` say what it measures. Called as bm.energy(scheme, state)."""

    name: str
    function: Callable
    words: str = ""

    def __repr__(self) -> str:
        return self.name

    def __call__(self, system: System | Scheme, state: State, t=0.0):
        return self.function(system.system if isinstance(system, Scheme) else system, state, t)


energy = Observable("energy", lambda system, state, t: system.energy(state, t), "H = ⟨p, v⟩ − L(q, v).")
kinetic_energy = Observable(
    "kinetic_energy",
    lambda system, state, t: system.kinetic_energy(state, t),
    "½⟨p − a, v⟩ with a = ∂L/∂v at v = 0: the part of a quadratic Hamiltonian that measures temperature.",
)
temperature = Observable(
    "temperature",
    lambda system, state, t: 2 * system.kinetic_energy(state, t) / system.freedom,
    "kT = 2 T / n of one state, T its kinetic energy and n the degrees of freedom that constraints leave.",
)


def _booked(name: str, read: Callable, words: str) -> Observable:
    """An entry of the ledger of a trajectory."""

    def entry(system, state, t):
        if state.ledger is None:
            raise BismutError(f"{name} is read from the ledger of a trajectory, but the start has none. Make it with scheme.start(..., ledger=True).")
        return read(state.ledger)

    return Observable(name, entry, f"{words} Read from the ledger of a start made with ledger=True.")


heat = _booked("heat", lambda ledger: ledger.heat, "Energy taken from the bath since the start.")
work = _booked(
    "work", lambda ledger: ledger.work, "Work done since the start by potentials that change in time, by forces and by stochastic potentials."
)
integrator_error = _booked("integrator_error", lambda ledger: ledger.error, "What is left of the change of H when heat and work are taken away.")
acceptance = _booked("acceptance", lambda ledger: ledger.accepted / jnp.maximum(ledger.steps, 1), "The share of steps that were accepted.")


@cache  # the same object for the same name, so that a second run compiles nothing
def momentum(name: str) -> Observable:
    """J(q, p), the momentum map of a symmetry that the system names: one number, or an array for several generators."""
    return Observable(f"momentum({name!r})", lambda system, state, t: system.momentum_map(name, state), f"The momentum map of {name}.")


class Measure(eqx.Module):
    """An observable bound to a system, for all trajectories of a block at once."""

    system: System
    function: Callable = eqx.field(static=True)

    def __repr__(self) -> str:
        return called(self.function)

    def one(self, state: State, t) -> jax.Array:
        value = self.function(self.system, state, t) if isinstance(self.function, Observable) else self.function(state)
        return jnp.asarray(value, self.system.dtype)

    def __call__(self, states: State, t) -> jax.Array:
        return jax.vmap(lambda state: self.one(state, t))(states)

    def shape(self, example: State) -> tuple[int, ...]:
        return jax.eval_shape(self.one, example, jnp.zeros((), self.system.dtype)).shape


def measure(function: Callable, scheme: Scheme, name: str, example: State) -> Measure:
    """An observable made ready for a scheme, and tried on shapes so that mistakes show before the run."""
    system = scheme.system
    if not callable(function):
        raise ShapeError(f"observe[{name!r}] must be a function of a State or an observer, but {type(function).__name__} came.")
    found = Measure(system, function)
    bare = (lambda state, t: function(system, state, t)) if isinstance(function, Observable) else (lambda state, t: function(state))
    try:
        shape = jax.eval_shape(bare, example, jnp.zeros((), system.dtype))
    except BismutError:
        raise
    except Exception as problem:
        raise ShapeError(f"observe[{name!r}] fails on a state of {system.space}: {problem}") from problem
    if not hasattr(shape, "shape") and not np.isscalar(shape):
        raise ShapeError(f"observe[{name!r}] must return one array, but it returned a {type(shape).__name__}.")
    return found
