"""Bodies in motion, as formats hold them: frames of positions, velocities and orientations of principal axes.

    v = p/M,      L = Aᵀ p,      q ↔ R A

A point of a space becomes a frame and a frame a point (`placement_of`, `point_of`), for every kind of bodies of an `Inventory`. Quaternions are unit
(w, x, y, z), scalar first, with w ≥ 0; formats that have the scalar last reorder them themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from bismut.drawing import in_space, quaternions
from bismut.errors import ShapeError
from bismut.mechanics import Box, Inventory
from bismut.mechanics.bodies.site_table import ELEMENTS


@dataclass(frozen=True)
class Frames:
    """T frames of K bodies. What is not known is None, and each format leaves it out.

    times, steps  (T,)
    x             positions (T, K, 3), unwrapped; what lies in a plane has z = 0
    v             velocities (T, K, 3)
    q             orientations of principal axes (T, K, 4), scalar first
    L             angular momenta about the centres along principal axes, (T, K, 3)
    mass, moments (K,), (K, 3)
    species       a name for each body
    box           sides; open without one
    plane         how many dimensions the bodies move in
    summary       how the run was made, in a line
    molecule      (K,) where these are sites of bodies, the number of the body that each belongs to
    bonds         (B, 2) pairs of these, or of points, that are joined
    """

    times: np.ndarray
    steps: np.ndarray
    x: np.ndarray
    v: np.ndarray | None
    q: np.ndarray | None
    L: np.ndarray | None
    mass: np.ndarray | None
    moments: np.ndarray | None
    species: tuple[str, ...]
    box: Box | None = None
    plane: int = 3
    summary: str = ""
    molecule: np.ndarray | None = None
    bonds: np.ndarray | None = None

    def in_units(self, length: float, mass: float, time: float) -> Frames:
        """The same, where a unit of this run is so many units of length, mass and time."""
        scaled = lambda array, factor: None if array is None else array * factor
        speed, turning = length / time, mass * length**2 / time
        return replace(
            self,
            times=self.times * time,
            x=self.x * length,
            v=scaled(self.v, speed),
            L=scaled(self.L, turning),
            mass=scaled(self.mass, mass),
            moments=scaled(self.moments, mass * length**2),
            box=None if self.box is None else Box(np.array(self.box.lengths) * length),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names that occur, in the order in which they do."""
        return tuple(dict.fromkeys(self.species))

    @property
    def types(self) -> np.ndarray:
        """For each body the number of its kind, from 0."""
        return np.array([self.kinds.index(name) for name in self.species])

    @property
    def elements(self) -> bool:
        """Whether all names are those of elements, or X: programs of chemistry take no others."""
        return set(self.species) <= ELEMENTS

    @property
    def periodic(self) -> np.ndarray:
        """(3,) whether the box repeats itself along an axis."""
        return np.isfinite(_sides(self.box))

    @property
    def sides(self) -> np.ndarray:
        """(3,) of a cell about the origin: those of the box, and along open axes one that holds every frame."""
        reach = 2 * np.abs(self.x).max(axis=(0, 1), initial=0.0) + 2.0
        return np.where(self.periodic, _sides(self.box), reach)

    @property
    def turning(self) -> np.ndarray | None:
        """Angular momenta in the axes of space, (T, K, 3)."""
        return None if self.L is None or self.q is None else np.einsum("tkij,tkj->tki", matrices_of(self.q), self.L)


def _sides(box: Box | None) -> np.ndarray:
    lengths = () if box is None else box.lengths
    return np.array([*lengths, *[np.inf] * (3 - len(lengths))])


class Placement(NamedTuple):
    """x, v, q and L, as in `Frames`."""

    x: np.ndarray
    v: np.ndarray | None
    q: np.ndarray | None
    L: np.ndarray | None


