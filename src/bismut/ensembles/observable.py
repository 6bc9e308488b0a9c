"""What is measured on the way: functions of a state, evaluated per trajectory.

A plain function of a `State` is an observable. Those here also need the system (its energy, a named momentum map) and are bound to it by the run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, DomainError, ShapeError
from bismut.mechanics import Scheme, State, System

RESERVED = ("final", "times", "outcome", "provenance", "observables")


@dataclass(frozen=True)
class Observable:
    """A function of (system, state, t)."""

    name: str
    function: Callable

    def __call__(self, system: System | Scheme, state: State, t=0.0):
        return self.function(system.system if isinstance(system, Scheme) else system, state, t)


energy = Observable("energy", lambda system, state, t: system.energy(state, t))
kinetic_energy = Observable("kinetic_energy", lambda system, state, t: system.kinetic_energy(state, t))
temperature = Observable("temperature", lambda system, state, t: 2 * system.kinetic_energy(state, t) / system.freedom)


def _booked(name: str, read: Callable) -> Observable:
    """An entry of the ledger of a trajectory."""

    def entry(system, state, t):
        if state.ledger is None:
            raise BismutError(f"{name} is read from the ledger of a trajectory, but the start has none. Make it with scheme.start(..., ledger=True).")
        return read(state.ledger)

    return Observable(name, entry)


heat = _booked("heat", lambda ledger: ledger.heat)  # energy taken from the bath since the start
work = _booked("work", lambda ledger: ledger.work)  # done by potentials that change in time, forces and stochastic potentials
integrator_error = _booked("integrator_error", lambda ledger: ledger.error)  # what is left of ΔH
acceptance = _booked("acceptance", lambda ledger: ledger.accepted / jnp.maximum(ledger.steps, 1))  # accepted over tried steps


@lru_cache  # the same object for the same name, so that a second run compiles nothing
def momentum(name: str) -> Observable:
    """The momentum map of a symmetry named in the system."""
    return Observable(f"momentum({name!r})", lambda system, state, t: system.momentum_map(name, state))


def bind(observe: Mapping[str, Callable], scheme: Scheme, example: State) -> Callable:
    """All observables as one function of (state, t); each is tried on shapes now, so that mistakes show before the run."""
    system = scheme.system
    functions = {}
    for name, observable in observe.items():
        if name in RESERVED or "/" in name:
            raise DomainError(f"An observable cannot be called {name!r}: results keep that name for themselves ({', '.join(RESERVED)}, and '/').")
        if not callable(observable):
            raise ShapeError(f"observe[{name!r}] must be a function of a State, but {type(observable).__name__} came.")
        functions[name] = _bound(observable, system)
        try:
            shape = jax.eval_shape(functions[name], example, jnp.zeros((), system.dtype))
        except BismutError:
            raise
        except Exception as problem:
            raise ShapeError(f"observe[{name!r}] fails on a state of {system.space}: {problem}") from problem
        if not hasattr(shape, "shape"):
            raise ShapeError(f"observe[{name!r}] must return one array, but it returned a {type(shape).__name__}.")
    return lambda state, t: {name: jnp.asarray(function(state, t), system.dtype) for name, function in functions.items()}


def _bound(observable: Callable, system: System) -> Callable:
    if isinstance(observable, Observable):
        return lambda state, t: observable(system, state, t)
    return lambda state, t: observable(state)


def shapes(observe: Callable, example: State, dtype: np.dtype) -> dict[str, tuple[int, ...]]:
    """The shape of each observable."""
    return {name: leaf.shape for name, leaf in jax.eval_shape(observe, example, jnp.zeros((), dtype)).items()}
