"""The drawing of a system that defines none: read off its space, its masses and its pair terms.

(x, R)      ellipsoids of inertia, or what repulsion says of their size; atoms of molecules by name; arrows for dipoles, lines for springs, the box
R alone     an ellipsoid that turns about its centre
x           balls, in space, in the plane or on the line
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from bismut.drawing import Drawing, Line, Part, about_third, in_space, semi_axes, towards
from bismut.errors import BismutError
from bismut.mechanics import Body, Box, System
from bismut.mechanics.bodies.inventory import common_box, declared_terms
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.subsystems import QuadraticKinetic

_ARROW = "ink"
_ATOMS = {"H": "ink", "C": "soft", "N": "blue", "O": "vermilion", "S": "ochre", "Cl": "sage"}  # as near as the palette comes to what chemists use
_OTHERS = ("blue", "vermilion", "sage", "sky", "magenta", "ochre")


def default_drawing(system: System | None, q: Any, shapes: Body | None = None) -> Drawing:
    """The drawing of a trajectory q, time along the first axis of each of its arrays. `shapes` are the point clouds that the bodies are made of."""
    x, R = _places(jax.tree.leaves(q))
    flat = x is not None and x.shape[-1] < 3
    trails = [(0, (0.0, 0.0, 0.0))] if x is not None and x.shape[1] == 1 and x.shape[-1] > 1 else []  # alone, only its path shows where it goes
    if x is None:
        x = np.zeros((*R.shape[:2], 3))
    x = in_space(x)
    terms = list(pair_terms(system))
    # A box that changes is not drawn: recorded paths do not hold its sides, and bodies are shown where they are.
    box = None if system is None or any(term.least is not None for term in terms) else common_box(system)
    atoms = None if shapes is not None or R is None else _atoms(terms, x.shape[1])
    parts = _clouds(shapes, x.shape[1]) if shapes is not None else _bodies(system, terms, x, R) if atoms is None else atoms
    parts = parts if R is not None or len(parts) != 1 else _named(terms, parts[0], x.shape[1])
    lines = [*_springs(terms), *([] if atoms is None else _molecules(terms, x.shape[1]))]
    return Drawing(x, R, [*parts, *_dipoles(terms, x, R, parts)], lines, trails, _sides(box), flat)


def _places(leaves: list[np.ndarray]) -> tuple[np.ndarray | None, Any]:
    """Positions (frames, K, n ≤ 3) and orientations (frames, K, 3, 3), either of which may be missing."""
    x, R = None, None
    for leaf in leaves:
        if R is None and _turns(leaf):
            R = leaf.reshape(len(leaf), -1, *leaf.shape[-2:])
            if R.shape[-1] == 2:
                R = about_third(np.arctan2(R[..., 1, 0], R[..., 0, 0]))
        elif x is None and leaf.ndim <= 3 and (leaf.ndim < 2 or leaf.shape[-1] <= 3):
            x = leaf.reshape(len(leaf), 1, -1) if leaf.ndim <= 2 else leaf
    if (x is None and R is None) or (x is not None and R is not None and x.shape[1] != R.shape[1]):
        shapes = [leaf.shape for leaf in leaves]
        raise BismutError(f"Cannot draw arrays of shapes {shapes}, time first. Give view(..., picture=function of (system, q)).")
    return x, R


def _turns(leaf: np.ndarray) -> bool:
    """Whether an array holds rotations; K positions in space may have the same shape."""
    if leaf.ndim < 3 or leaf.shape[-2:] not in ((3, 3), (2, 2)):
        return False
    known = leaf[np.isfinite(leaf).all((-2, -1))]
    return bool(len(known)) and np.allclose(np.swapaxes(known, -1, -2) @ known, np.eye(leaf.shape[-1]), atol=1e-5)


def pair_terms(system: System | None) -> Iterator[PairTerm]:
    """What acts between bodies, where the potential is a sum of ready-made terms."""
    known = None if system is None else declared_terms(system._potential)
    return (part for part in (() if known is None else known.parts) if isinstance(part, PairTerm))


def moments_of(system: System | None, bodies: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Masses (K,) and principal moments (K, 3), where the kinetic energy has them."""
    kinetic = None if system is None or system._kinetic is None else system._kinetic.function
    if not isinstance(kinetic, QuadraticKinetic):
        return None
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(kinetic.masses)]
    inertia = leaves[-1].reshape(bodies, 3) if leaves[-1].size == 3 * bodies else None
    if inertia is None or len(leaves) > 2:
        return None
    mass = leaves[0].reshape(bodies, -1)[:, 0] if len(leaves) == 2 else np.ones(bodies)
    return mass, inertia


def _bodies(system: System | None, terms: list[PairTerm], x: np.ndarray, R: Any) -> list[Part]:
    """Repulsion says how large bodies are; otherwise their moments do, and failing these the distances between them."""
    for term in terms:
        if term.name == "soft spheres":
            radius = 0.5 * np.broadcast_to(np.asarray(term.view(x[0], None), float), x.shape[1])
            return [Part("ball" if R is None else "ellipsoid", np.repeat(radius[:, None], 3, 1))]
        if term.name == "Gay–Berne" and R is not None:
            breadth, length = np.broadcast_arrays(*(np.asarray(number, float) for number in term.extent))
            half = 0.5 * np.stack([breadth, breadth, length], -1)
            axis = np.asarray(term.view(x[0], np.broadcast_to(np.eye(3), (x.shape[1], 3, 3))), float)
            return [Part("rod" if (length > breadth).all() else "ellipsoid", half, turn=towards(axis))]
    if R is None:
        return [Part("ball", 0.18 * _spacing(x[0]))]
    known = moments_of(system, R.shape[1])
    if known is None:
        return [Part("ellipsoid", 0.3 * _spacing(x[0]) * np.array([0.6, 0.8, 1.0]))]
    mass, moments = known
    return [Part("ellipsoid", semi_axes(moments, mass))]


