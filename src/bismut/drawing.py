"""What a picture of moving bodies is made of, as plain data.

    y = x_b(t) + R_b(t) z            a point z fixed in body b, at every frame

A picture is K bodies that move (x, R), parts fixed in them, and lines between points fixed in them. So a trajectory is kept once, however much is
drawn of it, and orientation is right by construction. A gallery entry says how it is drawn in one function, picture(system, q), with time
along the first axis of q; pages (`views`) and animations (`figures`) draw what it returns.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

SPACE = -1  # the number of the body that does not move
KINDS = ("ball", "ellipsoid", "rod", "block", "arrow", "top")


class Part(NamedTuple):
    """Things of one kind, each fixed in a body.

    kind    ball, ellipsoid (its halves are marked), rod and arrow (along the third axis), block, or top (standing on its tip, along the third axis)
    size    semi-axes (3,) or (n, 3): radii of an ellipsoid, radius, radius and half length of a rod or an arrow, half sides of a block; a number
            is a ball of that radius. The height of a top is its third
    body    numbers of the bodies (n,), SPACE for what does not move; without it one thing in each body
    at      where in the body, (3,) or (n, 3)
    turn    how it is turned in the body, (3, 3) or (n, 3, 3)
    colour  a fixed one, "#rrggbb" or a name of the palette, such as ink, soft or ochre, which is legible on any background; without it the page
            colours it by body, energy or speed
    """

    kind: str
    size: Any
    body: Any = None
    at: Any = (0.0, 0.0, 0.0)
    turn: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    colour: str | None = None


class Line(NamedTuple):
    """Straight lines from a point fixed in `first` to one fixed in `second`: bodies by number, (n,), SPACE for points that do not move."""

    first: Any
    second: Any
    first_at: Any = (0.0, 0.0, 0.0)
    second_at: Any = (0.0, 0.0, 0.0)
    colour: str = "soft"


class Drawing(NamedTuple):
    """Bodies at x, (frames, K, 3), with orientations R, (frames, K, 3, 3), or None where they have none.

    trails  (body, point fixed in it) whose path is drawn
    box     sides of a periodic box, inf where it is open
    flat    whether it lies in the plane of the first two axes, and is viewed from above
    """

    x: Any
    R: Any = None
    parts: Sequence[Part] = ()
    lines: Sequence[Line] = ()
    trails: Sequence[tuple[int, Any]] = ()
    box: Sequence[float] | None = None
    flat: bool = False


def in_space(points: Any) -> np.ndarray:
    """Points of the line or the plane as points of space, with zeros where they have no coordinate."""
    points = np.asarray(points)
    return np.concatenate([points, np.zeros((*points.shape[:-1], 3 - points.shape[-1]))], -1)


def about_third(angle: Any) -> np.ndarray:
    """The rotation by an angle about the third axis; leading axes are many."""
    c, s = np.cos(angle), np.sin(angle)
    o, e = np.zeros_like(c), np.ones_like(c)
    return np.stack([np.stack([c, -s, o], -1), np.stack([s, c, o], -1), np.stack([o, o, e], -1)], -2)


def towards(direction: Any) -> np.ndarray:
    """A rotation that takes the third axis to a direction; leading axes are many."""
    u = np.asarray(direction, float)
    u = u / np.linalg.norm(u, axis=-1, keepdims=True)
    aside = np.where(np.abs(u[..., :1]) < 0.9, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    first = np.cross(aside, u)
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(u, first), u], -1)


def semi_axes(moments: Any, mass: Any = 1.0) -> np.ndarray:
    """a₁² = 5 (I₂ + I₃ − I₁)/2M: the homogeneous ellipsoid that has these principal moments. Flat ones keep a tenth of their width."""
    moments = np.asarray(moments, float)
    squares = 2.5 * (moments.sum(-1, keepdims=True) - 2 * moments) / np.asarray(mass, float)[..., None]
    return np.sqrt(np.maximum(squares, 0.01 * squares.max(-1, keepdims=True)))


def quaternions(R: Any) -> np.ndarray:
    """Unit quaternions (w, x, y, z) of rotations, w ≥ 0; those of matrices that are not finite are 1."""
    R = np.asarray(R, float)
    R = np.where(np.isfinite(R).all((-2, -1))[..., None, None], R, np.eye(3))
    flat = scipy.spatial.transform.Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat(canonical=True, scalar_first=True)
    return flat.reshape(*R.shape[:-2], 4)
