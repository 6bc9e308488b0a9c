"""Observables: functions of a state, evaluated per trajectory.

A plain function of a `State`, or of a state and the time if it names an argument `t`, is an observable. Those here also need the system (its energy,
a named momentum map) and are bound to it by the run.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.compile_cache import LRUCache, program_key
from bismut.errors import BismutError, ShapeError
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.bodies.inventory import inventory, term_energies, term_names
from bismut.mechanics.bodies.virial import boxed_potential
from bismut.mechanics.bodies.virial import pressure_tensor as pressure_tensor_of
from bismut.mechanics.state import BoxLedger
from bismut.programs.autobatching import rolled_up
from bismut.user_errors import reason_of


@dataclass(frozen=True)
class Observable:
    """A function of (system, state, t); `description` says what it measures. Called as bm.energy(scheme, state), with t where it matters."""

    name: str
    function: Callable
    description: str = ""
    booked: bool = False  # read from the ledger of a trajectory
    labels: Callable | None = None  # of a system: a name for each of its numbers

    def __repr__(self) -> str:
        return self.name

    def __call__(self, system: System | Scheme, state: State, t=None):
        return self.function(system.system if isinstance(system, Scheme) else system, state, t)

    def names(self, system: System | Scheme) -> list[str]:
        """A name for each of its numbers, where it has several that have names."""
        return [] if self.labels is None else self.labels(system.system if isinstance(system, Scheme) else system)


energy = Observable("energy", lambda system, state, t: system.energy(state, t), "H = ⟨p, v⟩ − L(q, v).")
kinetic_energy = Observable(
    "kinetic_energy",
    lambda system, state, t: system.kinetic_energy(state, t),
    "½⟨p − a, v⟩ with a = ∂L/∂v at v = 0: the part of a quadratic Hamiltonian that measures temperature.",
)
potential_energy = Observable(
    "potential_energy",
    # Not H − T, of which nothing is left where T is large; H alone does not say which part of it is U.
    lambda system, state, t: (
        system.in_box_of(state).potential(state.q, t) if system.has_lagrangian else system.energy(state, t) - system.kinetic_energy(state, t)
    ),
    "U(q) = −L(q, 0) as the system has it, with its box and its cutoffs, which a function of one's own does not see.",
)
energy_terms = Observable(
    "energy_terms",
    term_energies,
    "The potential energy term by term, with the box and the cutoffs of the system, in the order of energy_terms.names(system); their sum is U.",
    labels=term_names,
)
pressure = Observable(
    "pressure",
    lambda system, state, t: jnp.trace(pressure_tensor_of(system, state, t)) / len(boxed_potential(system)[1].lengths),
    "P = (1/dV) [Σ p·v − tr ∂U/∂ε] of points or bodies in a periodic box, ε a strain of places and box; cutoffs as the system has them.",
)
pressure_tensor = Observable("pressure_tensor", pressure_tensor_of, "P_ab = (1/V) [Σ p_a v_b − ∂U/∂ε_ab], a matrix (d, d).")


def _sides(system: System, state: State) -> Any:
    """Those of the box now."""
    return jnp.asarray(boxed_potential(system)[1].lengths) if state.box is None else state.box


def _bodies(system: System) -> int:
    known = inventory(system)
    assert known is not None
    return known.bodies


def _moves_taken(system: System, state: State, t: Any) -> Any:
    if not isinstance(state.ledger, BoxLedger):
        raise BismutError("volume_acceptance is that of volume moves, which bm.Isobaric(scheme, pressure=...) makes.")
    return state.ledger.taken / jnp.maximum(state.ledger.tried, 1)


box_lengths = Observable("box_lengths", lambda system, state, t: _sides(system, state), "The sides of the periodic box, which Isobaric changes.")
volume = Observable("volume", lambda system, state, t: jnp.prod(_sides(system, state)), "V, the product of the sides of the periodic box.")
density = Observable(
    "density",
    lambda system, state, t: _bodies(system) / jnp.prod(_sides(system, state)),
    "N/V, points or centres of bodies in the volume of the periodic box.",
)
volume_acceptance = Observable(
    "volume_acceptance", _moves_taken, "The fraction of volume moves that were accepted since their size was adapted, of Isobaric schemes."
)
temperature = Observable(
    "temperature",
    lambda system, state, t: 2 * system.kinetic_energy(state, t) / system.freedom,
    "kT = 2 T / n of one state, T its kinetic energy and n the degrees of freedom left by the constraints.",
)


def _booked(name: str, read: Callable, description: str) -> Observable:
    """An entry of the ledger of a trajectory."""

    def entry(system, state, t):
        if state.ledger is None:
            raise BismutError(f"{name} is read from the ledger of a trajectory, but the start has none. Make it with scheme.start(..., ledger=True).")
        return read(state.ledger)

    return Observable(name, entry, f"{description} Read from the ledger of a start made with ledger=True.", booked=True)


heat = _booked("heat", lambda ledger: ledger.heat, "Energy taken from the bath since the start.")
work = _booked(
    "work", lambda ledger: ledger.work, "Work done since the start by potentials that change in time, by forces and by stochastic potentials."
)
integrator_error = _booked("integrator_error", lambda ledger: ledger.error, "What is left of the change of H after subtracting heat and work.")
acceptance = _booked("acceptance", lambda ledger: ledger.accepted / jnp.maximum(ledger.steps, 1), "The fraction of steps that were accepted.")


@checked()
@cache  # the same object for the same name, so that a second run compiles nothing
def momentum(name: str) -> Observable:
    """J(q, p), the momentum map of a symmetry that the system names: one number, or an array for several generators."""
    return Observable(f"momentum({name!r})", lambda system, state, t: system.momentum_map(name, state), f"The momentum map of {name}.")


@checked()
@cache
def invariant(name: str) -> Observable:
    """I(q, p), an invariant that the system names: a Casimir of a Lie–Poisson system, say."""
    return Observable(f"invariant({name!r})", lambda system, state, t: system.invariant(name, state, t), f"The invariant {name}.")


def value_of(function: Callable, scheme: Scheme, state: State, t) -> jax.Array:
    """An observable of one state, in the precision of the system."""
    return jnp.asarray(bare_value(function, scheme, state, t), scheme.system.dtype)


def bare_value(function: Callable, scheme: Scheme, state: State, t) -> Any:
    """What the function returns, with the time if it names it."""
    if isinstance(function, Observable):
        return function(scheme, state, t)
    return with_time(function, state, t=t)


def with_time(function: Callable, *arguments, t) -> Any:
    """The function, with the time if it has an argument `t`."""
    try:
        named = inspect.signature(function).parameters.get("t")
    except ValueError:
        named = None
    if named is None or named.kind in (named.VAR_POSITIONAL, named.VAR_KEYWORD):
        return rolled_up(function, *arguments)
    return rolled_up(function, *arguments, t) if named.kind is named.POSITIONAL_ONLY else rolled_up(function, *arguments, t=t)


def measure(function: Callable, scheme: Scheme, name: str, example: State) -> tuple[int, ...]:
    """The shape of an observable, tried on shapes so that mistakes show before the run."""
    if not callable(function):
        raise ShapeError(f"observe[{name!r}] must be a function of a State or an observer, got {type(function).__name__}.")
    return _SHAPES.get(program_key((function, scheme, example)), lambda: _tried(function, scheme, name, example))


_SHAPES = LRUCache(256)  # tracing takes longer than many a run


def _tried(function: Callable, scheme: Scheme, name: str, example: State) -> tuple[int, ...]:
    zero = jnp.zeros((), scheme.system.dtype)
    try:
        value = jax.eval_shape(lambda state, t: bare_value(function, scheme, state, t), example, zero)
    except BismutError:
        raise
    except Exception as problem:
        raise ShapeError(f"observe[{name!r}] fails on a state of {scheme.space}: {reason_of(problem)}.") from problem
    if not hasattr(value, "shape") and not np.isscalar(value):
        raise ShapeError(f"observe[{name!r}] must return one array, got a {type(value).__name__}.")
    if jax.dtypes.issubdtype(getattr(value, "dtype", float), jax.dtypes.extended):
        raise ShapeError(f"observe[{name!r}] must return numbers, got random keys.")
    if np.issubdtype(np.dtype(getattr(value, "dtype", type(value))), np.complexfloating):
        raise ShapeError(f"observe[{name!r}] must return real numbers, got complex ones. Observe real and imaginary part.")
    return tuple(np.shape(value))
