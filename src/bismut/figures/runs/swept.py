"""Sweeps: a curve for each value of what was swept, in the colours of numbers, and the last mean against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bismut.figures.runs.curves import Curve, band, curve_of
from bismut.figures.runs.labels import Observed, titled
from bismut.figures.style import colour, palette, scale
from bismut.palette import DASHES, MARKS

_PANELS = 6  # values of further parameters, each with a panel of its own
_NAMED = 5  # curves that a legend names; more are read off a bar of colours


def values_of(data: Any, axes: Sequence[str]) -> list[tuple[str, Any]]:
    """The data for each combination of swept values, with a text that names it."""
    values = []
    for index in np.ndindex(*(data.sizes[axis] for axis in axes)):
        one = data.isel(dict(zip(axes, index, strict=True)), drop=True)
        values.append((", ".join(f"{axis} = {float(data[axis][i]):g}" for axis, i in zip(axes, index, strict=True)), one))
    return values


def family(figure: Any, shown: Observed) -> None:
    """Curves with bands of two standard errors, one for each value of the first parameter; a panel for each value of the others; of an array its
    first component."""
    data, (first, *others) = shown.data, shown.axes
    every = values_of(data, others)
    panels = figure.subplots(1, min(len(every), _PANELS), squeeze=False, sharex=True, sharey=True)[0]
    curves: list[Curve] = []
    for axis, (label, some) in zip(panels, every, strict=False):
        curves = [curve for _, one in values_of(some, [first]) if (curve := curve_of(shown._replace(data=one))) is not None]
        for curve, look in zip(curves, _looks(data[first].values, first), strict=True):
            axis.plot(curve.x, curve.y[:, 0], **look)
            if curve.error is not None:
                band(axis, curve.x, curve.y[:, 0] - 2 * curve.error[:, 0], curve.y[:, 0] + 2 * curve.error[:, 0], look["color"], 0.2)
        axis.set_title(label, fontsize=11)
        axis.set_xlabel(curves[0].x_label)
        if curves[0].logarithmic:
            axis.set(xscale="log", yscale="log")
        if curves[0].line is not None:
            axis.axhline(curves[0].line, color=colour("soft"), lw=0.9, zorder=0)
    several = curves[0].y.shape[1] > 1
    panels[0].set_ylabel(f"{curves[0].y_label} ± 2 standard errors" if not several else f"{curves[0].labels[0]} ± 2 standard errors")
    _key(figure, panels, first, data[first].values)
    more = f"; {_PANELS} of {len(every)} values of {', '.join(others)}" if len(every) > _PANELS else ""
    more += f"; the first of {curves[0].y.shape[1]} components" if several else ""
    titled(figure, f"{curves[0].title}, for each {first}", shown.caption + more)


def _looks(values: np.ndarray, name: str) -> Iterator[dict[str, Any]]:
    """Colours that grow darker or lighter with the number, and dashes where few are named."""
    from matplotlib.colors import to_hex

    colours = scale()
    shares = np.linspace(0, 1, len(values)) if len(values) > 1 else [0.5]
    for i, (value, share) in enumerate(zip(values, shares, strict=True)):
        dash = DASHES[i] if len(values) <= _NAMED else "-"
        yield {"color": to_hex(colours(share)), "linestyle": dash, "label": f"{name} = {value:g}"}


def _key(figure: Any, panels: Any, name: str, values: np.ndarray) -> None:
    """A legend for a few values; else a bar of their colours."""
    if len(values) <= _NAMED:
        panels[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, frameon=False)
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    edges = np.arange(len(values) + 1) - 0.5
    bar = ScalarMappable(BoundaryNorm(edges, len(values)), ListedColormap([look["color"] for look in _looks(values, name)]))
    ticks = np.unique(np.linspace(0, len(values) - 1, min(len(values), 9)).astype(int))
    drawn = figure.colorbar(bar, ax=list(panels), ticks=ticks, label=name)
    drawn.ax.set_yticklabels([f"{values[i]:g}" for i in ticks])


def against(figure: Any, shown: Observed) -> None:
    """The last mean, or the average over time, against the first of the swept parameters, with two standard errors; a line for each value of the
    others, a panel for each of the first components."""
    timed, (first, *others) = "time" in shown.data["mean"].dims, shown.axes
    last = shown.data.isel(time=-1, drop=True) if timed else shown.data
    read = lambda one, kind: shown._replace(data={kind: one[kind].transpose(first, ...)}).columns(kind)
    every = [(label, one[first].values, read(one, "mean")[0], read(one, "stderr")[0]) for label, one in values_of(last, others)]
    labels = read(values_of(last, others)[0][1], "mean")[1]
    panels = figure.subplots(1, min(len(labels), 3), squeeze=False)[0]
    for part, axis in enumerate(panels):
        for i, (label, values, mean, error) in enumerate(every):
            look = {"color": palette().series[i % 7], "marker": MARKS[i % 7], "linestyle": DASHES[i % 7], "label": label or None}
            axis.errorbar(values, mean[:, part], 2 * error[:, part], ms=5, capsize=3, lw=1.3, **look)
        axis.set_xlabel(first)
        axis.set_ylabel(f"mean {labels[part] if len(labels) > 1 else shown.title} ± 2 standard errors")
        if _geometric(last[first].values):
            axis.set_xscale("log")
    if others:
        panels[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, frameon=False)
    when = f"at t = {float(shown.data['time'][-1]):g}" if timed else "average over time"
    more = f"; the first {len(panels)} of {len(labels)} components" if len(labels) > len(panels) else ""
    titled(figure, f"{shown.title} against {first}, {when}", shown.caption + more)


def _geometric(values: np.ndarray) -> bool:
    """Whether values span decades."""
    return bool(len(values) > 2 and values.min() > 0 and values.max() / values.min() >= 50)
