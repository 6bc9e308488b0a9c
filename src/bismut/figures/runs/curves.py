"""Curves with their errors: statistics over time, functions of lag, survival, quantiles, and all means over time on one page."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bismut.figures.runs.labels import Observed, columns, titled
from bismut.figures.style import colour, palette
from bismut.palette import DASHES

MOST = 7  # colours
_LINES = 14  # curves that can be told apart, by colour and dash; of more components their spread is drawn
_LOOKS = 2000  # more points than a picture has pixels
_ERRORS = "± 2 standard errors"
_OVER_KINDS = (("g", "r", "radial distribution function"), ("S", "k", "structure factor"))  # arrays over pairs of species and a distance
_WIDE = 4  # panels in a row of the overview


class Curve(NamedTuple):
    """y ± error over x, a column for each component."""

    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None
    labels: list[str]
    x_label: str
    y_label: str
    title: str
    logarithmic: bool = False
    line: float | None = None  # a level that means something, such as zero correlation


def curve_of(shown: Observed) -> Curve | None:
    """What an observer recorded, if it is a curve."""
    data, what = shown.data, shown.title
    kinds = set(map(str, data))
    leads = lambda kind, axis: kind in kinds and data[kind].dims[:1] == (axis,)
    if leads("mean", "time"):
        return _read(shown, "mean", "time", "stderr", f"mean {what}", f"{what}: {shown.averaged}")
    if leads("correlation", "lag"):
        return _read(shown, "correlation", "lag", "correlation_stderr", f"autocorrelation of {what}", f"{what}: autocorrelation", line=0.0)
    if leads("mean", "lag"):
        return _read(shown, "mean", "lag", "stderr", "⟨|X(t + τ) − X(t)|²⟩", "Mean-squared displacement", logarithmic=True)
    if leads("survival", "time"):
        return _read(shown, "survival", "time", "stderr", "share not yet passed", f"{what}: first passage, those left at time t", line=0.0)
    for kind, axis, text in _OVER_KINDS:
        if kind in kinds and data[kind].dims == ("kind", axis):
            errors = np.asarray(data["stderr"]).T if "stderr" in data else None
            names = [f"{kind} of {one}" if data.sizes["kind"] > 1 else kind for one in data["kind"].values]
            return Curve(data[axis].values, np.asarray(data[kind]).T, errors, names, axis, f"{kind}({axis})", f"{what}: {text}", line=1.0)
    return None


def _read(shown: Observed, kind: str, axis: str, error: str, y_label: str, title: str, logarithmic: bool = False, line: float | None = None) -> Curve:
    values, names = shown.columns(kind)
    errors = columns(shown.data[error]) if error in shown.data else None
    x_label = {"time": "time t", "lag": "lag τ"}[axis]
    return Curve(shown.data[axis].values, values, errors, names, x_label, y_label, title, logarithmic, line)


def draw_curve(axis: Any, curve: Curve, **line: Any) -> None:
    """Lines with bands of two standard errors; of many components the median and where most of them lie."""
    logarithmic = curve.logarithmic and np.nanmax(curve.y, initial=0.0) > 0 and (curve.x > 0).any()
    if logarithmic:  # where nothing has a place at zero
        there = curve.x > 0
        curve = curve._replace(x=curve.x[there], y=curve.y[there], error=None if curve.error is None else curve.error[there])
    if curve.y.shape[1] > _LINES:
        _fan(axis, curve)
    else:
        for i, label in enumerate(curve.labels):
            look = look_of(i) | {"label": label} | line
            axis.plot(curve.x, curve.y[:, i], **look)
            if curve.error is not None:
                band(axis, curve.x, curve.y[:, i] - 2 * curve.error[:, i], curve.y[:, i] + 2 * curve.error[:, i], look["color"])
    if curve.line is not None:
        axis.axhline(curve.line, color=colour("soft"), lw=0.9, zorder=0)
    if logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("log")
    axis.set_xlabel(curve.x_label)
    axis.set_ylabel(curve.y_label)


def tame(axis: Any, values: np.ndarray, side: str) -> None:
    """Leave out outliers, values a hundred times farther apart than nine tenths of them, which would flatten the rest; and say so."""
    known = values[np.isfinite(values)]
    if not known.size:
        return
    low, high = (float(v) for v in np.quantile(known, (0.05, 0.95)))
    with np.errstate(over="ignore"):
        far = float(known.max() - known.min())
    if not far > 100 * (high - low) > 0:
        return
    margin = 0.1 * (high - low)
    (axis.set_ylim if side == "y" else axis.set_xlim)(low - margin, high + margin)
    place = {"x": 0.5, "y": 0.97 if side == "y" else 0.03, "ha": "center"}
    text = f"not shown: values from {known.min():.2g} to {known.max():.2g}{'' if side == 'y' else ' along the axis'}"
    axis.text(s=text, transform=axis.transAxes, color=colour("alarm"), fontsize=9.5, va="center", **place)


def look_of(number: int) -> dict[str, Any]:
    """Colour and dash of a curve; after a round of colours dashes go on by one."""
    return {"color": palette().series[number % MOST], "linestyle": DASHES[(number + number // MOST) % MOST]}


def _thinned(x: np.ndarray, y: np.ndarray, pick: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    """Of more points than a picture can show, the least or the largest of neighbours."""
    if len(x) <= _LOOKS:
        return x, y
    starts = np.linspace(0, len(x), _LOOKS, endpoint=False).astype(int)
    return x[starts], pick.reduceat(y, starts)


def band(axis: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray, shade: str, alpha: float = 0.28, label: str | None = None) -> None:
    """The region between two curves."""
    places, low = _thinned(x, low, np.fmin)
    axis.fill_between(places, low, _thinned(x, high, np.fmax)[1], color=shade, alpha=alpha, lw=0, label=label)


def _fan(axis: Any, curve: Curve) -> None:
    """Of many components: the median, four fifths of them, and all."""
    levels = np.nanquantile(curve.y, (0, 0.1, 0.5, 0.9, 1), axis=1)
    blue, count = colour("blue"), curve.y.shape[1]
    band(axis, curve.x, levels[0], levels[4], blue, 0.14, f"all {count} components")
    band(axis, curve.x, levels[1], levels[3], blue, 0.3, "10 % to 90 % of them")
    axis.plot(curve.x, levels[2], color=blue, label="their median")


def series(figure: Any, shown: Observed) -> None:
    """Mean over trajectories with a band of two standard errors; of one number also how far trajectories spread."""
    axis, data = figure.add_subplot(), shown.data
    curve = curve_of(shown)
    assert curve is not None
    single = curve.y.shape[1] == 1
    constant = _constant(curve.y, data)
    if single and constant is None:
        _spread(axis, curve, data)
    draw_curve(axis, curve, **({"label": f"mean {_ERRORS}"} if single else {}))
    if constant is not None:
        _flat(axis, curve.y, constant)
    else:
        half = columns(data["std"]) if single and "std" in data else 0.0
        tame(axis, np.concatenate([curve.y - half, curve.y + half]), "y")
    legend(axis, None if single or curve.y.shape[1] > _LINES else _ERRORS)
    titled(figure, curve.title, shown.caption)


def functions(figure: Any, shown: Observed) -> None:
    """A function of lag, of distance or of wave number, or a survival curve; under g(r) the neighbours within r."""
    curve, below = curve_of(shown), _neighbours(shown)
    assert curve is not None
    axis, lower = (figure.add_subplot(), None) if below is None else figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    caption = shown.caption
    single = curve.y.shape[1] == 1
    draw_curve(axis, curve, **({"label": _ERRORS} if single else {}))
    if "survival" in shown.data:
        axis.set_ylim(0, 1.03)
        caption = f"{caption}; {int(shown.data['censored'])} of {int(shown.data['count'])} never seen to pass"
    if curve.error is not None or not single:
        legend(axis, None if single or curve.y.shape[1] > _LINES else _ERRORS)
    if below is not None:
        draw_curve(lower, below)
        axis.set_xlabel("")
    titled(figure, curve.title, caption)


def _neighbours(shown: Observed) -> Curve | None:
    """How many points lie within r of one, with errors, where they were counted: at the ends of the bins."""
    data = shown.data
    if not {"coordination", "coordination_stderr"} <= set(map(str, data)) or "cosine" in data.sizes:
        return None
    y, error = (np.asarray(data[name]).T for name in ("coordination", "coordination_stderr"))
    return Curve(data["edges"].values[1:], y, error, ["" for _ in data["kind"].values], "r", "neighbours within r", "")


def levels(figure: Any, shown: Observed) -> None:
    """Shares against the values below which they lie, with two standard errors of the values."""
    axis, data = figure.add_subplot(), shown.data
    values, names = shown.columns("quantile")
    errors = columns(data["stderr"]) if "stderr" in data else np.full_like(values, np.nan)
    for i, name in enumerate(names[:MOST]):
        look = look_of(i) | {"label": name}
        axis.errorbar(values[:, i], data["level"].values, xerr=2 * np.nan_to_num(errors[:, i]), fmt="o", ms=5, capsize=3, **look)
    axis.set_ylim(0, 1)
    axis.set_xlabel(f"{shown.title} {_ERRORS}")
    axis.set_ylabel("share of values below")
    if len(names) > 1:
        legend(axis)
    more = f"; the first {MOST} of {len(names)} components" if len(names) > MOST else ""
    titled(figure, f"{shown.title}: quantiles", shown.caption + more)


def overview(figure: Any, means: list[Observed]) -> None:
    """A small panel for each observer, named over it: the mean with two standard errors."""
    rows = -(-len(means) // _WIDE)
    panels = figure.subplots(rows, _WIDE, squeeze=False, sharex=True)
    for axis in panels.flat[len(means) :]:
        axis.set_axis_off()
    for i, (axis, shown) in enumerate(zip(panels.flat, means, strict=False)):
        curve = curve_of(shown)
        assert curve is not None
        draw_curve(axis, curve, lw=1.2)
        axis.set_title(shown.name if shown.title == shown.name else f"{shown.name}: {shown.title}", fontsize=10.5, loc="left")
        axis.set_ylabel("")
        axis.tick_params(labelsize=9)
        if i + _WIDE < len(means):
            axis.set_xlabel("")
        else:
            axis.tick_params(labelbottom=True)
        bottom, top = axis.get_ylim()
        size = max(1.0, float(np.nanmax(np.abs(curve.y), initial=0.0)))
        if top - bottom < 1e-9 * size:  # something conserved is a line, not its round-off
            axis.set_ylim((bottom + top) / 2 - 0.05 * size, (bottom + top) / 2 + 0.05 * size)
    titled(figure, f"Overview: {means[0].averaged}", f"{means[0].caption}; bands: two standard errors")


def legend(axis: Any, title: str | None = None) -> None:
    """Over the axes in a row, or beside them where there are many entries: never on what it explains."""
    handles, labels = axis.get_legend_handles_labels()
    if len(labels) > 4:
        axis.legend(title=title, title_fontsize=9.5, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, frameon=False)
        return
    across = 4 if sum(map(len, labels)) < 60 else 2
    axis.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=across, borderaxespad=0.2, frameon=False, columnspacing=1.5)
    if title is not None:
        axis.set_ylabel(f"{axis.get_ylabel()} {title}")


def _spread(axis: Any, curve: Curve, data: Any) -> None:
    """One standard deviation of trajectories as a band; the least and the largest, unless they would press everything else together."""
    x, mean = curve.x, curve.y[:, 0]
    half = np.zeros_like(mean)
    if "std" in data:
        half = columns(data["std"])[:, 0]
    if not {"min", "max"} <= set(map(str, data)):
        return
    low, high = (columns(data[edge])[:, 0] for edge in ("min", "max"))
    if np.nanmax(half, initial=0.0) > 0:
        # No value lies beyond the extremes, though mean − std may: that of a kinetic energy does.
        band(axis, x, np.fmax(mean - half, low), np.fmin(mean + half, high), colour("blue"), 0.13, "± one standard deviation")
    inner, outer = np.fmax.reduce(mean + half) - np.fmin.reduce(mean - half), np.fmax.reduce(high) - np.fmin.reduce(low)
    if outer <= 5 * inner:
        for edge, pick, label in ((low, np.fmin, "least and largest"), (high, np.fmax, None)):
            axis.plot(*_thinned(x, edge, pick), color=colour("soft"), lw=0.9, ls=":", label=label)
    else:
        axis.plot([], [], " ", label=f"all values from {np.fmin.reduce(low):.3g} to {np.fmax.reduce(high):.3g}")


def _constant(mean: np.ndarray, data: Any) -> float | None:
    """The spread of what every trajectory conserves; None where some does not.

    Of one number the spread is that of all values of all trajectories; of several, the largest of any of them. A mean can stand still while
    trajectories part, so the drift of the mean says nothing.
    """
    if not {"min", "max"} <= set(map(str, data)):
        return None
    if not np.isfinite(mean).any() or np.isinf(mean).any():
        return None
    low, high = np.fmin.reduce(columns(data["min"])), np.fmax.reduce(columns(data["max"]))
    spread = float((high - low).max())
    return spread if spread < 1e-9 * max(1.0, float(np.fmax.reduce(np.abs(mean), axis=None))) else None


def _flat(axis: Any, mean: np.ndarray, spread: float) -> None:
    """Something conserved is drawn as a line, not as a magnified picture of its round-off."""
    least, most = (float(pick.reduce(mean, axis=None)) for pick in (np.fmin, np.fmax))
    width = 0.05 * max(1.0, abs(least), abs(most))
    axis.set_ylim(least - width, most + width)
    axis.text(0.98, 0.03, f"every trajectory constant to {spread:.1e}", transform=axis.transAxes, ha="right", fontsize=10)
