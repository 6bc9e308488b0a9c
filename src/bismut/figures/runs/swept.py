"""Sweeps: one curve for each value of what was swept, and the last mean against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bismut.figures.runs.curves import COLOURS, caption, title_of

_MOST = len(COLOURS)  # curves in one picture; more cannot be told apart


def values_of(data: Any, axes: Sequence[str]) -> list[tuple[str, Any]]:
    """The data for each combination of swept values, with words that name it."""
    found = []
    for index in np.ndindex(*(data.sizes[axis] for axis in axes)):
        one = data.isel(dict(zip(axes, index, strict=True)), drop=True)
        found.append((", ".join(f"{axis} = {float(data[axis][i]):g}" for axis, i in zip(axes, index, strict=True)), one))
    return found


def over_time(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any], axes: Sequence[str]) -> None:
    """The mean over trajectories with a band of two standard errors, a curve for each value; of an array the first number."""
    axis = figure.add_subplot()
    shown = values_of(data, axes)
    picked = shown if len(shown) <= _MOST else [shown[i] for i in np.linspace(0, len(shown) - 1, _MOST).astype(int)]
    for colour, (label, one) in zip(COLOURS, picked, strict=False):
        mean, error = (one[kind].values.reshape(one.sizes["time"], -1)[:, 0] for kind in ("mean", "stderr"))
        axis.plot(one["time"].values, mean, color=colour, label=label)
        axis.fill_between(one["time"].values, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.25, lw=0)
    axis.set_xlabel("time t")
    axis.set_ylabel(f"mean {_first(name, called)} ± 2 standard errors")
    axis.legend(loc="best")
    more = f"; {len(picked)} of {len(shown)} values" if len(picked) < len(shown) else ""
    axis.set_title(caption(words + more), fontsize=9.5, loc="left")


def against(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any], axes: Sequence[str]) -> None:
    """The last mean, or the average over time, against the first of the swept parameters; a line for each value of the others."""
    axis = figure.add_subplot()
    last = data.isel(time=-1, drop=True) if "time" in data["mean"].dims else data
    first, *others = axes
    for i, (label, one) in enumerate(values_of(last, others)):
        mean, error = (one[kind].values.reshape(one.sizes[first], -1)[:, 0] for kind in ("mean", "stderr"))
        axis.errorbar(one[first].values, mean, 2 * error, fmt="o-", capsize=3, color=COLOURS[i % len(COLOURS)], label=label or None)
    axis.set_xlabel(first)
    when = f" at t = {float(data['time'][-1]):g}" if "time" in data["mean"].dims else ", average over time"
    axis.set_ylabel(f"mean {_first(name, called)} ± 2 standard errors")
    if others:
        axis.legend(loc="best")
    axis.set_title(caption(f"{words}; {title_of(name, called)}{when}"), fontsize=9.5, loc="left")


def _first(name: str, called: Mapping[str, Any]) -> str:
    return (called.get("columns") or [name])[0]