def _spacing(x: np.ndarray) -> float:
    """The median distance of neighbours; 1 for a single body."""
    if len(x) < 2 or not np.isfinite(x).all():
        return 1.0
    some = x[: min(len(x), 300)]
    distances = np.linalg.norm(some[:, None] - some[None], axis=-1) + np.diag(np.full(len(some), np.inf))
    return float(np.median(distances.min(1))) or 1.0


def _clouds(shapes: Body, bodies: int) -> list[Part]:
    """The points of body(...), or of stack_bodies([...]), as balls as large as their masses say."""
    points = np.broadcast_to(shapes.points, (bodies, *np.shape(shapes.points)[-2:]))
    masses = np.broadcast_to(shapes.masses, points.shape[:2])
    which, atom = np.nonzero(masses > 0)
    extent = np.abs(points).max() or 1.0
    size = 0.35 * extent * np.cbrt(masses[which, atom] / masses.max())
    return [Part("ball", np.repeat(size[:, None], 3, 1), body=which, at=points[which, atom])]


def _atoms(terms: list[PairTerm], bodies: int) -> list[Part] | None:
    """The atoms of molecules that the potential acts between, as balls, coloured where they have names; None if there are none. Those that repel are
    large."""
    table = next((term.sites for term in terms if term.sites is not None), None)
    if table is None or table.molecules is None:
        return None
    extent = max(float(np.abs(one.points).max(initial=0.0)) for one in table.molecules) or 1.0
    deep = ~table.silent("epsilon")
    kinds = np.zeros(bodies, int) if table.species is None else table.species
    colours = _colours([name for one in table.molecules for name in one.atoms.names or ()])
    return [
        Part("ball", (0.6 if deep[a] else 0.35) * extent, np.flatnonzero(kinds == kind), one.points[a], colour=one.names and colours[one.names[a]])
        for kind, one in enumerate(table.molecules)
        for a in one.real
        if (kinds == kind).any()
    ]


def _molecules(terms: list[PairTerm], bodies: int) -> Iterator[Line]:
    """The atoms of each molecule, joined by the shortest tree."""
    table = next(term.sites for term in terms if term.sites is not None)
    kinds = np.zeros(bodies, int) if table.species is None else table.species
    for kind, one in enumerate(molecule.atoms for molecule in table.molecules):
        these = np.flatnonzero(kinds == kind)
        for a, b in one.tree if len(these) else ():
            yield Line(these, these, one.points[a], one.points[b])


def _named(terms: list[PairTerm], part: Part, bodies: int) -> list[Part]:
    """Points with names, those of each name in a colour."""
    table = next((term.sites for term in terms if term.sites is not None), None)
    if table is None or table.names is None or len(table.names) != bodies:
        return [part]
    size, names = np.asarray(part.size, float), np.array(table.names)
    alike = {name: np.flatnonzero(names == name) for name in sorted(set(table.names))}
    colours = _colours(table.names)
    return [part._replace(size=size[these] if size.ndim == 2 else size, body=these, colour=colours[name]) for name, these in alike.items()]


def _colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: that of the element, or one that no other has while there are some."""
    known = {name: _ATOMS[name] for name in names if name in _ATOMS}
    free = [one for one in _OTHERS if one not in known.values()] or _OTHERS
    return known | {name: free[number % len(free)] for number, name in enumerate(sorted(set(names) - set(known)))}


def _dipoles(terms: list[PairTerm], x: np.ndarray, R: Any, parts: list[Part]) -> list[Part]:
    """Moments as arrows that stick out of their bodies."""
    dipoles = [term for term in terms if term.name in ("dipoles", "dipoles (Ewald)")]
    if not dipoles or R is None:
        return []
    moments = np.asarray(dipoles[0].view(np.zeros_like(x[0]), np.broadcast_to(np.eye(3), (x.shape[1], 3, 3))), float)
    some = np.linalg.norm(moments, axis=-1) > 0
    reach = 1.35 * np.broadcast_to(np.asarray(parts[0].size, float).max(-1), len(parts[0].size) if np.ndim(parts[0].size) > 1 else x.shape[1]).max()
    return [Part("arrow", np.array([0.22, 0.22, 1.0]) * reach, body=np.flatnonzero(some), turn=towards(moments[some]), colour=_ARROW)]


def _springs(terms: list[PairTerm]) -> Iterator[Line]:
    for term in terms:
        if term.bonds is not None and term.sites is None and term.name != "excluded pairs":  # pairs of sites hold nothing together
            where = np.asarray(term.own[2], float) if term.name == "springs" else np.zeros((len(term.bonds.i), 2, 3))
            yield Line(term.bonds.i, term.bonds.j, where[:, 0], where[:, 1])


def _sides(box: Box | None) -> tuple[float, ...] | None:
    return None if box is None else (*box.lengths, *[float("inf")] * (3 - len(box.lengths)))
