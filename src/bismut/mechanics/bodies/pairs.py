"""Pairs of bodies.

    U(x, R) = Σ_{i<j} S(r) u(a_i, a_j),      r = x_j − x_i, of the nearest image in a box

from one function u of two bodies and, perhaps, a cutoff. A pair term is data: the function, its view of a body, which pairs, cutoff and box.
All terms over the same pairs are one loop (`body_loops.pairs`), whose derivative is a loop that adds up forces and torques for each body. There is
no diagonal on which a distance would vanish and its gradient be 0/0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as field_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bismut.body_loops import Bonds, Pair, Reach, pairs
from bismut.mechanics.bodies.box import Box, Cutoff, check_fits


class Placed(NamedTuple):
    """One body as a function of one or two bodies sees it: position x (3,), orientation R (3, 3), and its own entry of the data given with it."""

    x: Any
    R: Any
    data: Any = None


class PairView(NamedTuple):
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


class Lost(NamedTuple):
    """What a cutoff leaves out for good: view(x, R) ↦ what it depends on of each body, and energy(one, other, r) ↦ the mean over all directions."""

    view: Callable
    energy: Callable


@dataclass(frozen=True)
class PairTerm:
    """A function of two bodies for all pairs, as data.

    value   (pair view, t, parameters) ↦ one number, or several for noises
    view    (x, R) ↦ a tree of arrays (K, ...), of which a pair view holds two entries
    name    for messages
    own     with bonds, a tree of arrays with one entry for each of them
    bonds   which pairs, if not all
    cutoff  beyond it the value is zero
    box     of which the nearest image is taken
    factor  a number in front
    extent  breadth and length of a body, where the term has them; for pictures
    wants   which of `t` and `parameters` the value depends on
    fit     box ↦ the term as it is in that box, where it depends on the box otherwise than by images
    sites   the table of sites, of a term between sites of bodies; for pictures and exports
    field   the reaction field that charges are in, if there is one; for `explain`
    lost    what the cutoff leaves out, if that is not the value: of charges nothing, where a reaction field or waves stand for it
    least   of a box that changes, the least that its sides become, over those of `box`; None of a box that stays
    """

    value: Callable
    view: Callable
    name: str
    own: Any = ()
    bonds: Bonds | None = None
    cutoff: Cutoff | None = None
    box: Box | None = None
    factor: Any = None
    extent: Any = ()
    wants: tuple[str, ...] = ()
    fit: Callable | None = None
    sites: Any = field_(default=None, compare=False)
    field: Any = None
    lost: tuple[Lost, ...] | None = field_(default=None, compare=False)
    least: float | None = None

    def inside(self, box: Box) -> "PairTerm":
        """The same in a box. Bonds have no cutoff: they lead to the nearest image."""
        if self.fit is not None:
            return replace(self.fit(box), factor=self.factor).inside(box)
        if self.bonds is None:
            check_fits(self.name, self.cutoff, box)
        return replace(self, box=box)

    def scaled(self, factor) -> "PairTerm":
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def at(self, a, b, own, distance: tuple, t, parameters):
        """The value for two bodies at a distance."""
        pair = PairView(a, b, own, *distance)
        value = jnp.asarray(self.value(pair, t, parameters))
        if self.cutoff is not None:
            value = self.cutoff(pair.r2) * value
        return value if self.factor is None else jnp.asarray(self.factor, pair.r.dtype) * value


def distances(x, y, boxes: set[Box | None], moved: Callable | None = None) -> dict[Box | None, tuple]:
    """(x, y, r, r², 1/r², 1/r) of two bodies, for each of the boxes; with a linear map of all places and boxes, if one is given."""

    def in_box(box: Box | None) -> tuple:
        r, image = y - x, y
        if box is not None:
            shift = box.shift(r)
            r, image = r - shift, y - shift
        here = x
        if moved is not None:
            here, image, r = map(moved, (here, image, r))
        r2 = r @ r
        return here, image, r, r2, *inverse_powers(r2)

    return {box: in_box(box) for box in boxes}


def sum_over_pairs(terms: list[PairTerm], x, R, t, parameters, strain=None, lengths=None):
    """Σ over pairs of all terms together, one loop for all that run over the same pairs.

    strain   ε, of places (1 + ε) x in boxes (1 + ε) l
    lengths  the sides that the box has now, s times those of `term.box`. The loop runs over places x/s in that box, whose lists of neighbours
             know nothing of s and are still right after all places were scaled with it; distances are those of s (x/s)
    """
    groups: dict[Bonds | None, list[PairTerm]] = {}
    for term in terms:
        groups.setdefault(term.bonds, []).append(term)

    scale = None
    if lengths is not None:
        (box,) = {term.box for term in terms}
        assert box is not None, "only terms in one box follow its sides"
        scale = lengths / jnp.asarray(box.lengths, x.dtype)
    moved = None if strain is None and scale is None else lambda place: _strained(place if scale is None else scale * place, strain)
    places = x if scale is None else x / scale

    def total(group: list[PairTerm]):
        def meet(a, b, own):
            between = distances(a[0], b[0], {term.box for term in group}, moved)
            sides = zip(group, a[1], b[1], own, strict=True)
            values = [term.at(one, other, mine, between[term.box], t, parameters) for term, one, other, mine in sides]
            return Pair(total=sum(values[1:], values[0]))

        bodies = places, [term.view(x, R) for term in group]
        return pairs(meet, bodies, [term.own for term in group], group[0].bonds, _reach(group)).total

    values = [total(group) for group in groups.values()]
    return sum(values[1:], values[0])


def _strained(place, strain):
    return place if strain is None else place + strain @ place


def per_pair(term: PairTerm, x, R, t, parameters):
    """The values of one term for each pair, along the first axis."""

    def meet(a, b, own):
        between = distances(a[0], b[0], {term.box})
        return Pair(own=term.at(a[1], b[1], own, between[term.box], t, parameters))

    return pairs(meet, (x, term.view(x, R)), term.own, term.bonds, _reach([term])).own


def _reach(group: list[PairTerm]) -> Reach | None:
    cutoffs, boxes = [term.cutoff for term in group], {term.box for term in group}
    if len(boxes) > 1 or any(cutoff is None for cutoff in cutoffs):
        return None
    box, least = boxes.pop(), min(term.least or 1.0 for term in group)
    return Reach(0, max(cutoff.end for cutoff in cutoffs if cutoff is not None) / least, box.lengths if box is not None else ())


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
