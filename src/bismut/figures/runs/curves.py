"""Curves: statistics over time, functions of lag, quantiles."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
_MOST = len(COLOURS)  # components drawn; more would need colours that cannot be told apart


def columns(array: Any, name: str = "", called: Mapping[str, Any] | None = None) -> tuple[np.ndarray, list[str]]:
    """An array over its first axis as columns, and a label for each, as the run called them; the first few of many."""
    values = np.asarray(array)
    shape = values.shape[1:]
    labels = (called or {}).get("columns", ())
    if len(labels) != np.prod(shape, dtype=int):
        labels = [name + "".join(f"[{i}]" for i in index) for index in np.ndindex(*shape)]
    return values.reshape(len(values), -1)[:, :_MOST], list(labels[:_MOST])


def title_of(name: str, called: Mapping[str, Any]) -> str:
    """What is observed under a name: the quantity, if the run says so."""
    return ", ".join(called.get("of", ())) or name


def caption(words: str) -> str:
    """Words over a picture, in lines that fit its width."""
    return textwrap.fill(words, 84)


def survivors(data: Any) -> str:
    """A mark for what is over fewer trajectories than were run: how many, of how many. Empty where all are counted."""
    asked, counted, failed = (np.asarray(data.attrs.get(name, 0)) for name in ("asked", "counted", "failed"))
    if not failed.any():
        return ""
    if failed.ndim == 0:
        return f"⚠ over {int(counted)} of {int(asked)} trajectories: {int(failed)} failed"
    return f"⚠ {int(failed.sum())} of {int(asked.sum())} trajectories failed; over {int(counted.min())} at worst"


def mark_survivors(figure: Any, data: Any) -> None:
    """Write the mark into the picture, in a colour that no curve has."""
    words = survivors(data)
    if words:
        figure.text(0.5, 0.0, words, ha="center", va="top", fontsize=11, weight="bold", color="#B00020")


def note(axis: Any, shown: int, array: Any, words: str) -> None:
    """The caption: how the run was made, and what was left out."""
    total = int(np.prod(np.shape(array)[1:]))
    more = f"; the first {shown} of {total} components" if total > shown else ""
    axis.set_title(caption(words + more), fontsize=9.5, loc="left")


def series(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """Mean over trajectories with a band of two standard errors; of one number also the least and the largest value."""
    axis = figure.add_subplot()
    time = data["time"].values
    mean, labels = columns(data["mean"], name, called)
    error, _ = columns(data["stderr"])
    for i, label in enumerate(labels):
        axis.plot(time, mean[:, i], color=COLOURS[i], label=label)
        axis.fill_between(time, mean[:, i] - 2 * error[:, i], mean[:, i] + 2 * error[:, i], color=COLOURS[i], alpha=0.25, lw=0)
    if len(labels) == 1:
        for edge in ("min", "max"):
            axis.plot(time, columns(data[edge])[0][:, 0], color="0.55", lw=0.9, ls=":", label="least and largest" if edge == "min" else None)
    axis.set_xlabel("time t")
    axis.set_ylabel(f"mean {title_of(name, called)} ± 2 standard errors")
    _steady(axis, mean, np.concatenate([columns(data[edge])[0] for edge in ("min", "max")]))
    axis.legend(loc="best")
    note(axis, len(labels), data["mean"], words)


def lags(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """A correlation function, or a mean-squared displacement on logarithmic axes."""
    axis = figure.add_subplot()
    kind = "correlation" if "correlation" in data else "mean"
    lag = data["lag"].values
    values, labels = columns(data[kind], name, called)
    for i, label in enumerate(labels):
        axis.plot(lag, values[:, i], color=COLOURS[i], label=label)
    if kind == "mean" and np.nanmax(values) > 0:
        axis.set_xscale("log")
        axis.set_yscale("log")
    elif kind == "correlation":
        axis.axhline(0.0, color="0.4", lw=0.8)
    axis.set_xlabel("lag τ")
    axis.set_ylabel(f"autocorrelation of {title_of(name, called)}" if kind == "correlation" else "mean-squared displacement")
    if len(labels) > 1:
        axis.legend(loc="best")
    note(axis, len(labels), data[kind], words)


def levels(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """Shares against the values below which they lie."""
    axis = figure.add_subplot()
    values, labels = columns(data["quantile"], name, called)
    for i, label in enumerate(labels):
        axis.plot(values[:, i], data["level"].values, "o-", color=COLOURS[i], label=label)
    axis.set_ylim(0, 1)
    axis.set_xlabel(title_of(name, called))
    axis.set_ylabel("share of values below")
    if len(labels) > 1:
        axis.legend(loc="best")
    note(axis, len(labels), data["quantile"], words)


def _steady(axis: Any, mean: np.ndarray, extremes: np.ndarray) -> None:
    """Something conserved is drawn as a line, not as a magnified picture of its round-off.

    Of one number the spread is that of all values of all trajectories; of several, the largest of any of them. A mean can stand still while
    trajectories part, so the drift of the mean says nothing.
    """
    middle, low, high = float(np.nanmean(mean)), np.nanmin(extremes, 0), np.nanmax(extremes, 0)
    spread = float((high - low).max())
    bottom, top = axis.get_ylim()
    if spread < 1e-9 * max(1.0, abs(middle)) and top - bottom < 1e-6 * max(1.0, abs(middle)):
        width = 0.05 * max(1.0, abs(middle))
        axis.set_ylim(middle - width, middle + width)
        axis.text(0.98, 0.03, f"every trajectory constant to {spread:.1e}", transform=axis.transAxes, ha="right", fontsize=10)
