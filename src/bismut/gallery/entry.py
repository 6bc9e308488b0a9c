"""A gallery system: a name, a paragraph of physics, a builder with parameters, defaults that work, and exact facts.

Tests, documentation, benchmarks and the command line all iterate over the same entries. A fact is a sentence, a small measurement and the value that
mathematics gives for it; `Trial` is what a fact may look at: the system with its defaults and one short trajectory, computed once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import getfile, signature
from pathlib import Path
from typing import Any, NamedTuple

from bismut.actions import VariationalEuler
from bismut.drawing import Drawing
from bismut.ensembles import Trajectory, trajectory
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, nearest
from bismut.mechanics import Maxwell, Scheme, State, System, time_of
from bismut.noise import Wiener


class Measured(NamedTuple):
    """A fact beside its measurement."""

    statement: str
    measured: float
    expected: float
    tolerance: float

    @property
    def held(self) -> bool:
        return abs(self.measured - self.expected) <= self.tolerance

    def __str__(self):
        mark = "✓" if self.held else "✗"
        return f"{mark} {self.statement}: {self.measured:.6g}, expected {self.expected:.6g} ± {self.tolerance:.2g}"


@dataclass(frozen=True)
class Fact:
    """A sentence, a function of a `Trial` that measures it, the value expected and how far off it may be."""

    statement: str
    measure: Callable[[Trial], Any]
    expected: float = 0.0
    tolerance: float = 1e-11

    def check(self, trial: Trial) -> Measured:
        return Measured(self.statement, float(self.measure(trial)), self.expected, self.tolerance)


def _docstring(build: Callable[..., Any]) -> str:
    """The docstring of the file that a function is from, read there: `python -OO` drops it."""
    try:
        return ast.get_docstring(ast.parse(Path(getfile(build)).read_text(encoding="utf-8"))) or ""
    except (OSError, TypeError, SyntaxError):  # made at a prompt
        return ""


@dataclass(frozen=True)
class Entry:
    """`build(**parameters)` gives the system; its signature lists the parameters and their defaults.

    start    a start state (point and velocity, or point and temperature) for a scheme of the system with any parameters
    scheme   the scheme that suits the system
    step     a step that suits the scheme
    facts    what is known exactly, with default parameters
    kept     names of those symmetries of the system that the default noise keeps; all of them unless said otherwise
    picture  how it is drawn: of the system and points q, time along the first axis, a `Drawing`; after reduction by symmetry of (a, μ); without it
             as its space and masses suggest
    """

    name: str
    module_docstring: str | None
    build: Callable[..., System]
    start: Callable[[Scheme], State | Maxwell]
    scheme: Callable[[System], Scheme] = VariationalEuler
    step: float = 0.01
    facts: tuple[Fact, ...] = ()
    kept: tuple[str, ...] | None = None
    picture: Callable[[System, Any], Drawing] | None = None

    def __repr__(self) -> str:
        return f"Entry({self.name!r}: {self.title})"

    @property
    def physics(self) -> str:
        """The docstring of the entry's file: what it is, its equations, what is known of it."""
        return (self.module_docstring or _docstring(self.build)).strip()

    @property
    def title(self) -> str:
        """The first line of the physics."""
        return next(iter(self.physics.splitlines()), self.name)

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of what `build` takes."""
        return {name: parameter.default for name, parameter in signature(self.build).parameters.items()}

    def system(self, parameters: Mapping[str, Any] | None = None) -> System:
        """The system with some parameters other than their defaults; an unknown name is refused with the nearest known one."""
        for name in parameters or {}:
            if name not in self.parameters:
                raise BismutError(f"{self.name} has no parameter {name!r}. {nearest(name, self.parameters)}")
        return self.build(**(parameters or {}))

    def trial(self, steps: int = 100, seed: int = 0) -> Trial:
        """The system with its defaults, ready to be looked at."""
        return Trial(self, steps, seed)


class Trial:
    """An entry with its default system, scheme and start, and one trajectory of `steps` default steps, each made when first asked for."""

    def __init__(self, entry: Entry, steps: int, seed: int):
        self.entry, self.steps, self.seed, self.step = entry, steps, seed, entry.step

    @cached_property
    def system(self) -> System:
        return self.entry.build()

    @cached_property
    def scheme(self) -> Scheme:
        return self.entry.scheme(self.system)

    @cached_property
    def start(self) -> State | Maxwell:
        return self.entry.start(self.scheme)

    @cached_property
    def state(self) -> State:
        """The start as one state; of Maxwell momenta, the first draw."""
        return start_at(self.scheme, self.start, time_of(self.start)).one(Wiener(self.seed))

    @cached_property
    def trajectory(self) -> Trajectory:
        return trajectory(self.scheme, self.state, step=self.step, steps=self.steps, seed=self.seed)

    @cached_property
    def facts(self) -> tuple[Measured, ...]:
        return tuple(fact.check(self) for fact in self.entry.facts)
