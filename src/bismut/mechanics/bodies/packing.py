"""Places to start from: lattices, and random places that keep a distance.

    lattice          x = (n + b) a      cells n of side a, with b the places in a cell: 1 (sc), 2 (bcc), 4 (fcc), 8 (diamond); square, hexagonal
    random_packing   |x_i − x_j| ≥ (d_i + d_j)/2 for all pairs, nearest images counted

A lattice fills a box with cells that are as nearly cubic as whole numbers of them allow; where it has more places than are asked for, those left
empty are spread evenly. Random places begin uniformly and are then pushed apart pair by pair, which succeeds up to about 60 % of the volume in space.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import scipy

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers
from bismut.mechanics.bodies.box import box_of

_HALVES = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]
_CELLS = {
    "sc": [[0, 0, 0]],
    "bcc": [[0, 0, 0], [0.5, 0.5, 0.5]],
    "fcc": [[0, 0, 0], *_HALVES],
    "diamond": [[0, 0, 0], *_HALVES, [0.25, 0.25, 0.25], [0.75, 0.75, 0.25], [0.75, 0.25, 0.75], [0.25, 0.75, 0.75]],
    "square": [[0, 0]],
    "hexagonal": [[0, 0], [0.5, 0.5]],  # in a cell a × √3 a
}
_SHAPE = {"hexagonal": np.array([1.0, np.sqrt(3.0)])}
_MARGIN = 1e-9  # relative, by which pairs are pushed farther than asked for
_SWEEPS = 20_000
_DENSEST = {1: 1.0, 2: np.pi / np.sqrt(12), 3: np.pi / np.sqrt(18)}  # of equal balls, by dimension (Thue; Kepler's conjecture, proved by Hales)


def lattice(kind: str = "fcc", *, box: Any, count: int) -> np.ndarray:
    """`count` places (count, d) of a lattice that fills a periodic box.

    kind   sc, bcc, fcc or diamond in space; square or hexagonal in the plane
    box    a Box, its sides, or one number for a cube (a square)
    count  how many places. All of the lattice are taken if the box holds whole cells of that many; otherwise some are left empty, evenly spread
    """
    if kind not in _CELLS:
        raise DomainError(f"kind must be one of {', '.join(_CELLS)}, got {kind!r}.")
    base = np.array(_CELLS[kind], float)
    sides = _sides(box, base.shape[1])
    if not (isinstance(count, int | np.integer) and count >= 1):
        raise DomainError(f"count must be a whole number ≥ 1, got {count!r}.")
    shape = _SHAPE.get(kind, np.ones(len(sides)))
    cells = _cells(sides / shape, -(-int(count) // len(base)))
    grid = np.stack(np.meshgrid(*map(np.arange, cells), indexing="ij"), -1).reshape(-1, 1, len(sides))
    places = ((grid + base) / cells * sides).reshape(-1, len(sides))
    taken = np.floor(np.arange(count) * (len(places) / count)).astype(int)
    return places[taken]


def _cells(sides: np.ndarray, least: int) -> np.ndarray:
    """How many cells along each axis: at least so many in all, as few as possible, and as nearly cubic as that allows."""
    ideal = sides * (least / np.prod(sides)) ** (1 / len(sides))
    choices = [np.array(one) for one in product(*[range(max(1, int(n) - 1), int(np.ceil(n)) + 3) for n in ideal])]
    enough = [one for one in choices if np.prod(one) >= least]
    stretch = lambda one: float(np.ptp(np.log(sides / one)))
    return min(enough, key=lambda one: (stretch(one) > 0.5, np.prod(one), stretch(one)))


def random_packing(count: int, *, box: Any, distance: Any, seed: int = 0) -> np.ndarray:
    """`count` random places (count, d) in a periodic box, no two nearer than `distance`.

    box       a Box or its sides; one number is a cube
    distance  the least distance of two places, or (count,), a diameter for each
    seed      of the random numbers
    """
    sides = _sides(box, 3 if np.ndim(getattr(box, "lengths", box)) == 0 else len(getattr(box, "lengths", box)))
    if not (isinstance(count, int | np.integer) and count >= 1):
        raise DomainError(f"count must be a whole number ≥ 1, got {count!r}.")
    size = numbers("distance", distance)
    if np.shape(size) not in ((), (count,)) or np.any(np.asarray(size) < 0):
        raise ShapeError(f"distance must be one number ≥ 0 or ({count},), got {distance!r}.")
    size = np.broadcast_to(size, count)
    if size.max() > min(sides) / 2:
        raise DomainError(f"distance must be at most half of the shortest side, {min(sides) / 2:g}, got {size.max():g}.")
    axes, equal = len(sides), bool(np.all(size == size[0]))
    ball = np.pi ** (axes / 2) / {1: np.sqrt(np.pi) / 2, 2: 1.0, 3: 0.75 * np.sqrt(np.pi)}[axes]
    filled = ball * ((size / 2) ** axes).sum() / np.prod(sides)
    too_dense = DomainError(
        f"{count} places at that distance were not found: they would fill {filled:.0%} of the box, and random packings end near "
        "60 %. Make distance smaller or the box larger, or begin with lattice(...)."
    )
    if filled > (_DENSEST[axes] if equal else 1.0) * (1 + _MARGIN):  # there is no such packing; a lattice of equal balls may fill the bound itself
        raise too_dense
    x = np.random.default_rng(seed).uniform(0.0, sides, (count, len(sides)))
    for _ in range(_SWEEPS):
        x = x - sides * np.floor(x / sides)
        x = np.where(x >= sides, 0.0, x)  # round-off
        near = scipy.spatial.KDTree(x, boxsize=sides).query_pairs(size.max(), output_type="ndarray")
        i, j = near.T
        r = x[j] - x[i]
        r -= sides * np.round(r / sides)
        length, wanted = np.linalg.norm(r, axis=1), 0.5 * (size[i] + size[j])
        close = length < wanted
        if not close.any():
            return x
        i, j, r, length, wanted = i[close], j[close], r[close], np.maximum(length[close], 1e-300), wanted[close]
        push = (0.5 * ((1 + _MARGIN) * wanted - length) / length)[:, None] * r
        np.add.at(x, i, -push)
        np.add.at(x, j, push)
    raise too_dense


def _sides(box: Any, axes: int) -> np.ndarray:
    known = box_of(box, axes)
    if known is None or not np.isfinite(known.lengths).all():
        raise DomainError(f"box must be closed: a Box, its {axes} sides, or one number, got {box!r}.")
    return np.array(known.lengths)
