"""Portraits: states in phase space, crossings of a section. Few points are drawn one by one, many as how densely they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST, tame
from bismut.figures.runs.wording import numbered, titled
from bismut.figures.style import colour, palette, scale
from bismut.palette import DASHES

POINTS = 5000  # more are shown as a density
_PATH = 20_000  # points of one line; a longer path fills the plane, and is a density too
_PANELS = 6


def portrait(figure: Any, name: str, words: str, pairs: list[Any]) -> None:
    """Momentum against position: lines for trajectories kept over time, points for last states. At most six coordinates, one panel each."""
    panels = [panel for x, y in pairs for panel in _coordinates(x, y, alone=len(pairs) == 1)]
    timed, count = "time" in pairs[0][0].dims, len(panels[0][2])
    joined = timed and count <= MOST and panels[0][2].shape[1] <= _PATH
    shown = panels[:_PANELS]
    wide = min(3, len(shown))
    axes = figure.subplots(-(-len(shown) // wide), wide, squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    dense = False
    for axis, (x, y, q, p) in zip(axes.flat, shown, strict=False):
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
    titled(figure, f"Phase portrait: {what}, {number}", f"{words}; {how}{more}")


def _paths(axis: Any, q: np.ndarray, p: np.ndarray) -> None:
    for i, (a, b) in enumerate(zip(q, p, strict=True)):
        axis.plot(*cut_at_wraps(a, b), color=palette().series[i], linestyle=DASHES[i] if len(a) < 500 else "-", lw=1.0)
        axis.plot(a[:1], b[:1], "o", color=palette().series[i], ms=6, mec=palette().ground, mew=0.8, zorder=3)


def points(axis: Any, x: np.ndarray, y: np.ndarray) -> bool:
    """Points, or of many how densely they lie, without the few that lie far away. Says whether it is the latter."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if not len(x):
        axis.text(0.5, 0.5, "nobody arrived", transform=axis.transAxes, color=colour("alarm"), ha="center")
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


def section(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """What was asked for at the crossings: the second against the first quantity, or the one against time."""
    axis = figure.add_subplot()
    value, time = data["value"].values, data["time"].values
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
    labels = called.get("columns") or [f"{name}[{i}]" for i in range(flat.shape[-1])]
    axis.set_xlabel(labels[0] if flat.shape[-1] > 1 else "time t")
    axis.set_ylabel(labels[1] if flat.shape[-1] > 1 else labels[0])
    where = f" of {called['where']}" if "where" in called else ""
    each = "a colour for each trajectory" if len(flat) <= MOST else "trajectories take turns in colours"
    how = "colour: how densely they lie, logarithmic" if dense else each
    titled(figure, f"{numbered(crossings)} crossings{where}", f"{words}; {how}")


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
