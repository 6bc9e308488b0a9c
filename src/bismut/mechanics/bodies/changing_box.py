"""Boxes whose sides change.

    r = s N(x_j/s − x_i/s),      s = l/l₀ for each axis,      N the nearest image in the box l₀ as it was declared

Places are those of now, and x/s is in the box l₀, whatever the box is now. So a system in a changing box is the same program in the same box, with s
as data: nothing is compiled anew, and a list of neighbours is still right after all places and sides were scaled. It is made for the reach c/s₀ with
s₀ the least that s becomes; what is beyond the cutoff c now has no energy, as ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from bismut.errors import BismutError, DomainError
from bismut.mechanics.bodies.box import Box
from bismut.mechanics.bodies.inventory import inventory
from bismut.mechanics.bodies.lattice import LatticeTerm
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import BodyTerm, ManyBodyTerm, Potential, Terms, TupleTerm
from bismut.mechanics.bodies.virial import acts_on_places, boxed_potential
from bismut.mechanics.function import UserFunction, required_function
from bismut.mechanics.mechanical import with_potential
from bismut.mechanics.system import System

_LEAST = 0.9  # of the sides, unless something else is asked for: lists then hold 1/0.9³ = 1.37 times as many pairs
_ROOM = 0.95  # of the sides: a box that cannot shrink to this soon touches its limit
MARGIN = 1.02  # over the least sides, within which a trajectory fails: no limit that nobody asked for may shape the law


class ChangingBox(NamedTuple):
    """A system in a box that changes, the box as it was declared, how many centres are in it, and the least and the most of its sides."""

    system: System
    box: Box
    centres: int
    least: float
    most: float


def changing_box(system: System, limits: tuple[float, float] | None) -> ChangingBox:
    """The system with a potential that follows the sides of its box; `limits` are the least and the most of its sides, over those declared."""
    if system.constraints:
        raise DomainError("Bodies held by constraints cannot be scaled one by one with their box. Use rigid_bodies, which are scaled by centres.")
    if system.channels or system.forced:
        raise BismutError("At constant pressure only a potential may act beside the bath, but this system has noise or forces of its own.")
    potential, box = boxed_potential(system)
    known = inventory(system)
    assert known is not None
    for part in potential.parts:
        _check(part, box, system)
    pairs = [part for part in potential.parts if isinstance(part, PairTerm)]
    reach = max(part.cutoff.end for part in pairs if part.cutoff is not None)
    smallest = 2 * reach / min(box.lengths)
    if limits is None:
        limits = max(_LEAST / MARGIN, smallest), float("inf")
        if limits[0] * MARGIN > _ROOM:
            raise DomainError(
                f"{box} can shrink to {smallest:.3g} of itself only, where its shortest side is two cutoffs of {reach:g}. Make the cutoff smaller, "
                "take more points in a larger box, or give limits=(least, most) that shall be part of the law."
            )
    least, most = limits
    if not smallest * (1 - 1e-12) <= least:
        raise DomainError(
            f"limits begin at {least:g} of the sides, but with cutoffs of {reach:g} the box can shrink to {smallest:.4g} of {box}: from there on a "
            "cutoff is more than half a side. Give larger limits, a smaller cutoff or a larger box."
        )
    parts = [replace(part, least=least) if isinstance(part, PairTerm) else part for part in potential.parts]
    assert system._potential is not None
    following = _with_terms(system._potential, Potential._with(parts, potential._name))
    return ChangingBox(with_potential(system, following), box, known.bodies, least, most)


def scaled(q: Any, ratio: Any) -> Any:
    """A point with all centres scaled about the origin; orientations stay."""
    return (q[0] * ratio, *q[1:]) if isinstance(q, tuple) else q * ratio


def _check(part: Any, box: Box, system: System) -> None:
    """Refuse a term of which it is not known how it follows the box."""
    match part:
        case LatticeTerm():
            raise DomainError(f"{part.name}: an Ewald sum is tuned to one box and cannot follow another. Use a ReactionField, or constant volume.")
        case PairTerm(bonds=None, box=Box()) if part.box == box:
            return
        case PairTerm() | TupleTerm():
            raise DomainError(
                f"{part.name} hold points together, which would have to be scaled as one molecule, but every point is a centre of its own. Use "
                "rigid_bodies with sites, which are scaled by centres."
            )
        case ManyBodyTerm():
            raise DomainError(f"{part.name} is a function of all bodies, which does not see the box. Use pair terms, such as pair_potential(...).")
        case BodyTerm():
            if acts_on_places(part, system):
                raise DomainError(f"{part.name} acts on places, which a box that is scaled moves: there a field may act on orientations only.")


def _with_terms(function: UserFunction, potential: Potential) -> UserFunction:
    """A function of a system with other terms inside."""
    if isinstance(function.function, Terms):
        return required_function(function.name, potential, ("x", "R"))
    adapter: Any = function.function
    return required_function(function.name, replace(adapter, inner=_with_terms(adapter.inner, potential)), ("q",))
