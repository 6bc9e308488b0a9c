"""A scene as plain data that a page can hold: small whole numbers.

    x ≈ lo + (hi − lo) k/65534,   k = 0 ... 65534          positions; 65535 is a body that is not there (NaN of a failed trajectory)
    (w, x, y, z) ≈ k/32767                                  orientations, as unit quaternions

so that a pose is 14 bytes, right to 10⁻⁵ of the scene: 1000 bodies × 200 frames are 2.8 MB, 3.7 MB as text.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bismut.drawing import KINDS, SPACE, Drawing, Line, Part, quaternions
from bismut.errors import DomainError, ShapeError
from bismut.palette import NAMES

_LARGEST = 65534


@dataclass(frozen=True)
class Panel:
    """One trajectory: its label, drawing, and numbers (frames, K) to colour bodies by."""

    label: str
    drawing: Drawing
    colours: dict[str, np.ndarray]


@dataclass(frozen=True)
class Scene:
    """Trajectories side by side, with the times of their frames."""

    title: str
    times: np.ndarray
    panels: Sequence[Panel]

    def data(self) -> dict[str, Any]:
        """What a page holds, fit for JSON."""
        for panel in self.panels:
            check(panel.drawing, len(self.times))
        common = set.intersection(*(set(panel.colours) for panel in self.panels))
        names = [name for name in self.panels[0].colours if name in common]
        return {
            "title": self.title,
            "times": [round(float(t), 10) for t in self.times],
            "colours": {name: _range([panel.colours[name] for panel in self.panels]) for name in names},
            "panels": [_panel(panel, names, self) for panel in self.panels],
        }


def _panel(panel: Panel, names: list[str], scene: Scene) -> dict[str, Any]:
    drawing = panel.drawing
    x = np.asarray(drawing.x, float)
    lo, hi = _bounds(x)
    data = fixed(drawing) | {
        "label": panel.label,
        "lo": lo.tolist(),
        "hi": hi.tolist(),
        "x": packed(_quantized(x, lo, hi)),
        "turns": None if drawing.R is None else packed(np.round(32767 * quaternions(drawing.R)).astype("<i2")),
        "colours": {},
    }
    for name in names:
        least, most = _range([one.colours[name] for one in scene.panels])
        data["colours"][name] = packed(_quantized(panel.colours[name], least, most))
    return data


def fixed(drawing: Drawing) -> dict[str, Any]:
    """What does not move in a drawing: parts and lines, fixed in their bodies."""
    bodies = np.shape(drawing.x)[1]
    return {
        "bodies": bodies,
        "flat": drawing.flat,
        "box": None if drawing.box is None else [float(side) if np.isfinite(side) else 0.0 for side in drawing.box],
        "parts": [_part(part, bodies) for part in drawing.parts],
        "lines": [_line(line) for line in drawing.lines],
        "trails": [{"body": int(body), "at": np.asarray(at, float).tolist()} for body, at in drawing.trails],
    }


def check(drawing: Drawing, frames: int) -> None:
    x, R = np.shape(drawing.x), None if drawing.R is None else np.shape(drawing.R)
    if len(x) != 3 or x[0] != frames or x[2] != 3 or x[1] == 0 or (R is not None and (*x[:2], 3, 3) != R):
        raise ShapeError(f"A Drawing expects x (frames, K, 3) and R (frames, K, 3, 3) or None, with {frames} frames, got shapes {x} and {R}.")
    for part in drawing.parts:
        if part.kind not in KINDS:
            raise DomainError(f"A part is one of {', '.join(KINDS)}, got {part.kind!r}.")
    for colour in [part.colour for part in drawing.parts if part.colour is not None] + [line.colour for line in drawing.lines]:
        if not re.fullmatch("#[0-9a-fA-F]{6}", colour) and colour not in NAMES:
            raise DomainError(f"A colour is #rrggbb or one of {', '.join(NAMES)}, got {colour!r}.")
    named = [np.ravel(part.body) for part in drawing.parts if part.body is not None]
    named += [np.ravel(end) for line in drawing.lines for end in (line.first, line.second)]
    for bodies in named:
        if bodies.size and (bodies.min() < SPACE or bodies.max() >= x[1]):
            raise DomainError(f"Bodies of a Drawing are numbered 0 ... {x[1] - 1}, or SPACE = −1, got {sorted({int(b) for b in bodies})}.")


def _bounds(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = x.reshape(-1, 3)[np.isfinite(x).reshape(-1, 3).all(1)]
    if not len(known):
        raise DomainError("There is nothing to view: no position of this trajectory is finite.")
    return known.min(0), np.maximum(known.max(0), known.min(0) + 1e-12)


def _range(arrays: list[np.ndarray]) -> list[float]:
    known = np.concatenate([np.ravel(array)[np.isfinite(np.ravel(array))] for array in arrays])
    return [float(known.min()), float(known.max())] if len(known) else [0.0, 0.0]


def _quantized(values: np.ndarray, lo: Any, hi: Any) -> np.ndarray:
    span = np.maximum(np.subtract(hi, lo), 1e-300)
    known = np.isfinite(values)
    scaled = np.round(np.where(known, values - np.asarray(lo), 0.0) / span * _LARGEST)
    return np.where(known, np.clip(scaled, 0, _LARGEST), _LARGEST + 1).astype("<u2")


def _part(part: Part, bodies: int) -> dict[str, Any]:
    body = np.arange(bodies) if part.body is None else np.atleast_1d(np.asarray(part.body, int))
    size = np.asarray(part.size, float)
    size = np.repeat(np.atleast_1d(size)[:, None], 3, 1) if size.ndim == 0 else size
    wide = lambda array, tail: np.broadcast_to(np.asarray(array, float), (len(body), *tail))
    turn = quaternions(wide(part.turn, (3, 3)))
    rows = np.concatenate([wide(size, (3,)), wide(part.at, (3,)), turn], -1)
    return {"kind": part.kind, "body": body.tolist(), "rows": packed(rows.astype("<f4")), "colour": part.colour}


def _line(line: Line) -> dict[str, Any]:
    first, second = np.broadcast_arrays(np.atleast_1d(np.asarray(line.first, int)), np.atleast_1d(np.asarray(line.second, int)))
    wide = lambda array: np.broadcast_to(np.asarray(array, float), (len(first), 3))
    rows = np.concatenate([wide(line.first_at), wide(line.second_at)], -1)
    return {"first": first.tolist(), "second": second.tolist(), "rows": packed(rows.astype("<f4")), "colour": line.colour}


def packed(array: np.ndarray) -> str:
    """Frames one after the other, compressed, as text."""
    return b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
