"""Quantities by name: functions of a state that a run file or the command line can name.

    energy, temperature, heat, ...                  registered, see `bismut list quantities`
    momentum (symmetry)                             a momentum map
    q  p  orientation (part, component, axis)       of the state itself

They compare equal when they mean the same, so that a second run of the same program compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut import ensembles
from bismut.ensembles import Observable
from bismut.ensembles.observable import measure
from bismut.errors import BismutError, nearest
from bismut.mechanics import Scheme, State
from bismut.registry import QUANTITIES

OF_STATE = ("q", "p", "orientation")
KEYS = {"momentum": ("symmetry",), "q": ("part", "component"), "p": ("part", "component"), "orientation": ("part", "component", "axis")}


@dataclass(frozen=True)
class Coordinates:
    """An array of q or p, or some of its components."""

    letter: str
    part: int
    component: tuple[int, ...]

    def __call__(self, state: State):
        leaves = jax.tree.leaves(getattr(state, self.letter))
        if self.part >= len(leaves):
            raise BismutError(f"part {self.part} was requested, but {self.letter} has {len(leaves)} (counted from 0).")
        return _component(leaves[self.part], self.component)


@dataclass(frozen=True)
class Orientation:
    """Where an axis fixed in the body points: R e. Of many bodies, one row each."""

    part: int
    component: tuple[int, ...]
    axis: tuple[float, ...]

    def __call__(self, state: State):
        turn = jax.tree.leaves(state.q)[self.part]
        return _component(turn @ jnp.asarray(self.axis, turn.dtype), self.component)


@dataclass(frozen=True)
class Above:
    """A quantity minus a level."""

    of: Any
    level: float

    def __call__(self, system, state, t):
        return _value(self.of, system, state, t) - self.level


@dataclass(frozen=True)
class Together:
    """Several quantities in one array."""

    of: tuple[Any, ...]

    def __call__(self, system, state, t):
        return jnp.concatenate([jnp.ravel(_value(one, system, state, t)) for one in self.of])


def quantity(asked: str | Mapping[str, Any], scheme: Scheme, own: Mapping[str, Callable]) -> Any:
    """The function of a state behind a name. `own` are those of a Python model; the name of a symmetry alone means its momentum map, that of an
    invariant its value."""
    table: dict[str, Any] = {"name": asked} if isinstance(asked, str) else dict(asked)
    name = table.pop("name")
    symmetries = scheme.system.symmetries
    if name in own:
        return own[name]
    if name in symmetries and not table and name not in (*QUANTITIES.names(), *OF_STATE):
        return ensembles.momentum(name)
    if name in scheme.system.invariants and not table and name not in (*QUANTITIES.names(), *OF_STATE):
        return ensembles.invariant(name)
    if name not in (*QUANTITIES.names(), "momentum", *OF_STATE):
        raise BismutError(f"there is no quantity {name!r}. {nearest(name, known(scheme, own))}")
    for key in table:
        if key not in KEYS.get(name, ()):
            allowed = ", ".join(KEYS.get(name, ())) or "no further keys"
            raise BismutError(f"{name} has no {key!r}: it takes {allowed}.")
    if name == "momentum":
        symmetry = table.get("symmetry")
        if symmetry is None:
            raise BismutError(f'momentum needs a symmetry, as in {{ name = "momentum", symmetry = ... }}. {nearest("", symmetries)}')
        if symmetry not in symmetries:
            raise BismutError(f"this system has no symmetry {symmetry!r}. {nearest(symmetry, symmetries)}")
        return ensembles.momentum(symmetry)
    index = table.get("component", ())
    component = tuple(index) if isinstance(index, list | tuple) else (index,)
    if name == "orientation":
        return Orientation(_rotation(scheme, table.get("part")), component, tuple(map(float, table.get("axis", (0.0, 0.0, 1.0)))))
    if name in OF_STATE:
        return Coordinates(name, table.get("part", 0), component)
    return QUANTITIES[name]


def needs_ledger(name: str) -> bool:
    """Whether a quantity is read from the ledger of a trajectory, so that the start must have one."""
    return name in QUANTITIES and getattr(QUANTITIES[name], "booked", False)


def _rotation(scheme: Scheme, part: int | None) -> int:
    """Which array of a point holds rotations: the one that is the identity at the origin. Three positions in space have the same shape."""
    leaves = jax.tree.leaves(scheme.space.origin(scheme.system.dtype))
    turns = [i for i, leaf in enumerate(leaves) if leaf.shape[-2:] == (3, 3) and np.array_equal(leaf, np.broadcast_to(np.eye(3), leaf.shape))]
    if not turns or part not in (None, *turns):
        where = f"rotations are in part {turns}" if turns else f"{scheme.space} has no rotations of space"
        raise BismutError(f"orientation{'' if part is None else f' of part {part}'} was requested, but {where}.")
    return turns[0] if part is None else part


def label(asked: str | Mapping[str, Any]) -> str:
    """What a quantity is called beside an axis: energy, q[0], momentum vertical."""
    if isinstance(asked, str):
        return asked
    name, part, component = asked["name"], asked.get("part"), asked.get("component", ())
    index = list(component) if isinstance(component, list | tuple) else [component]
    parts = [name, *([asked["symmetry"]] if "symmetry" in asked else []), *([f"part {part}"] if part is not None else [])]
    parts += [f"of axis {list(asked['axis'])}"] if "axis" in asked else []
    return " ".join(parts) + (str(index) if index else "")


def labels(asked: str | Mapping[str, Any], of: Any, scheme: Scheme, example: State) -> list[str]:
    """The label of each number of a quantity, in order."""
    shape = measure(of, scheme, label(asked), example)
    if np.prod(shape, dtype=int) == 1:
        return [label(asked)]
    names = of.names(scheme) if isinstance(of, Observable) else []
    return names or [f"{label(asked)}{list(index)}" for index in np.ndindex(*shape)]


def known(scheme: Scheme, own: Mapping[str, Callable]) -> list[str]:
    """Everything that can be asked for by a single word."""
    return [*QUANTITIES.names(), *scheme.system.symmetries, *scheme.system.invariants, *OF_STATE, *own]


def above(of: Any, level: float) -> Any:
    return Observable(f"above {level:g}", Above(of, level)) if level else of


def together(of: list[Any]) -> Any:
    return of[0] if len(of) == 1 else Observable("together", Together(tuple(of)))


def _value(of: Any, system, state: State, t):
    return of(system, state, t) if isinstance(of, Observable) else of(state)


def _component(array, index: tuple[int, ...]):
    if len(index) > array.ndim or any(i >= n for i, n in zip(index, array.shape, strict=False)):
        raise BismutError(f"component {list(index)} was requested, but the array has shape {array.shape} (indices count from 0).")
    return array[index]
