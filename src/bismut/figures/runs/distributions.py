"""Distributions: histograms that a run counted, of its last momenta, and of recorded values over time: a few as lines, many as quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST, band, legend, look_of
from bismut.figures.runs.labels import Observed, numbered, titled
from bismut.figures.runs.swept import values_of
from bismut.figures.style import colour, scale
from bismut.palette import DASHES

_BANDS = ((0.005, 0.995, 0.12, "99 % of trajectories"), (0.05, 0.95, 0.2, "90 %"), (0.25, 0.75, 0.32, "50 %"))
_LOOKS, _SORTED = 400, 20_000  # times, and trajectories sorted at each: quantiles are then right to 0.004 of the distribution
_FEW = 20  # values that make no histogram


def counts(figure: Any, shown: Observed) -> None:
    """The density of one quantity with two standard errors, and how many values fell outside the range."""
    axis, data = figure.add_subplot(), shown.data
    density, edges = data["density"].values, data["edges"].values
    axis.stairs(density, edges, fill=True, alpha=0.18, color=colour("blue"))
    axis.stairs(density, edges, color=colour("blue"), lw=1.4)
    if "stderr" in data:
        middle = (edges[1:] + edges[:-1]) / 2
        axis.errorbar(middle, density, 2 * data["stderr"].values, fmt="none", color=colour("blue"), lw=1, label="± 2 standard errors")
        legend(axis)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(shown.title)
    axis.set_ylabel("density")
    titled(figure, f"{shown.title}: distribution", shown.caption + _outside(data))


def compared(figure: Any, shown: Observed) -> None:
    """Densities of one quantity for some values of what was swept, with two standard errors."""
    from matplotlib.colors import to_hex

    axis = figure.add_subplot()
    every = values_of(shown.data, shown.axes)
    picked = every if len(every) <= MOST else [every[i] for i in np.linspace(0, len(every) - 1, MOST).astype(int)]
    for i, (label, one) in enumerate(picked):
        density, edges, shade = one["density"].values, one["edges"].values, to_hex(scale()(i / max(len(picked) - 1, 1)))
        axis.stairs(density, edges, color=shade, lw=1.6, linestyle=DASHES[i], label=label)
        if "stderr" in one:
            low, high = (np.repeat(density + sign * 2 * one["stderr"].values, 2) for sign in (-1, 1))
            band(axis, np.repeat(edges, 2)[1:-1], low, high, shade, 0.2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(shown.title)
    axis.set_ylabel("density ± 2 standard errors")
    legend(axis)
    more = f"; {len(picked)} of {len(every)} values" if len(picked) < len(every) else ""
    titled(figure, f"{shown.title}: distribution, for each {', '.join(shown.axes)}", shown.caption + more)


def grid(figure: Any, shown: Observed) -> None:
    """The density of two quantities; where nothing was counted nothing is drawn."""
    axis, data = figure.add_subplot(), shown.data
    x, y = data["edges_x"].values, data["edges_y"].values
    density = np.where(data["counts"].values > 0, data["density"].values, np.nan)
    mesh = axis.pcolormesh(x, y, density.T, cmap=scale(), rasterized=True)
    figure.colorbar(mesh, ax=axis, label="density")
    axis.grid(visible=False)
    x_label, y_label = shown.labels.get("of", (f"{shown.name}[0]", f"{shown.name}[1]"))
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    titled(figure, f"{x_label} and {y_label}: distribution", shown.caption + _outside(data))


def resolved(figure: Any, shown: Observed) -> None:
    """g by distance and by the cosine between two directions, a panel for each pair of species."""
    data = shown.data
    kinds, r = [str(kind) for kind in data["kind"].values], data["edges"].values
    cosine = np.linspace(-1.0, 1.0, data.sizes["cosine"] + 1)
    highest = float(np.nanmax(data["g"].values))
    for i, kind in enumerate(kinds):
        axis = figure.add_subplot(1, len(kinds), i + 1)
        mesh = axis.pcolormesh(r, cosine, data["g"].values[i].T, cmap=scale(), rasterized=True, vmin=0.0, vmax=highest)
        axis.grid(visible=False)
        axis.set_xlabel("r" if len(kinds) == 1 else f"r, {kind}")
        axis.set_ylabel("cosine of the angle between directions" if i == 0 else "")
        if i == len(kinds) - 1:
            figure.colorbar(mesh, ax=axis, label="g")
    titled(figure, f"{shown.title}: radial distribution by angle", shown.caption)


def spread(figure: Any, shown: Observed, momenta: list[Any]) -> None:
    """Histograms of the components of p over trajectories; bodies count as further samples."""
    axis = figure.add_subplot()
    drawn, total, few = 0, 0, len(momenta[0]) < _FEW
    for which, array in enumerate(momenta):
        values = np.asarray(array)
        # The last axis holds components; those between the trajectories and it are bodies.
        parts = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
        total += parts.shape[1]
        for i in range(min(parts.shape[1], MOST - drawn)):
            finite = parts[:, i][np.isfinite(parts[:, i])]
            look = look_of(drawn) | {"lw": 1.5}
            label = f"p{which if len(momenta) > 1 else ''}[{i}]"
            if not finite.size:
                axis.plot([], [], label=f"{label}, none finished", **look)
            elif few:
                axis.plot(finite, np.full(finite.size, -float(drawn)), "|", ms=14, mew=2, color=look["color"], label=label)
            elif np.ptp(finite) > 1e-9 * max(1.0, np.abs(finite).max()):
                axis.hist(finite, bins=_bins(finite), histtype="step", density=True, label=label, **look)
            else:
                axis.axvline(finite[0], label=f"{label}, all equal", **look)
            drawn += 1
    axis.set_xlabel("momentum p")
    axis.set_ylabel("density")
    if few:
        axis.set(yticks=[], ylabel="a mark for each trajectory", ylim=(-drawn, 1))
    if total > 1:
        legend(axis)
    titled(figure, "momenta at the end: distribution", shown.caption + (f"; the first {drawn} of {total} components" if total > drawn else ""))


def _bins(values: np.ndarray) -> np.ndarray:
    """Cells between the thousandths at both ends, so that an outlier does not squeeze the others; 2 n^⅓ of them (Rice)."""
    low, high = np.quantile(values, (0.0005, 0.9995)) if values.size > 1000 else (values.min(), values.max())
    return np.linspace(low, high, int(np.clip(2 * np.cbrt(values.size), 8, 80)) + 1)


def _outside(data: Any) -> str:
    below, above = int(data["below"]), int(data["above"])
    return f"; {below} values below and {above} above the range" if below or above else ""


def traces(figure: Any, shown: Observed) -> None:
    """Values over time of each trajectory, of at most three components: lines, or quantiles over trajectories."""
    values, time = shown.data["value"].values, shown.data["time"].values
    flat = values.reshape(*values.shape[:2], -1)
    names = shown.component_names(flat.shape[-1]) if flat.shape[-1] > 1 or "columns" in shown.labels else [shown.title]
    axes = figure.subplots(min(flat.shape[-1], 3), 1, squeeze=False, sharex=True)[:, 0]
    for part, axis in enumerate(axes):
        _lines(axis, time, shown.data["trajectory"].values, flat[..., part]) if len(flat) <= MOST else _quantiles(axis, time, flat[..., part])
        axis.set_ylabel(names[part])
    axes[-1].set_xlabel("time t")
    legend(axes[0])
    more = f"; the first {len(axes)} of {flat.shape[-1]} components" if flat.shape[-1] > len(axes) else ""
    titled(figure, f"{shown.title} of {numbered(len(flat))} trajectories", shown.caption + more)


def _lines(axis: Any, time: np.ndarray, numbers: np.ndarray, values: np.ndarray) -> None:
    for i, (number, line) in enumerate(zip(numbers, values, strict=True)):
        look = look_of(i) if len(time) < 500 else {"color": look_of(i)["color"]}
        axis.plot(time, line, lw=1.2, label=f"trajectory {int(number)}", **look)


def _quantiles(axis: Any, time: np.ndarray, values: np.ndarray) -> None:
    """Bands over trajectories that have not failed by then, at times that a picture can show."""
    some = np.unique(np.linspace(0, len(time) - 1, min(len(time), _LOOKS)).astype(int))
    wanted = [level for low, high, *_ in _BANDS for level in (low, high)] + [0.5]
    here = values[:: -(-len(values) // _SORTED), some]
    quantiles = np.full((len(wanted), len(some)), np.nan)
    for look, column in enumerate(here.T):
        known = column[np.isfinite(column)]
        if known.size:
            quantiles[:, look] = np.quantile(known, wanted)
    for i, (_, _, alpha, label) in enumerate(_BANDS):
        band(axis, time[some], quantiles[2 * i], quantiles[2 * i + 1], colour("blue"), alpha, label)
    axis.plot(time[some], quantiles[-1], color=colour("blue"), label="median")
