"""Curves with their errors: statistics over time, functions of lag, survival, quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bismut.figures.runs.wording import columns, over, title_of, titled
from bismut.figures.style import colour, palette
from bismut.palette import DASHES

MOST = 7  # colours
_LINES = 14  # curves that can be told apart, by colour and dash; of more components their spread is drawn
_LOOKS = 2000  # more points than a picture has pixels
_ERRORS = "± 2 standard errors"


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


def curve_of(name: str, data: Any, called: Mapping[str, Any]) -> Curve | None:
    """What an observer left, if it is a curve."""
    kinds, what = set(map(str, data)), title_of(name, called)
    leads = lambda kind, axis: kind in kinds and data[kind].dims[:1] == (axis,)
    read = lambda kind, axis, error: (data[axis].values, *_columns(data, kind, error, name, called))
    if leads("mean", "time"):
        return Curve(*read("mean", "time", "stderr"), "time t", f"mean {what}", f"{what}: {over(data)}")
    if leads("correlation", "lag"):
        return Curve(*read("correlation", "lag", "correlation_stderr"), "lag τ", f"autocorrelation of {what}", f"{what}: autocorrelation", line=0.0)
    if leads("mean", "lag"):
        return Curve(*read("mean", "lag", "stderr"), "lag τ", "⟨|X(t + τ) − X(t)|²⟩", "Mean-squared displacement", logarithmic=True)
    if leads("survival", "time"):
        return Curve(*read("survival", "time", "stderr"), "time t", "share not yet passed", f"{what}: first passage, those left at time t", line=0.0)
    return None


def _columns(data: Any, kind: str, error: str, name: str, called: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    values, labels = columns(data[kind], name, called)
    return values, columns(data[error])[0] if error in data else None, labels


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
    """Leave out what flies off: values a hundred times farther apart than nine tenths of them, which would make a line of the rest; and say so."""
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
    place = {"x": 0.5, "y": 0.97, "ha": "center"} if side == "y" else {"x": 0.5, "y": 0.03, "ha": "center"}
    told = f"not shown: values from {known.min():.2g} to {known.max():.2g}"
    axis.text(
        s=told if side == "y" else f"{told} along the axis", transform=axis.transAxes, color=colour("alarm"), fontsize=9.5, va="center", **place
    )


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


def series(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """Mean over trajectories with a band of two standard errors; of one number also how far trajectories spread."""
    axis = figure.add_subplot()
    curve = curve_of(name, data, called)
    assert curve is not None
    single = curve.y.shape[1] == 1
    constant = _constant(curve.y, data)
    if single and constant is None:
        _spread(axis, curve, data)
    draw_curve(axis, curve, **({"label": f"mean {_ERRORS}"} if single else {}))
    if constant is not None:
        _calm(axis, curve.y, constant)
    else:
        half = columns(data["std"])[0] if single and "std" in data else 0.0
        tame(axis, np.concatenate([curve.y - half, curve.y + half]), "y")
    legend(axis, None if single or curve.y.shape[1] > _LINES else _ERRORS)
    titled(figure, curve.title, words)


def functions(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """A function of lag, or a survival curve."""
    axis = figure.add_subplot()
    curve = curve_of(name, data, called)
    assert curve is not None
    single = curve.y.shape[1] == 1
    draw_curve(axis, curve, **({"label": _ERRORS} if single else {}))
    if "survival" in data:
        axis.set_ylim(0, 1.03)
        words = f"{words}; {int(data['censored'])} of {int(data['count'])} never seen to pass"
    if curve.error is not None or not single:
        legend(axis, None if single or curve.y.shape[1] > _LINES else _ERRORS)
    titled(figure, curve.title, words)


def levels(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """Shares against the values below which they lie, with two standard errors of the values."""
    axis = figure.add_subplot()
    values, labels = columns(data["quantile"], name, called)
    errors = columns(data["stderr"])[0] if "stderr" in data else np.full_like(values, np.nan)
    for i, label in enumerate(labels[:MOST]):
        look = look_of(i) | {"label": label}
        axis.errorbar(values[:, i], data["level"].values, xerr=2 * np.nan_to_num(errors[:, i]), fmt="o", ms=5, capsize=3, **look)
    axis.set_ylim(0, 1)
    axis.set_xlabel(f"{title_of(name, called)} {_ERRORS}")
    axis.set_ylabel("share of values below")
    if len(labels) > 1:
        legend(axis)
    more = f"; the first {MOST} of {len(labels)} components" if len(labels) > MOST else ""
    titled(figure, f"{title_of(name, called)}: quantiles", words + more)


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
        half = columns(data["std"])[0][:, 0]
    if not {"min", "max"} <= set(map(str, data)):
        return
    low, high = (columns(data[edge])[0][:, 0] for edge in ("min", "max"))
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
    low, high = np.fmin.reduce(columns(data["min"])[0]), np.fmax.reduce(columns(data["max"])[0])
    spread = float((high - low).max())
    return spread if spread < 1e-9 * max(1.0, float(np.fmax.reduce(np.abs(mean), axis=None))) else None


def _calm(axis: Any, mean: np.ndarray, spread: float) -> None:
    """Something conserved is drawn as a line, not as a magnified picture of its round-off."""
    least, most = (float(pick.reduce(mean, axis=None)) for pick in (np.fmin, np.fmax))
    width = 0.05 * max(1.0, abs(least), abs(most))
    axis.set_ylim(least - width, most + width)
    axis.text(0.98, 0.03, f"every trajectory constant to {spread:.1e}", transform=axis.transAxes, ha="right", fontsize=10)
