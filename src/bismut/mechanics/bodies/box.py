"""Periodic boxes and cutoffs.

    r ← r − l round(r/l)                                                               the nearest image, side by side
    S(r) = 1 − s³ (10 − 15 s + 6 s²),     s = (r² − b²)/(c² − b²) between 0 and 1       from 1 at b to 0 at the cutoff c

Positions are never wrapped: a displacement is how far a body went. A pair energy times S has two continuous derivatives, so that forces have one and
the orders of schemes stay what they are.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers

_BEGIN = 0.8  # of the cutoff: where an energy begins to fade, by default


@dataclass(frozen=True, init=False)
class Box:
    """A periodic box. Pair terms see the nearest images of every two bodies, and positions stay unwrapped.

    lengths  its sides, one for each axis of space; inf along axes in which it is open
    """

    lengths: tuple[float, ...]

    def __init__(self, lengths: Any):
        try:
            sides = np.asarray(lengths, float)
        except (TypeError, ValueError):
            raise ShapeError(f"lengths must be the sides of the box, such as (8.0, 8.0, 8.0), got {type(lengths).__name__}.") from None
        if sides.ndim != 1 or len(sides) == 0:
            raise ShapeError(f"lengths must be the sides of the box, one for each axis, such as (8.0, 8.0, 8.0), got shape {sides.shape}.")
        if not (sides > 0).all():
            raise DomainError(f"The sides of a box must be positive, got {sides.tolist()}.")
        object.__setattr__(self, "lengths", tuple(sides.tolist()))

    def shift(self, r):
        """The lattice vector nearest to r: l round(r/l)."""
        if r.shape[-1] != len(self.lengths):
            raise ShapeError(f"{self} has {len(self.lengths)} sides, but positions have {r.shape[-1]} coordinates.")
        sides = np.array(self.lengths)
        closed = np.isfinite(sides)
        step, inverse = np.where(closed, sides, 0.0), np.where(closed, 1 / sides, 0.0)
        return jnp.asarray(step, r.dtype) * jnp.round(r * jnp.asarray(inverse, r.dtype))

    def nearest(self, r):
        """The shortest of all vectors that differ from r by sides of the box; leading axes are many vectors."""
        r = jnp.asarray(r)
        return r - self.shift(r)

    def __repr__(self) -> str:
        return f"Box({self.lengths})"


def box_of(value: Any, axes: int | None = None) -> Box | None:
    """The box that was given: None, a Box, its sides, or, where it is known how many axes space has, one number for the side of a cube."""
    if value is None:
        return None
    if axes is not None and isinstance(value, int | float | np.number) and not isinstance(value, bool):
        value = (value,) * axes
    box = value if isinstance(value, Box) else Box(value)
    if axes is not None and len(box.lengths) != axes:
        raise ShapeError(f"box must have {axes} sides, one for each axis of space, got {box}.")
    return box


class Cutoff(NamedTuple):
    """Where an energy begins to fade and where it has ended."""

    begin: float
    end: float

    def __call__(self, r2):
        """S as a function of r²."""
        return _faded((r2 - self.begin**2) * (1 / (self.end**2 - self.begin**2)))


@jax.custom_jvp
def _faded(x):
    """1 − s³ (10 − 15 s + 6 s²), s = x between 0 and 1. Its derivative −30 s² (1 − s)² needs no case of its own at the ends: two divisions and a few
    comparisons less, which were a fifth of a step of a Lennard-Jones fluid."""
    s = _between(x)
    return 1 - s * s * s * (10 - s * (15 - 6 * s))


@_faded.defjvp
def _(primals, tangents):
    s = _between(*primals)
    bend = s * (1 - s)
    return _faded(*primals), -30 * bend * bend * tangents[0]


def _between(x):
    return jax.lax.clamp(jnp.zeros((), x.dtype), x, jnp.ones((), x.dtype))


def cutoff_of(value: Any) -> Cutoff | None:
    """The cutoff of a pair term: None, one length, or the lengths between which it fades."""
    if value is None:
        return None
    lengths = numbers("cutoff", value, positive=True)
    if not isinstance(lengths, np.ndarray) or lengths.shape not in ((), (2,)):
        raise ShapeError(f"cutoff must be a length, or two between which the energy fades, got {value!r}.")
    begin, end = (_BEGIN * float(lengths), float(lengths)) if lengths.ndim == 0 else map(float, lengths)
    if not begin < end:
        raise DomainError(f"An energy fades between two lengths, the smaller one first, got cutoff={value!r}.")
    return Cutoff(begin, end)


def check_fits(name: str, cutoff: Cutoff | None, box: Box) -> None:
    """Refuse a pair term that would see more than one image of a body."""
    half = min(box.lengths) / 2
    if cutoff is None:
        raise DomainError(f"In a box a pair term needs a cutoff of at most half a side, {half:g}, but {name} has none. Set cutoff={half:g} or less.")
    if cutoff.end > half:
        raise DomainError(
            f"The cutoff of {name} is {cutoff.end:g}, but in {box} it must be at most half of the shortest side, {half:g}: beyond that lies another "
            "image of the same body. Make the cutoff smaller or the box larger."
        )
