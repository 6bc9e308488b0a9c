"""Values that were kept as they are: a few trajectories as lines, many as where most of them lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST, band, legend, look_of
from bismut.figures.runs.wording import numbered, title_of, titled
from bismut.figures.style import colour

_BANDS = ((0.005, 0.995, 0.12, "99 % of trajectories"), (0.05, 0.95, 0.2, "90 %"), (0.25, 0.75, 0.32, "50 %"))
_LOOKS, _SORTED = 400, 20_000  # times, and trajectories sorted at each: quantiles are then right to 0.004 of the distribution


def traces(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """Values over time of each trajectory, of at most three components: lines, or quantiles over trajectories."""
    kept = data["value"].values
    flat, time = kept.reshape(*kept.shape[:2], -1), data["time"].values
    labels = called.get("columns") or [f"{name}[{i}]" if flat.shape[-1] > 1 else title_of(name, called) for i in range(flat.shape[-1])]
    axes = figure.subplots(min(flat.shape[-1], 3), 1, squeeze=False, sharex=True)[:, 0]
    for part, axis in enumerate(axes):
        _lines(axis, time, data["trajectory"].values, flat[..., part]) if len(flat) <= MOST else _quantiles(axis, time, flat[..., part])
        axis.set_ylabel(labels[part])
    axes[-1].set_xlabel("time t")
    legend(axes[0])
    more = f"; the first {len(axes)} of {flat.shape[-1]} components" if flat.shape[-1] > len(axes) else ""
    titled(figure, f"{title_of(name, called)} of {numbered(len(flat))} trajectories", words + more)


def _lines(axis: Any, time: np.ndarray, numbers: np.ndarray, values: np.ndarray) -> None:
    for i, (number, line) in enumerate(zip(numbers, values, strict=True)):
        look = look_of(i) if len(time) < 500 else {"color": look_of(i)["color"]}
        axis.plot(time, line, lw=1.2, label=f"trajectory {int(number)}", **look)


def _quantiles(axis: Any, time: np.ndarray, values: np.ndarray) -> None:
    """Bands over trajectories that have not failed by then, at times that a picture can show."""
    some = np.unique(np.linspace(0, len(time) - 1, min(len(time), _LOOKS)).astype(int))
    wanted = [level for low, high, *_ in _BANDS for level in (low, high)] + [0.5]
    here = values[:: -(-len(values) // _SORTED), some]
    found = np.full((len(wanted), len(some)), np.nan)
    for look, column in enumerate(here.T):
        known = column[np.isfinite(column)]
        if known.size:
            found[:, look] = np.quantile(known, wanted)
    for i, (_, _, alpha, label) in enumerate(_BANDS):
        band(axis, time[some], found[2 * i], found[2 * i + 1], colour("blue"), alpha, label)
    axis.plot(time[some], found[-1], color=colour("blue"), label="median")
