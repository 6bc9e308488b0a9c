"""Terms that act together.

    U = U₁ + U₂ + ...          energies add up
    γ = (γ₁, γ₂, ...)          stochastic potentials stand side by side, each with its own Wiener processes

Both are written `a + b`: what acts is a sum of what is known. A plain function of (x, R) is a term, too; like every function of a system it may name
`t` and `parameters`. A number in front scales: `0.5 * dipoles(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from bismut.errors import ShapeError
from bismut.mechanics.law import Law, law


class Terms:
    """Functions of (x, R), positions (K, 3) and orientations (K, 3, 3), that act together. `words` name them when printed."""

    kind = "term"
    __array_ufunc__ = None  # a NumPy number in front scales the term and does not try to look into it

    def __init__(self, function: Callable, words: str | None = None):
        if isinstance(function, Terms) and not isinstance(function, type(self)):
            raise ShapeError(f"A {self.kind} was wanted, but a {function.kind} came: {function}. Give it to the other argument of rigid_bodies.")
        one = law(self.kind, function, ("x", "R"))
        if one is None:
            raise ShapeError(f"A {self.kind} must be a function of (x, R), but None came.")
        self._parts: tuple[tuple[Law, Any], ...] = ((one, None),)
        self._words = words or getattr(function, "__name__", type(function).__name__).replace("<lambda>", "own function")

    def __call__(self, x, R, t=0.0, parameters=None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must say how its terms act together.")

    def _values(self, x, R, t, parameters) -> list:
        values = [(part(x, R, t=t, parameters=parameters), factor) for part, factor in self._parts]
        return [value if factor is None else jnp.asarray(factor, x.dtype) * value for value, factor in values]

    def _with(self, parts, words: str) -> Any:
        new = object.__new__(type(self))
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
        return self._with([(part, factor if old is None else factor * old) for part, old in self._parts], f"{factor} · {words}")

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._words})"


class Potential(Terms):
    """U(x, R), an energy of bodies with positions x (K, 3) and orientations R (K, 3, 3). Adds up with `+`, a number in front scales it.

    function  of (x, R), and of t and parameters if it names them
    words     what it is called when printed
    """

    kind = "potential"

    def __call__(self, x, R, t=0.0, parameters=None):
        first, *rest = self._values(x, R, t, parameters)
        return sum(rest, first)


class Noise(Terms):
    """γ(x, R), stochastic potentials of bodies, one value per Wiener process; with `+` they stand side by side. Arguments as for Potential."""

    kind = "noise"

    def __call__(self, x, R, t=0.0, parameters=None):
        return jnp.concatenate([jnp.ravel(value) for value in self._values(x, R, t, parameters)])
