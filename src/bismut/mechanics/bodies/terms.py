"""Terms that act together.

    U = U₁ + U₂ + ...          energies add up
    γ = (γ₁, γ₂, ...)          stochastic potentials stand side by side, each with its own Wiener processes

Both are written `a + b`: what acts is a sum of what is known. A plain function of (x, R) is a term, too; like every function of a system it may name
`t` and `parameters`. A number in front scales: `0.5 * dipoles(...)`.

What acts on bodies one by one and what acts between two of them is known as such (`BodyTerm`, `PairTerm`): all of the former are one loop over
bodies, all of the latter one loop over pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from bismut.errors import DomainError, ShapeError
from bismut.host import at_once
from bismut.mechanics.bodies.box import Box, box_of
from bismut.mechanics.bodies.pairs import PairTerm, Placed, kept, summed
from bismut.mechanics.function import UserFunction, user_function
from bismut.repetition import each, total


@dataclass(frozen=True)
class Whole:
    """A function of all bodies at once; `box` is the one that it looks after by itself, if that is known."""

    function: UserFunction
    factor: Any = None
    box: Box | None = None

    def scaled(self, factor) -> Whole:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> Whole:
        """A function of everything looks after a box by itself."""
        del box
        return self

    def at(self, x, R, t, parameters):
        value = self.function(x, R, t=t, parameters=parameters)
        return value if self.factor is None else jnp.asarray(self.factor, x.dtype) * value


@dataclass(frozen=True)
class BodyTerm:
    """A function of one body for all of them: value(placed) ↦ one number, or several for noises; seen(x) ↦ its data, a tree of arrays (K, ...)."""

    value: Callable
    seen: Callable
    factor: Any = None

    def scaled(self, factor) -> BodyTerm:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> BodyTerm:
        """What acts on a body where it is does not know of images."""
        del box
        return self

    def at(self, body: Placed):
        value = self.value(body)
        return value if self.factor is None else jnp.asarray(self.factor, body.x.dtype) * value


class Terms:
    """Functions of (x, R), positions (K, 3) and orientations (K, 3, 3), that act together. `words` name them when printed."""

    kind = "term"
    __array_ufunc__ = None  # a NumPy number in front scales the term and does not try to look into it

    def __init__(self, function: Callable, words: str | None = None):
        if isinstance(function, Terms) and not isinstance(function, type(self)):
            raise ShapeError(f"Expected a {self.kind}, got a {function.kind}: {function}. Give it to the other argument of rigid_bodies.")
        one = user_function(self.kind, function, ("x", "R"))
        if one is None:
            raise ShapeError(f"A {self.kind} must be a function of (x, R), got None.")
        self._parts: tuple[Whole | BodyTerm | PairTerm, ...] = (Whole(one),)
        self._words = words or getattr(function, "__name__", type(function).__name__).replace("<lambda>", "own function")

    @classmethod
    def of(cls, part: BodyTerm | PairTerm, words: str) -> Any:
        """One term that is known as data."""
        return cls._with([part], words)

    @property
    def parts(self) -> tuple[Whole | BodyTerm | PairTerm, ...]:
        """What acts together, as data."""
        return self._parts

    @property
    def boxes(self) -> set[Box]:
        """Those of the terms that have one."""
        return {part.box for part in self._parts if not isinstance(part, BodyTerm) and part.box is not None}

    def __call__(self, x, R=None, t=0.0, parameters=None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define how its terms act together.")

    def inside(self, box: Any) -> Any:
        """The same in a periodic box: pair terms see nearest images, and need a cutoff of at most half a side. Plain functions stay what they are."""
        if not any(isinstance(part, PairTerm) for part in self._parts):
            raise DomainError(f"A box acts on pair terms, such as pair_potential(...), but there are none in {self}.")
        known = box_of(box)
        if known is None:
            raise ShapeError("A box must be a Box, such as Box((8.0, 8.0, 8.0)), got None.")
        return self._with([part.inside(known) for part in self._parts], self._words)

    def looking_after(self, boxes: set[Box]) -> Any:
        """The same functions, known to look after a box by themselves, if there is one."""
        box = next(iter(boxes)) if len(boxes) == 1 else None
        return self._with([replace(part, box=box) if isinstance(part, Whole) else part for part in self._parts], self._words)

    @classmethod
    def _with(cls, parts, words: str) -> Any:
        new = object.__new__(cls)
        new._parts, new._words = tuple(parts), words
        return new

    def __add__(self, other) -> Any:
        if isinstance(other, int | float) and other == 0:  # so that sum([...]) works
            return self
        if not callable(other):
            return NotImplemented
        more = other if isinstance(other, type(self)) else type(self)(other)
        return self._with((*self._parts, *more._parts), f"{self._words} + {more._words}")

    def __radd__(self, other) -> Any:
        if isinstance(other, int | float) and other == 0:
            return self
        return type(self)(other) + self if callable(other) else NotImplemented

    def __mul__(self, factor) -> Any:
        if callable(factor) or jnp.shape(factor) != ():
            return NotImplemented
        words = f"({self._words})" if len(self._parts) > 1 else self._words
        return self._with([part.scaled(factor) for part in self._parts], f"{factor} · {words}")

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._words})"


class Potential(Terms):
    """U(x, R), an energy of bodies with positions x (K, 3) and orientations R (K, 3, 3). Potentials add with `+`; a number in front scales them.

    function  of (x, R), and of t and parameters if it names them
    words     the name it is printed with

    Where it is called with one argument, that is q: positions alone, as on Euclidean(3) ** K, or a pair (x, R).
    """

    kind = "potential"

    @at_once
    def __call__(self, x, R=None, t=0.0, parameters=None):
        x, R = x if isinstance(x, tuple) else (x, R)
        values = [part.at(x, R, t, parameters) for part in self._parts if isinstance(part, Whole)]
        alone = [part for part in self._parts if isinstance(part, BodyTerm)]
        between = [part for part in self._parts if isinstance(part, PairTerm)]
        if alone:
            energy = lambda x, R, data: _sum([part.at(Placed(x, R, own)) for part, own in zip(alone, data, strict=True)])
            values.append(total(energy, x, R, [part.seen(x) for part in alone]))
        if between:
            values.append(summed(between, x, R, t, parameters))
        return _sum(values)


class Noise(Terms):
    """γ(x, R), stochastic potentials of bodies, one value per Wiener process; with `+` they stand side by side. Arguments as for Potential."""

    kind = "noise"

    @at_once
    def __call__(self, x, R=None, t=0.0, parameters=None):
        x, R = x if isinstance(x, tuple) else (x, R)

        def values(part: Whole | BodyTerm | PairTerm):
            if isinstance(part, Whole):
                return part.at(x, R, t, parameters)
            if isinstance(part, PairTerm):
                return kept(part, x, R, t, parameters)
            return each(lambda x, R, data: part.at(Placed(x, R, data)), x, R, part.seen(x))

        return jnp.concatenate([jnp.ravel(values(part)) for part in self._parts])


def _sum(values: list):
    return sum(values[1:], values[0])