def species_of(bodies: Inventory) -> tuple[str, ...]:
    """The names of points that the potential knows, else a letter for each kind: bodies of equal mass and moments are of one."""
    if bodies.names is not None:
        return bodies.names
    rows = [np.zeros((bodies.bodies, 0)) if value is None else value.reshape(bodies.bodies, -1) for value in (bodies.mass, bodies.moments)]
    known = [tuple(row) for row in np.concatenate(rows, 1).tolist()]
    kinds = list(dict.fromkeys(known))
    letter = lambda n: (letter(n // 26 - 1) if n >= 26 else "") + chr(ord("A") + n % 26)
    return tuple(letter(kinds.index(row)) for row in known)


def placement_of(bodies: Inventory, q: list[np.ndarray], p: list[np.ndarray]) -> Placement:
    """States with one leading axis, from the arrays of points and momenta."""
    if bodies.count is None:
        q, p = ([leaf[:, None] for leaf in leaves] for leaves in (q, p))
    x, R, P, spin = _parts(bodies, q, p)
    v = None if bodies.mass is None or P is None else P / bodies.mass[:, None]
    if R is None:
        return Placement(x, v, None, None)
    axes = np.eye(3) if bodies.axes is None else bodies.axes
    L = None if bodies.axes is None else np.einsum("...ji,...j->...i", axes, spin)
    return Placement(x, v, quaternions(R @ axes), L)


def _parts(bodies: Inventory, q: list[np.ndarray], p: list[np.ndarray]) -> tuple[np.ndarray, Any, Any, Any]:
    """x, R, linear momenta in space and angular momenta in the body, all with three components."""
    match bodies.kind:
        case "points":
            return in_space(q[0]), None, in_space(p[0]), None
        case "bodies":
            return q[0], q[1], p[0], p[1]
        case "disks":
            return in_space(q[0]), _about_z(q[1]), in_space(p[0]), _along_z(p[1])
        case "turning":
            return np.zeros((*p[0].shape[:-1], 3)), q[0], None, p[0]
        case "motions":
            return q[1], q[0], np.einsum("...ij,...j->...i", q[0], p[0][..., 3:]), p[0][..., :3]
        case _:
            R = _about_z(q[0])
            return in_space(q[1]), R, np.einsum("...ij,...j->...i", R, in_space(p[0][..., 1:])), _along_z(p[0][..., 0])


def point_of(bodies: Inventory, x: np.ndarray, q: np.ndarray | None, v: np.ndarray, w: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The arrays of a point and its velocity, from one frame: positions, orientations of principal axes, velocities in space and angular ones along
    principal axes, (K, ...)."""
    if bodies.turns and q is None:
        raise ShapeError("The frame has no orientations, but the bodies of this system turn. Choose a file that has them.")
    plane = bodies.plane
    axes = np.eye(3) if bodies.axes is None else bodies.axes
    R = np.zeros((len(x), 3, 3)) if q is None else matrices_of(q) @ np.swapaxes(axes, -1, -2)
    w = np.einsum("...ij,...j->...i", axes, w)
    match bodies.kind:
        case "points":
            leaves = [x[:, :plane]], [v[:, :plane]]
        case "bodies":
            leaves = [x, R], [v, w]
        case "disks":
            leaves = [x[:, :2], R[:, :2, :2]], [v[:, :2], w[:, 2]]
        case "turning":
            leaves = [R], [w]
        case "motions":
            leaves = [R, x], [np.concatenate([w, np.einsum("kji,kj->ki", R, v)], 1)]
        case _:
            leaves = [R[:, :2, :2], x[:, :2]], [np.concatenate([w[:, 2:], np.einsum("kji,kj->ki", R, v)[:, :2]], 1)]
    return leaves if bodies.count is not None else ([leaf[0] for leaf in leaves[0]], [leaf[0] for leaf in leaves[1]])


def _along_z(a: np.ndarray) -> np.ndarray:
    return a[..., None] * np.array([0.0, 0.0, 1.0])


def _about_z(R: np.ndarray) -> np.ndarray:
    rotation = np.zeros((*R.shape[:-2], 3, 3))
    rotation[..., :2, :2], rotation[..., 2, 2] = R, 1.0
    return rotation


def matrices_of(q: np.ndarray) -> np.ndarray:
    """(..., 4) of any length but 0 as (..., 3, 3)."""
    flat = scipy.spatial.transform.Rotation.from_quat(np.asarray(q, float).reshape(-1, 4), scalar_first=True).as_matrix()
    return flat.reshape(*np.shape(q)[:-1], 3, 3)
