"""Orientations on the unit sphere: where the third axis of a body points, and mean directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST
from bismut.figures.runs.portraits import POINTS
from bismut.figures.runs.wording import numbered, over, title_of, titled
from bismut.figures.style import colour, palette

_CHORD = 0.35  # between two looks on the unit sphere: a longer chord leaves it by more than 1 − cos(0.175) = 0.015


def sphere(figure: Any, name: str, words: str, turns: Any) -> None:
    """Where the third axis of a body points: R e₃ on the unit sphere. Of many bodies the first few."""
    axis = _globe(figure)
    ends = turns.values[..., 2]
    if "time" in turns.dims:
        lines = np.moveaxis(ends.reshape(*ends.shape[:2], -1, 3), 2, 1).reshape(-1, ends.shape[1], 3)
        joined = [_path(axis, line, palette().series[i]) for i, line in enumerate(lines[:MOST])]
        more = f"; the first {MOST} of {len(lines)} lines, each a body of a trajectory" if len(lines) > MOST else ""
        titled(figure, "Third body axis, kept trajectories", f"{words}; {_dots(joined)}{more}")
        return
    known = ends.reshape(-1, 3)
    known = known[np.isfinite(known).all(1)]
    some = known[:: -(-len(known) // POINTS) or 1]
    axis.scatter(*some.T, color=colour("blue"), s=9.0 if len(some) < 2000 else 4.0, alpha=0.7, lw=0)
    more = f"; {numbered(len(some))} of {numbered(len(known))} points" if len(some) < len(known) else ""
    titled(figure, "Third body axis at the end", words + more)


def directions(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The mean direction over trajectories: on the sphere while all agree, within it as they spread."""
    axis = _globe(figure)
    mean = data["mean"].values
    lines = np.moveaxis(mean.reshape(len(mean), -1, 3), 1, 0)[:MOST]
    joined = [_path(axis, line, palette().series[i]) for i, line in enumerate(lines)]
    where = "on the sphere while trajectories agree, within it as they spread"
    titled(figure, f"{title_of(name, called)}: {over(data)}", f"{words}; {where}; {_dots(joined)}")


def _path(axis: Any, line: np.ndarray, shade: str) -> bool:
    """A path on or in the unit sphere with a dot at its start: a line, or points where looks are so far apart that chords would mislead."""
    gaps = np.linalg.norm(np.diff(line, axis=0), axis=-1)
    joined = not np.nanmax(gaps, initial=0.0) > _CHORD
    if joined:
        axis.plot(*line.T, color=shade, lw=1.2)
    else:
        some = line[:: -(-len(line) // POINTS)]
        axis.scatter(*some.T, color=shade, s=9.0 if len(some) < 2000 else 3.0, lw=0)
    axis.scatter(*line[:1].T, color=shade, s=45, edgecolor=colour("ink"), lw=1.0)
    return joined


def _dots(joined: list[bool]) -> str:
    return "ringed: starts" if all(joined) else "ringed: starts; points where looks are too far apart to be joined"


def _globe(figure: Any) -> Any:
    """A unit sphere drawn as a few circles, with the ends of three axes of space."""
    axis = figure.add_subplot(projection="3d")
    turn = np.linspace(0, 2 * np.pi, 121)
    for height in (-0.5, 0.0, 0.5):
        r = np.sqrt(1 - height**2)
        axis.plot(r * np.cos(turn), r * np.sin(turn), np.full_like(turn, height), color=colour("rule"), lw=0.8)
    for longitude in np.arange(4) * np.pi / 4:
        axis.plot(np.sin(turn) * np.cos(longitude), np.sin(turn) * np.sin(longitude), np.cos(turn), color=colour("rule"), lw=0.8)
    for end, name in zip(1.3 * np.eye(3), "xyz", strict=True):
        axis.plot(*np.stack([end / 1.3, end], -1), color=colour("soft"), lw=1.2)
        axis.text(*(1.08 * end), name, color=colour("soft"), ha="center", va="center")
    axis.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axis.set_box_aspect((1, 1, 1), zoom=1.25)
    axis.set_axis_off()
    return axis
