"""Portraits: states in phase space, crossings of a section, orientations on the sphere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.runs.curves import COLOURS, caption, title_of

_MOST = 5000  # points in one picture
_CHORD = 0.35  # between two looks on the unit sphere: a longer chord leaves it by more than 1 − cos(0.175) = 0.015


def portrait(figure: Any, name: str, words: str, pairs: list[Any]) -> None:
    """Momentum against position: lines for trajectories kept over time, points for last states. At most six coordinates, one panel each."""
    panels = [(f"q[{i}]", f"p[{i}]", q, p) for x, y in pairs for i, (q, p) in enumerate(zip(*map(_coordinates, (x, y)), strict=True))][:6]
    timed = "time" in pairs[0][0].dims
    wide = min(3, len(panels))
    axes = figure.subplots(-(-len(panels) // wide), wide, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (x, y, q, p) in zip(axes.flat, panels, strict=False):
        if timed:
            for i, (a, b) in enumerate(zip(q, p, strict=True)):
                axis.plot(*cut_at_wraps(a, b), color=COLOURS[i % len(COLOURS)], lw=0.9, alpha=0.9)
                axis.plot(a[:1], b[:1], "o", color=COLOURS[i % len(COLOURS)], ms=5)
        else:
            axis.scatter(np.ravel(q)[:_MOST], np.ravel(p)[:_MOST], s=_size(q.size), color=COLOURS[0], alpha=0.5, lw=0, rasterized=True)
        axis.set_xlabel(x)
        axis.set_ylabel(y)
    figure.suptitle(caption(words + ("; dots: starts" if timed else "")), fontsize=9.5)


def cut_at_wraps(q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A path on a circle cut where it leaves on one side and comes back on the other, so that no line is drawn across.

    Angles lie in [−π, π]; no motion that a picture can show goes more than half around between two looks.
    """
    if not np.nanmax(np.abs(q), initial=0.0) <= np.pi + 1e-6:
        return q, p
    wraps = np.flatnonzero(np.abs(np.diff(q)) > np.pi) + 1
    return np.insert(q, wraps, np.nan), np.insert(p, wraps, np.nan)


def section(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """What was asked for at the crossings: the second against the first quantity, or the one against time."""
    axis = figure.add_subplot()
    value, time = data["value"].values, data["time"].values
    flat = value.reshape(*value.shape[:2], -1)
    crossings = int(np.isfinite(time).sum())
    for i in range(min(len(flat), _MOST)):
        known = np.isfinite(time[i])
        x, y = (flat[i, known, 0], flat[i, known, 1]) if flat.shape[-1] > 1 else (time[i, known], flat[i, known, 0])
        axis.scatter(x, y, s=_size(crossings), color=COLOURS[i % len(COLOURS)], lw=0, rasterized=True)
    labels = called.get("columns") or [f"{name}[{i}]" for i in range(flat.shape[-1])]
    axis.set_xlabel(labels[0] if flat.shape[-1] > 1 else "time t")
    axis.set_ylabel(labels[1] if flat.shape[-1] > 1 else labels[0])
    where = f" of {called['where']}" if "where" in called else ""
    axis.set_title(caption(f"{words}; {crossings} crossings{where}"), fontsize=9.5, loc="left")


def sphere(figure: Any, name: str, words: str, turns: Any) -> None:
    """Where the third axis of a body points: R e₃ on the unit sphere. Of many bodies the first few."""
    axis = _globe(figure)
    ends = turns.values[..., 2]
    if "time" in turns.dims:
        lines = np.moveaxis(ends.reshape(*ends.shape[:2], -1, 3), 2, 1).reshape(-1, ends.shape[1], 3)[: len(COLOURS)]
        joined = [_path(axis, line, COLOURS[i]) for i, line in enumerate(lines)]
    else:
        joined = []
        axis.scatter(*ends.reshape(-1, 3)[:_MOST].T, color=COLOURS[0], s=_size(ends.size // 3), alpha=0.6, lw=0)
    figure.suptitle(caption(f"{words}; third body axis" + (f"; {_dots(joined)}" if joined else ", last states")), fontsize=9.5)


def directions(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The mean direction over trajectories: on the sphere while all agree, within it as they spread."""
    axis = _globe(figure)
    mean = data["mean"].values
    lines = np.moveaxis(mean.reshape(len(mean), -1, 3), 1, 0)[: len(COLOURS)]
    joined = [_path(axis, line, COLOURS[i]) for i, line in enumerate(lines)]
    figure.suptitle(caption(f"{words}; mean of {title_of(name, called)}; {_dots(joined)}"), fontsize=9.5)


def _path(axis: Any, line: np.ndarray, colour: str) -> bool:
    """A path on or in the unit sphere with a dot at its start: a line, or points where looks are so far apart that chords would mislead."""
    gaps = np.linalg.norm(np.diff(line, axis=0), axis=-1)
    joined = not np.nanmax(gaps, initial=0.0) > _CHORD
    if joined:
        axis.plot(*line.T, color=colour, lw=1.2)
    else:
        axis.scatter(*line.T, color=colour, s=_size(len(line)) / 2, lw=0)
    axis.scatter(*line[:1].T, color=colour, s=40, edgecolor="black", lw=0.6)
    return joined


def _dots(joined: list[bool]) -> str:
    return "ringed: starts" if all(joined) else "ringed: starts; points where looks are too far apart to be joined"


def _globe(figure: Any) -> Any:
    """Axes with a unit sphere drawn as a few circles."""
    axis = figure.add_subplot(projection="3d")
    turn = np.linspace(0, 2 * np.pi, 121)
    for height in (-0.5, 0.0, 0.5):
        r = np.sqrt(1 - height**2)
        axis.plot(r * np.cos(turn), r * np.sin(turn), np.full_like(turn, height), color="0.75", lw=0.7)
    for longitude in np.arange(4) * np.pi / 4:
        axis.plot(np.sin(turn) * np.cos(longitude), np.sin(turn) * np.sin(longitude), np.cos(turn), color="0.75", lw=0.7)
    axis.set_box_aspect((1, 1, 1))
    axis.grid(visible=False)
    for side, name in ((axis.xaxis, "x"), (axis.yaxis, "y"), (axis.zaxis, "z")):
        side.pane.set_visible(False)
        side.set_ticks([-1, 0, 1])
        side.set_label_text(name)
    return axis


def _size(points: int) -> float:
    """The size of a dot: large where there are few."""
    return 22.0 if points < 200 else 9.0 if points < 2000 else 4.0


def _coordinates(array: Any) -> list[np.ndarray]:
    """The coordinates of each trajectory, kept apart: a list over coordinates of arrays (trajectory, ...)."""
    values = array.values
    lead = 2 if "time" in array.dims else 1
    flat = values.reshape(*values.shape[:lead], -1)
    return [flat[..., i] for i in range(flat.shape[-1])]
