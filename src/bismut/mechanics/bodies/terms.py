"""Terms that act together.

    U = U₁ + U₂ + ...          energies add up
    γ = (γ₁, γ₂, ...)          stochastic potentials stand side by side, each with its own Wiener processes

Both are written `a + b`: what acts is a sum of what is known. A plain function of (x, R) is a term, too; like every function of a system it may name
`t` and `parameters`. A number in front scales: `0.5 * dipoles(...)`.

What acts on bodies one by one and what acts between two of them is known as such (`BodyTerm`, `PairTerm`): all of the former are one loop over
bodies, all of the latter one loop over pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bismut.body_loops import each, total
from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.box import Box, box_of
from bismut.mechanics.bodies.lattice import LatticeTerm
from bismut.mechanics.bodies.pairs import PairTerm, Placed, per_pair, sum_over_pairs
from bismut.mechanics.function import Adapter, BoxedParameters, UserFunction, required_function
from bismut.programs.evaluation import numpy_eager


@dataclass(frozen=True)
class ManyBodyTerm:
    """A function of all bodies at once; `box` is the one that it takes images in by itself, if that is known."""

    function: UserFunction
    name: str
    factor: Any = None
    box: Box | None = None

    @property
    def wants(self) -> tuple[str, ...]:
        return self.function.wants

    def scaled(self, factor) -> ManyBodyTerm:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> ManyBodyTerm:
        """A function of all bodies takes images in a box by itself; pair terms within it, which do not, are not left without them silently."""
        if self.box != box and getattr(self.function.function, "periodic", False):
            raise DomainError(
                f"{self.name} holds pair terms that a box cannot be given to from outside. Put them into {box} first: with .inside(box)."
            )
        return self

    def at(self, x, R, t, parameters):
        value = self.function(x, R, t=t, parameters=parameters)
        return value if self.factor is None else jnp.asarray(self.factor, x.dtype) * value


@dataclass(frozen=True)
class BodyTerm:
    """A function of one body for all of them: value(placed) ↦ one number, or several for noises; data(x) ↦ its data, a tree of arrays (K, ...)."""

    value: Callable
    data: Callable
    name: str
    factor: Any = None
    wants: ClassVar[tuple[str, ...]] = ()

    def scaled(self, factor) -> BodyTerm:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> BodyTerm:
        """What acts on a single body has no images."""
        del box
        return self

    def at(self, body: Placed):
        value = self.value(body)
        return value if self.factor is None else jnp.asarray(self.factor, body.x.dtype) * value


@dataclass(frozen=True, eq=False)
class TupleTerm:
    """A function of a few points, for given tuples of them: value(differences between successive points, numbers) ↦ an energy."""

    value: Callable
    members: np.ndarray
    own: tuple
    name: str
    box: Box | None = None
    factor: Any = None
    wants: ClassVar[tuple[str, ...]] = ()

    def scaled(self, factor) -> TupleTerm:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> TupleTerm:
        return replace(self, box=box)

    def at(self, x, strain=None):
        """The sum over all tuples, with differences strained by (1 + strain) if given."""
        if self.members.max(initial=-1) >= x.shape[0]:
            raise ShapeError(f"{self.name} name point {self.members.max()}, but the {x.shape[0]} points are numbered 0 ... {x.shape[0] - 1}.")
        count = len(self.members)
        own = [jnp.broadcast_to(jnp.asarray(value, x.dtype), (count,)) for value in self.own]

        def energy(*arguments):
            places, numbers = arguments[: self.members.shape[1]], arguments[self.members.shape[1] :]
            steps = [after - before for before, after in pairwise(places)]
            steps = steps if self.box is None else [self.box.nearest(r) for r in steps]
            steps = steps if strain is None else [r + strain @ r for r in steps]
            return self.value(*steps, *numbers)

        value = total(energy, *(x[self.members[:, n]] for n in range(self.members.shape[1])), *own)
        return value if self.factor is None else jnp.asarray(self.factor, x.dtype) * value


Term = ManyBodyTerm | BodyTerm | PairTerm | LatticeTerm | TupleTerm


class Terms(Adapter):
    """Functions of (x, R), positions (K, 3) and orientations (K, 3, 3), that act together. `words` name them when printed."""

    kind = "term"
    __array_ufunc__ = None  # a NumPy number in front scales the term

    def __init__(self, function: Callable, label: str | None = None):
        if isinstance(function, Terms) and not isinstance(function, type(self)):
            raise ShapeError(f"Expected a {self.kind}, got a {function.kind}: {function}. Give it to the other argument of rigid_bodies.")
        if function is None:
            raise ShapeError(f"A {self.kind} must be a function of (x, R), got None.")
        name = label or getattr(function, "__name__", type(function).__name__).replace("<lambda>", "own function")
        self.parts: tuple[Term, ...] = (ManyBodyTerm(required_function(self.kind, function, ("x", "R")), name),)
        self._name = name

    @classmethod
    def of(cls, part: BodyTerm | PairTerm | LatticeTerm | TupleTerm) -> Any:
        """One term that is known as data."""
        return cls._with([part], part.name)

    @property
    def wants(self) -> tuple[str, ...]:
        named = {name for part in self.parts for name in part.wants} | ({"parameters"} if self.follows_box else set())
        return tuple(name for name in ("t", "parameters") if name in named)

    @property
    def boxes(self) -> set[Box]:
        """Those of the terms that have one."""
        return {part.box for part in self.parts if not isinstance(part, BodyTerm) and part.box is not None}

    @property
    def follows_box(self) -> bool:
        """Whether they are made for a box whose sides change (`changing_box`); these come with the parameters."""
        return any(isinstance(part, PairTerm) and part.least is not None for part in self.parts)

    @property
    def periodic(self) -> bool:
        """Whether there are terms that see images."""
        return any(isinstance(part, PairTerm | LatticeTerm | TupleTerm) for part in self.parts)

    @abstractmethod
    def __call__(self, x, R=None, t=None, parameters=None) -> Any:
        """Their values at positions x and orientations R."""

    def inside(self, box: Any) -> Any:
        """The same in a periodic box: pair terms see nearest images, and need a cutoff of at most half a side. Plain functions stay what they are."""
        if not self.periodic:
            raise DomainError(f"A box acts on pair terms, such as pair_potential(...), but there are none in {self}.")
        known = box_of(box)
        if known is None:
            raise ShapeError("A box must be a Box, such as Box((8.0, 8.0, 8.0)), got None.")
        name, placed = self._name, [part.inside(known) for part in self.parts]
        for old, new in zip(self.parts, placed, strict=True):
            name = name if old.name == new.name else name.replace(old.name, new.name)
        return self._with(placed, name)

    def with_own_images(self, boxes: set[Box]) -> Any:
        """The same functions, known to take images in a box by themselves, if there is one."""
        box = next(iter(boxes)) if len(boxes) == 1 else None
        return self._with([replace(part, box=box) if isinstance(part, ManyBodyTerm) else part for part in self.parts], self._name)

    def single(self) -> list[Any]:
        """Each of the terms by itself."""
        return [self._with([part], part.name) for part in self.parts]

    @classmethod
    def _with(cls, parts, name: str) -> Any:
        new = object.__new__(cls)
        new.parts, new._name = tuple(parts), name
        return new

    def __add__(self, other) -> Any:
        if isinstance(other, int | float) and other == 0:  # so that sum([...]) works
            return self
        if not callable(other):
            return NotImplemented
        more = other if isinstance(other, type(self)) else type(self)(other)
        return self._with((*self.parts, *more.parts), f"{self._name} + {more._name}")

    def __radd__(self, other) -> Any:
        if isinstance(other, int | float) and other == 0:
            return self
        return type(self)(other) + self if callable(other) else NotImplemented

    def __mul__(self, factor) -> Any:
        if callable(factor) or jnp.shape(factor) != ():
            return NotImplemented
        name = f"({self._name})" if len(self.parts) > 1 else self._name
        return self._with([part.scaled(factor) for part in self.parts], f"{factor} · {name}")

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"


class Potential(Terms):
    """U(x, R), an energy of bodies with positions x (K, 3) and orientations R (K, 3, 3). Potentials add with `+`; a number in front scales them.

    function  of (x, R), and of t and parameters if it names them
    words     the name it is printed with

    Where it is called with one argument, that is q: positions alone, as on Euclidean(3) ** K, or a pair (x, R).
    """

    kind = "potential"

    @numpy_eager
    def __call__(self, x, R=None, t=None, parameters=None):
        x, R = x if isinstance(x, tuple) else (x, R)
        parameters, lengths = _unboxed(parameters)
        values = [part.at(x, R, t, parameters) for part in self.parts if isinstance(part, ManyBodyTerm)]
        alone = [part for part in self.parts if isinstance(part, BodyTerm)]
        between = [part for part in self.parts if isinstance(part, PairTerm)]
        if alone:
            energy = lambda x, R, data: _sum([part.at(Placed(x, R, own)) for part, own in zip(alone, data, strict=True)])
            values.append(total(energy, x, R, [part.data(x) for part in alone]))
        values += [part.at(x, R) for part in self.parts if isinstance(part, LatticeTerm)]  # before pairs, as they refuse a missing box
        values += [part.at(x) for part in self.parts if isinstance(part, TupleTerm)]
        if between:
            values.append(sum_over_pairs(between, x, R, t, parameters, lengths=lengths))
        return _sum(values)

    def virial(self, x, R, t, parameters) -> Any:
        """−∂U/∂ε at ε = 0 under a strain (1 + ε) of all places and of the box: Σ r ⊗ f over pairs, a matrix (d, d). Orientations stay."""
        if others := [part for part in self.parts if isinstance(part, BodyTerm | ManyBodyTerm)]:
            raise DomainError(f"A virial is that of pairs and tuples, but {len(others)} of the {len(self.parts)} terms of {self} act otherwise.")
        parameters, lengths = _unboxed(parameters)

        def strained(strain):
            others = [part.at(x, R, strain) for part in self.parts if isinstance(part, LatticeTerm)]
            others += [part.at(x, strain) for part in self.parts if isinstance(part, TupleTerm)]
            between = [part for part in self.parts if isinstance(part, PairTerm)]
            return _sum([*others, *([sum_over_pairs(between, x, R, t, parameters, strain, lengths)] if between else [])])

        return -jax.grad(strained)(jnp.zeros((x.shape[-1],) * 2, x.dtype))


class Noise(Terms):
    """γ(x, R), stochastic potentials of bodies, one value per Wiener process; with `+` they stand side by side. Arguments as for Potential."""

    kind = "noise"

    @numpy_eager
    def __call__(self, x, R=None, t=None, parameters=None):
        x, R = x if isinstance(x, tuple) else (x, R)

        def values(part: Term):
            if isinstance(part, ManyBodyTerm):
                return part.at(x, R, t, parameters)
            if isinstance(part, PairTerm):
                return per_pair(part, x, R, t, parameters)
            if isinstance(part, BodyTerm):
                return each(lambda x, R, data: part.at(Placed(x, R, data)), x, R, part.data(x))
            raise DomainError(f"{part.name} is an energy, and no noise.")

        return jnp.concatenate([jnp.ravel(values(part)) for part in self.parts])


def in_box(name: str, given: Callable | None, box: Any, axes: int) -> Callable | None:
    """What acts, in a box if there is one: a Box, its sides, or a number for a cube."""
    known = box_of(box, axes)
    if known is None or given is None:
        return given
    if not isinstance(given, Terms):
        raise DomainError(f"box= acts on pair terms, but {name} is one function of all bodies. Use pair_potential(...), or box.nearest(r) inside it.")
    for part in given.parts:
        part.inside(known)  # refuses what would not see it
    return given.inside(known) if given.periodic else given


def _unboxed(parameters: Any) -> tuple[Any, Any]:
    """Parameters, and the sides of a box that changes, if they come with them."""
    return (parameters.own, parameters.lengths) if isinstance(parameters, BoxedParameters) else (parameters, None)


def _sum(values: list):
    return sum(values[1:], values[0])
