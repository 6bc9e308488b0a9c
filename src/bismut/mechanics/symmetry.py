"""Symmetries, each as its infinitesimal action.

    ξ_Q(q) = d/ds Φ(exp(sξ), q) at s = 0,        J(q, p) = ⟨p, ξ_Q(q)⟩

A symmetry says how it moves a point; whether the action is invariant under it, and so J conserved, is measured (`verify`), not assumed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import DomainError
from bismut.spaces import Point, Space, Velocity, pair

Axis = tuple[float, ...] | float


@dataclass(frozen=True)
class Symmetry:
    """One or several infinitesimal actions (space, q) ↦ velocity, and whether the momentum map is one number or a vector of them."""

    generators: tuple[Callable[[Space, Point], Velocity], ...]
    description: str
    single: bool = True

    def __repr__(self) -> str:
        return f"Symmetry({self.description})"

    def momentum(self, space: Space, q: Point, p: Velocity) -> Float[Array, "..."]:
        """J(q, p): a number for one generator, an array for several."""
        values = [pair(p, generator(space, q)) for generator in self.generators]
        return values[0] if self.single else jnp.stack(values)


@dataclass(frozen=True)
class _UserAction:
    """An action that does not ask for the space."""

    generator: Callable[[Point], Velocity]

    def __call__(self, space: Space, q: Point) -> Velocity:
        return self.generator(q)


@dataclass(frozen=True)
class _Verb:
    """An action that every space knows by its name."""

    verb: str
    axis: Axis

    def __call__(self, space: Space, q: Point) -> Velocity:
        return getattr(space, self.verb)(q, self.axis)


def symmetry(generator: Callable[[Point], Velocity], words: str = "own action") -> Symmetry:
    """Your own infinitesimal action: `generator` takes q to the velocity ξ_Q(q); `words` describe it."""
    return Symmetry((_UserAction(generator),), words)


def translation(direction: Axis) -> Symmetry:
    """Shift everything along `direction`, fixed in space; its momentum map is the momentum in that direction."""
    direction = _axis(direction)
    return Symmetry((_Verb("translation", direction),), f"translation along {direction}")


def translations(n: int = 3) -> Symmetry:
    """Shifts along all n coordinate axes; the momentum map is the total momentum."""
    return Symmetry(tuple(_Verb("translation", e) for e in _basis(n)), "all translations", single=False)


def left_rotation(axis: Axis) -> Symmetry:
    """Rotate everything about `axis` through the origin, fixed in space (a number in the plane); its momentum map is angular momentum about it."""
    axis = _rotation_axis(axis)
    return Symmetry((_Verb("left_rotation", axis),), f"rotation about {axis}")


def left_rotations() -> Symmetry:
    """Rotations about all three axes of space; the momentum map is the total angular momentum."""
    return Symmetry(tuple(_Verb("left_rotation", e) for e in _basis(3)), "all rotations", single=False)


def right_rotation(axis: Axis) -> Symmetry:
    """Rotate each body about `axis`, fixed in it, as for a body with two equal moments of inertia."""
    axis = _rotation_axis(axis)
    return Symmetry((_Verb("right_rotation", axis),), f"rotation about the body axis {axis}")


def _axis(axis: Axis) -> Axis:
    return tuple(float(a) for a in axis) if hasattr(axis, "__iter__") else float(axis)  # pyright: ignore


def _rotation_axis(axis: Axis) -> Axis:
    """An axis that turns something."""
    try:
        given = _axis(axis)
    except (TypeError, ValueError):
        given = ()
    numbers = given if isinstance(given, tuple) else (given,)
    if (isinstance(given, tuple) and len(given) != 3) or not all(map(math.isfinite, numbers)) or not any(numbers):
        raise DomainError(f"axis must be three finite numbers, not all zero, such as (0, 0, 1), or in the plane a number such as 1.0; got {axis!r}.")
    return given


def _basis(n: int):
    return [tuple(float(i == j) for j in range(n)) for i in range(n)]
