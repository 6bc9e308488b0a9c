"""Portraits: states in phase space, crossings of a section, orientations on the unit sphere. Few points are drawn one by one, many as a density."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST, tame
from bismut.figures.runs.labels import Observed, numbered, titled
from bismut.figures.style import colour, palette, scale
from bismut.palette import DASHES

POINTS = 5000  # more are shown as a density
_PATH = 20_000  # points of one line; a longer path fills the plane, and is a density too
_PANELS = 6
_CHORD = 0.35  # between two looks on the unit sphere: a longer chord leaves it by more than 1 − cos(0.175) = 0.015


def portrait(figure: Any, shown: Observed, pairs: list[Any]) -> None:
    """Momentum against position: lines for trajectories kept over time, points for last states. At most six coordinates, one panel each."""
    panels = [panel for x, y in pairs for panel in _coordinates(x, y, alone=len(pairs) == 1)]
    timed, count = "time" in pairs[0][0].dims, len(panels[0][2])
    joined = timed and count <= MOST and panels[0][2].shape[1] <= _PATH
    drawn = panels[:_PANELS]
    wide = min(3, len(drawn))
    axes = figure.subplots(-(-len(drawn) // wide), wide, squeeze=False)
    for axis in axes.flat[len(drawn) :]:
        axis.set_axis_off()
    dense = False
    for axis, (x, y, q, p) in zip(axes.flat, drawn, strict=False):
        if joined:
            _paths(axis, q, p)
            tame(axis, q, "x")
            tame(axis, p, "y")
        else:
            dense |= points(axis, np.ravel(q), np.ravel(p))
        axis.set_xlabel(x)
        axis.set_ylabel(y)
    how = "dots: starts" if joined else "colour: how densely states lie, logarithmic" if dense else "a dot for each state"
    more = f"; the first {_PANELS} of {len(panels)} coordinates" if len(panels) > _PANELS else ""
    what = "kept trajectories" if timed else "states at the end"
    arrived = int(np.isfinite(panels[0][2].reshape(count, -1)).any(1).sum())
    number = numbered(count) if arrived == count else f"{numbered(arrived)} of {numbered(count)}"
    titled(figure, f"Phase portrait: {what}, {number}", f"{shown.caption}; {how}{more}")


def _paths(axis: Any, q: np.ndarray, p: np.ndarray) -> None:
    for i, (a, b) in enumerate(zip(q, p, strict=True)):
        axis.plot(*cut_at_wraps(a, b), color=palette().series[i], linestyle=DASHES[i] if len(a) < 500 else "-", lw=1.0)
        axis.plot(a[:1], b[:1], "o", color=palette().series[i], ms=6, mec=palette().ground, mew=0.8, zorder=3)


def points(axis: Any, x: np.ndarray, y: np.ndarray) -> bool:
    """Points, or of many how densely they lie, without the few that lie far away. Says whether it is the latter."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if not len(x):
        axis.text(0.5, 0.5, "no trajectory finished", transform=axis.transAxes, color=colour("alarm"), ha="center")
    if len(x) <= POINTS:
        axis.scatter(x, y, s=_size(len(x)), color=palette().blue, alpha=0.6, lw=0, rasterized=True)
        return False
    (left, right), (low, high) = (_reach(values) for values in (x, y))
    counted, *edges = np.histogram2d(x, y, bins=int(np.clip(np.sqrt(len(x)) / 3, 40, 120)), range=((left, right), (low, high)))
    from matplotlib.colors import LogNorm

    axis.pcolormesh(*edges, np.where(counted > 0, counted, np.nan).T, cmap=scale(), norm=LogNorm(1, counted.max()), rasterized=True)
    axis.grid(visible=False)
    return True


