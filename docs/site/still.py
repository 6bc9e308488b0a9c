"""A still of moving bodies: faces of all parts, shaded, painted from the furthest to the nearest, seen as a page of `bm.view` first shows them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb

from bismut.drawing import SPACE, Drawing, Line, Part
from bismut.palette import LIGHT, NAMES

COLOURS = LIGHT.series[:6]
_FROM = {True: np.array([0.0, -0.02, 1.0]), False: np.array([0.62, -0.7, 0.36])}


def still(drawing: Drawing, file: Path, frame: int) -> None:
    """Write the picture, on a transparent ground that suits light and dark pages."""
    figure, axis = plt.subplots(figsize=(4, 3), dpi=120)
    paint(axis, drawing, frame, 4 / 3)
    figure.subplots_adjust(0, 0, 1, 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, transparent=True)
    plt.close(figure)


def paint(axis: Any, drawing: Drawing, frame: int, shape: float = 1.0) -> None:
    """Draw bodies, lines and trails; `shape` is the width of the picture over its height."""
    eye = _eye(drawing.flat)
    faces, depths, colours = [], [], []
    for part in drawing.parts:
        for points, normals, base in _things(part, drawing, frame):
            light = 0.55 + 0.45 * np.clip(normals @ _unit(eye[2] + 0.6 * eye[1] - 0.3 * eye[0]), -0.4, 1)
            faces += list((points @ eye.T)[..., :2])
            depths += list(points.mean(1) @ eye[2])
            colours += list(np.clip(base * light[:, None], 0, 1))
    seen = [np.reshape(faces, (-1, 2))]
    for body, at in drawing.trails or _paths(drawing):
        path = (np.stack([_place(drawing, k, np.array([body]), at)[0] for k in range(frame + 1)]) @ eye.T)[:, :2]
        axis.plot(*path.T, color="#8a8f98", linewidth=0.8, alpha=0.8)
        seen.append(path)
    for line in drawing.lines:
        ends = (_ends(drawing, line, frame) @ eye.T)[..., :2]
        axis.add_collection(LineCollection(ends, colors=_shade(line.colour), linewidths=1.5))
        seen.append(ends.reshape(-1, 2))
    order = np.argsort(depths)
    axis.add_collection(
        PolyCollection([faces[i] for i in order], facecolors=[colours[i] for i in order], edgecolors="face", linewidths=0.3, zorder=3)
    )
    points = np.concatenate(seen)
    points = points[np.isfinite(points).all(1)]
    middle, reach = (points.max(0) + points.min(0)) / 2, 0.55 * max(np.ptp(points[:, 0]) / shape, np.ptp(points[:, 1]), 1e-9)
    axis.set(xlim=(middle[0] - reach * shape, middle[0] + reach * shape), ylim=(middle[1] - reach, middle[1] + reach), aspect="equal")
    axis.axis("off")


def _paths(drawing: Drawing) -> list[tuple[int, Any]]:
    """Where no trail is asked for, a still shows how bodies came to where they are, if they are few."""
    bodies = np.shape(drawing.x)[1]
    return [(body, (0.0, 0.0, 0.0)) for body in range(bodies)] if bodies <= 8 else []


def _eye(flat: bool) -> np.ndarray:
    """Right, up, and towards the eye, as rows."""
    towards = _unit(_FROM[flat])
    right = _unit(np.cross([0.0, 1, 0] if flat else [0.0, 0, 1], towards))
    return np.stack([right, np.cross(towards, right), towards])


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def _things(part: Part, drawing: Drawing, frame: int):
    """Faces (n, 4, 3), their normals and colours, of each thing."""
    bodies = np.arange(np.shape(drawing.x)[1]) if part.body is None else np.atleast_1d(np.asarray(part.body, int))
    size = np.asarray(part.size, float)
    size = np.broadcast_to(np.full(3, size) if size.ndim == 0 else size, (len(bodies), 3))
    turn = np.broadcast_to(np.asarray(part.turn, float), (len(bodies), 3, 3))
    at = np.broadcast_to(np.asarray(part.at, float), (len(bodies), 3))
    faces = _faces(part.kind)
    for body, a, own, where in zip(bodies, size, turn, at, strict=True):
        points = _place(drawing, frame, np.full(faces.shape[0] * 4, body), (faces.reshape(-1, 3) * a) @ own.T + where).reshape(faces.shape)
        normals = np.cross(points[:, 2] - points[:, 0], points[:, 3] - points[:, 1])
        normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
        outward = np.einsum("ni,ni->n", normals, points.mean(1) - points.mean((0, 1)))
        base = np.broadcast_to(to_rgb(_shade(part.colour) or ("#8a8f98" if body == SPACE else COLOURS[body % len(COLOURS)])), (len(faces), 3))
        if part.kind == "ellipsoid":  # its halves are marked, as on the page
            x, y, z = faces.mean(1).T
            base = base * (np.where(z > 0, 1.0, 0.62) * np.where((x > 0) & (y > 0), 0.8, 1.0))[:, None]
        yield points, normals * np.where(outward < 0, -1.0, 1.0)[:, None], base


def _shade(colour: str | None) -> str | None:
    """A colour by its name in the palette, or as it is."""
    return getattr(LIGHT, colour) if colour in NAMES else colour


def _faces(kind: str) -> np.ndarray:
    """Quadrilaterals of a thing of size one, (n, 4, 3)."""
    if kind == "block":
        corner = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], float)
        return np.stack([np.roll(corner * sign, k, axis=-1) for k in range(3) for sign in ([1, 1, 1], [1, 1, -1])])
    profile = {
        "rod": [(0, -1), (1, -1), (1, 1), (0, 1)],
        "arrow": [(0, -1), (0.36, -1), (0.36, 0.4), (1, 0.4), (0, 1)],
        "top": [(0, 0), (0.95, 0.5), (1, 0.58), (0.14, 0.68), (0.1, 1), (0, 1)],
    }.get(kind)
    if profile is None:
        profile = [(np.sin(t), -np.cos(t)) for t in np.linspace(0, np.pi, 13)]
    else:  # long faces are cut, for which of two is nearer is decided by their middles
        profile = [*(tuple(np.array(a) + (np.array(b) - a) * k / 6) for a, b in pairwise(profile) for k in range(6)), profile[-1]]
    angle = np.linspace(0, 2 * np.pi, 25)
    ring = lambda r, z: np.stack([r * np.cos(angle), r * np.sin(angle), np.full_like(angle, z)], -1)
    rings = np.stack([ring(r, z) for r, z in profile])
    quads = np.stack([rings[:-1, :-1], rings[:-1, 1:], rings[1:, 1:], rings[1:, :-1]], 2)
    return quads.reshape(-1, 4, 3)


def _place(drawing: Drawing, frame: int, bodies: np.ndarray, at: Any) -> np.ndarray:
    """x_b + R_b z; number −1 is space itself."""
    z = np.broadcast_to(np.asarray(at, float), (len(bodies), 3))
    moved = z if drawing.R is None else np.einsum("nij,nj->ni", np.asarray(drawing.R)[frame][bodies], z)
    return np.where((bodies == SPACE)[:, None], z, np.asarray(drawing.x, float)[frame][bodies] + moved)


def _ends(drawing: Drawing, line: Line, frame: int) -> np.ndarray:
    first, second = np.broadcast_arrays(np.atleast_1d(line.first), np.atleast_1d(line.second))
    return np.stack([_place(drawing, frame, first, line.first_at), _place(drawing, frame, second, line.second_at)], 1)
