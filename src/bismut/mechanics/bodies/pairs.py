"""Pairs of bodies.

    U(x, R) = Σ_{i<j} S(r) u(a_i, a_j),      r = x_j − x_i, of the nearest image in a box

from one function u of two bodies and, perhaps, a cutoff. A pair term is data: the function, what it sees of a body, which pairs, cutoff and box.
All terms over the same pairs are one loop (`repetition.pairs`), whose derivative is a loop that adds up forces and torques for each body. There is
no diagonal on which a distance would vanish and its gradient be 0/0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bismut.mechanics.bodies.box import Box, Cutoff, check_fits
from bismut.repetition import Bonds, Pair, Reach, pairs


class Placed(NamedTuple):
    """One body as a function of one or two bodies sees it: position x (3,), orientation R (3, 3), and its own entry of the data given with it."""

    x: Any
    R: Any
    data: Any = None


class Meeting(NamedTuple):
    """Two bodies as a pair term sees them.

    a, b     what it sees of each
    own      what belongs to the pair itself
    x, y     where they are, the second as the image nearest to the first
    r, r2    y − x and |r|²
    inverse  1/r²
    near     1/r
    """

    a: Any
    b: Any
    own: Any
    x: Any
    y: Any
    r: Any
    r2: Any
    inverse: Any
    near: Any


@dataclass(frozen=True)
class PairTerm:
    """A function of two bodies for all pairs, as data.

    value   (meeting, t, parameters) ↦ one number, or several for noises
    seen    (x, R) ↦ a tree of arrays (K, ...), of which a meeting holds two entries
    words   what it is called
    bonds   which pairs, if not all; `own` is a tree of arrays with one entry for each of them
    cutoff  beyond it the value is zero
    box     in which the nearest image is met
    factor  a number in front
    extent  breadth and length of a body, where the term knows them; for pictures
    """

    value: Callable
    seen: Callable
    words: str
    own: Any = ()
    bonds: Bonds | None = None
    cutoff: Cutoff | None = None
    box: Box | None = None
    factor: Any = None
    extent: Any = ()

    def inside(self, box: Box) -> "PairTerm":
        """The same in a box. Bonds have no cutoff: they lead to the nearest image."""
        if self.bonds is None:
            check_fits(self.words, self.cutoff, box)
        return replace(self, box=box)

    def scaled(self, factor) -> "PairTerm":
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def at(self, a, b, own, apart: tuple, t, parameters):
        """The value for two bodies that are `apart`."""
        pair = Meeting(a, b, own, *apart)
        value = jnp.asarray(self.value(pair, t, parameters))
        if self.cutoff is not None:
            value = self.cutoff(pair.r2) * value
        return value if self.factor is None else jnp.asarray(self.factor, pair.r.dtype) * value


def distances(x, y, boxes: set[Box | None]) -> dict[Box | None, tuple]:
    """(x, y, r, r², 1/r², 1/r) of two bodies, for each box in which somebody looks at them."""

    def apart(box: Box | None) -> tuple:
        r, image = y - x, y
        if box is not None:
            shift = box.shift(r)
            r, image = r - shift, y - shift
        r2 = r @ r
        return x, image, r, r2, *inverse_powers(r2)

    return {box: apart(box) for box in boxes}


def summed(terms: list[PairTerm], x, R, t, parameters):
    """Σ over pairs of all terms together, one loop for all that run over the same pairs."""
    groups: dict[Bonds | None, list[PairTerm]] = {}
    for term in terms:
        groups.setdefault(term.bonds, []).append(term)

    def total(group: list[PairTerm]):
        def meet(a, b, own):
            apart = distances(a[0], b[0], {term.box for term in group})
            sides = zip(group, a[1], b[1], own, strict=True)
            values = [term.at(one, other, mine, apart[term.box], t, parameters) for term, one, other, mine in sides]
            return Pair(total=sum(values[1:], values[0]))

        bodies = x, [term.seen(x, R) for term in group]
        return pairs(meet, bodies, [term.own for term in group], group[0].bonds, _reach(group)).total

    values = [total(group) for group in groups.values()]
    return sum(values[1:], values[0])


def kept(term: PairTerm, x, R, t, parameters):
    """The values of one term for each pair, along the first axis."""

    def meet(a, b, own):
        apart = distances(a[0], b[0], {term.box})
        return Pair(own=term.at(a[1], b[1], own, apart[term.box], t, parameters))

    return pairs(meet, (x, term.seen(x, R)), term.own, term.bonds, _reach([term])).own


def _reach(group: list[PairTerm]) -> Reach | None:
    cutoffs, boxes = [term.cutoff for term in group], {term.box for term in group}
    if len(boxes) > 1 or any(cutoff is None for cutoff in cutoffs):
        return None
    box = boxes.pop()
    return Reach(0, max(cutoff.end for cutoff in cutoffs if cutoff is not None), box.lengths if box is not None else ())


@jax.custom_jvp
def inverse_powers(r2):
    """1/r² and 1/r from r². Their derivatives are products of themselves: one division and one root a pair, however often it is differentiated."""
    inverse = 1 / r2
    return inverse, jnp.sqrt(inverse)


@inverse_powers.defjvp
def _(primals, tangents):
    inverse, near = inverse_powers(*primals)
    less = inverse * tangents[0]
    return (inverse, near), (-inverse * less, -0.5 * near * less)