def _reach(values: np.ndarray) -> tuple[float, float]:
    """From the least to the largest, unless a few far away would make the rest a dot."""
    low, high = float(values.min()), float(values.max())
    inner = np.quantile(values, (0.0005, 0.9995))
    if high - low > 5 * (inner[1] - inner[0]) > 0:
        low, high = (float(v) for v in inner)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def cut_at_wraps(q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A path on a circle cut where it leaves on one side and comes back on the other, so that no line is drawn across.

    Angles lie in [−π, π]; no motion that a picture can show goes more than half around between two looks.
    """
    if not np.nanmax(np.abs(q), initial=0.0) <= np.pi + 1e-6:
        return q, p
    wraps = np.flatnonzero(np.abs(np.diff(q)) > np.pi) + 1
    return np.insert(q, wraps, np.nan), np.insert(p, wraps, np.nan)


def section(figure: Any, shown: Observed) -> None:
    """What was recorded at the crossings: the second against the first quantity, or the one against time."""
    axis = figure.add_subplot()
    value, time = shown.data["value"].values, shown.data["time"].values
    flat = value.reshape(*value.shape[:2], -1)
    known = np.isfinite(time)
    crossings = int(known.sum())
    x, y = (flat[..., 0], flat[..., 1]) if flat.shape[-1] > 1 else (time, flat[..., 0])
    dense = crossings > 10 * POINTS
    if dense:
        points(axis, x[known], y[known])
    for i in range(0 if dense else min(len(flat), MOST)):  # trajectories take turns in colours
        mine = known[i::MOST]
        axis.scatter(x[i::MOST][mine], y[i::MOST][mine], s=_size(crossings), color=palette().series[i], lw=0, rasterized=True)
    names = shown.component_names(flat.shape[-1])
    axis.set_xlabel(names[0] if flat.shape[-1] > 1 else "time t")
    axis.set_ylabel(names[1] if flat.shape[-1] > 1 else names[0])
    where = f" of {shown.labels['where']}" if "where" in shown.labels else ""
    each = "a colour for each trajectory" if len(flat) <= MOST else "trajectories take turns in colours"
    how = "colour: how densely they lie, logarithmic" if dense else each
    titled(figure, f"{numbered(crossings)} crossings{where}", f"{shown.caption}; {how}")


def _size(count: int) -> float:
    """The size of a dot: large where there are few."""
    return 22.0 if count < 200 else 12.0 if count < 2000 else 6.0


def _coordinates(x: Any, y: Any, alone: bool) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """Labels and values (trajectory, ...) of each coordinate and its momentum."""
    lead = 2 if "time" in x.dims else 1
    q, p = (array.values.reshape(*array.shape[:lead], -1) for array in (x, y))
    places = ["".join(f"[{i}]" for i in index) for index in np.ndindex(*x.shape[lead:])]
    names = ("q", "p") if alone else (x.name, y.name)
    places = [""] if len(places) == 1 and alone else places
    return [(f"{names[0]}{place}", f"{names[1]}{place}", q[..., i], p[..., i]) for i, place in enumerate(places)]


def sphere(figure: Any, shown: Observed, turns: Any) -> None:
    """Where the third axis of a body points: R e₃ on the unit sphere. Of many bodies the first few."""
    axis = _globe(figure)
    ends = turns.values[..., 2]
    if "time" in turns.dims:
        lines = np.moveaxis(ends.reshape(*ends.shape[:2], -1, 3), 2, 1).reshape(-1, ends.shape[1], 3)
        joined = [_path(axis, line, palette().series[i]) for i, line in enumerate(lines[:MOST])]
        more = f"; the first {MOST} of {len(lines)} lines, each a body of a trajectory" if len(lines) > MOST else ""
        titled(figure, "Third body axis, kept trajectories", f"{shown.caption}; {_dots(joined)}{more}")
        return
    known = ends.reshape(-1, 3)
    known = known[np.isfinite(known).all(1)]
    some = known[:: -(-len(known) // POINTS) or 1]
    axis.scatter(*some.T, color=colour("blue"), s=9.0 if len(some) < 2000 else 4.0, alpha=0.7, lw=0)
    more = f"; {numbered(len(some))} of {numbered(len(known))} points" if len(some) < len(known) else ""
    titled(figure, "Third body axis at the end", shown.caption + more)


def directions(figure: Any, shown: Observed) -> None:
    """The mean direction over trajectories: on the sphere while all agree, within it as they spread."""
    axis = _globe(figure)
    mean = shown.data["mean"].values
    lines = np.moveaxis(mean.reshape(len(mean), -1, 3), 1, 0)[:MOST]
    joined = [_path(axis, line, palette().series[i]) for i, line in enumerate(lines)]
    where = "on the sphere while trajectories agree, within it as they spread"
    titled(figure, f"{shown.title}: {shown.averaged}", f"{shown.caption}; {where}; {_dots(joined)}")


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
