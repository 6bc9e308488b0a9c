"""Distributions: histograms that a run counted, and those of its last momenta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bismut.figures.runs.curves import MOST, band, legend, look_of
from bismut.figures.runs.swept import values_of
from bismut.figures.runs.wording import title_of, titled
from bismut.figures.style import colour, scale
from bismut.palette import DASHES

_FEW = 20  # values that make no histogram


def counts(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The density of one quantity with two standard errors; what fell outside the range is said."""
    axis = figure.add_subplot()
    density, edges = data["density"].values, data["edges"].values
    axis.stairs(density, edges, fill=True, alpha=0.18, color=colour("blue"))
    axis.stairs(density, edges, color=colour("blue"), lw=1.4)
    if "stderr" in data:
        middle = (edges[1:] + edges[:-1]) / 2
        axis.errorbar(middle, density, 2 * data["stderr"].values, fmt="none", color=colour("blue"), lw=1, label="± 2 standard errors")
        legend(axis)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(title_of(name, called))
    axis.set_ylabel("density")
    titled(figure, f"{title_of(name, called)}: distribution", words + _outside(data))


def compared(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any], axes: Sequence[str]) -> None:
    """Densities of one quantity for some values of what was swept, with two standard errors."""
    from matplotlib.colors import to_hex

    axis = figure.add_subplot()
    shown = values_of(data, axes)
    picked = shown if len(shown) <= MOST else [shown[i] for i in np.linspace(0, len(shown) - 1, MOST).astype(int)]
    for i, (label, one) in enumerate(picked):
        density, edges, shade = one["density"].values, one["edges"].values, to_hex(scale()(i / max(len(picked) - 1, 1)))
        axis.stairs(density, edges, color=shade, lw=1.6, linestyle=DASHES[i], label=label)
        if "stderr" in one:
            low, high = (np.repeat(density + sign * 2 * one["stderr"].values, 2) for sign in (-1, 1))
            band(axis, np.repeat(edges, 2)[1:-1], low, high, shade, 0.2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(title_of(name, called))
    axis.set_ylabel("density ± 2 standard errors")
    legend(axis)
    more = f"; {len(picked)} of {len(shown)} values" if len(picked) < len(shown) else ""
    titled(figure, f"{title_of(name, called)}: distribution, for each {', '.join(axes)}", words + more)


def grid(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The density of two quantities; where nothing was counted nothing is drawn."""
    axis = figure.add_subplot()
    x, y = data["edges_x"].values, data["edges_y"].values
    density = np.where(data["counts"].values > 0, data["density"].values, np.nan)
    mesh = axis.pcolormesh(x, y, density.T, cmap=scale(), rasterized=True)
    figure.colorbar(mesh, ax=axis, label="density")
    axis.grid(visible=False)
    x_label, y_label = called.get("of", (f"{name}[0]", f"{name}[1]"))
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    titled(figure, f"{x_label} and {y_label}: distribution", words + _outside(data))


def spread(figure: Any, name: str, words: str, momenta: list[Any]) -> None:
    """Histograms of the components of p over trajectories; bodies count as further samples."""
    axis = figure.add_subplot()
    drawn, total, few = 0, 0, len(momenta[0]) < _FEW
    for which, array in enumerate(momenta):
        values = np.asarray(array)
        # The last axis holds components; those between the trajectories and it are bodies.
        parts = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
        total += parts.shape[1]
        for i in range(min(parts.shape[1], MOST - drawn)):
            kept = parts[:, i][np.isfinite(parts[:, i])]
            look = look_of(drawn) | {"lw": 1.5}
            label = f"p{which if len(momenta) > 1 else ''}[{i}]"
            if not kept.size:
                axis.plot([], [], label=f"{label}, none finished", **look)
            elif few:
                axis.plot(kept, np.full(kept.size, -float(drawn)), "|", ms=14, mew=2, color=look["color"], label=label)
            elif np.ptp(kept) > 1e-9 * max(1.0, np.abs(kept).max()):
                axis.hist(kept, bins=_bins(kept), histtype="step", density=True, label=label, **look)
            else:
                axis.axvline(kept[0], label=f"{label}, all equal", **look)
            drawn += 1
    axis.set_xlabel("momentum p")
    axis.set_ylabel("density")
    if few:
        axis.set(yticks=[], ylabel="a mark for each trajectory", ylim=(-drawn, 1))
    if total > 1:
        legend(axis)
    titled(figure, "momenta at the end: distribution", words + (f"; the first {drawn} of {total} components" if total > drawn else ""))


def _bins(kept: np.ndarray) -> np.ndarray:
    """Cells between the thousandths at both ends, so that one value that flew off does not make a needle of the others; 2 n^⅓ of them (Rice)."""
    low, high = np.quantile(kept, (0.0005, 0.9995)) if kept.size > 1000 else (kept.min(), kept.max())
    return np.linspace(low, high, int(np.clip(2 * np.cbrt(kept.size), 8, 80)) + 1)


def _outside(data: Any) -> str:
    below, above = int(data["below"]), int(data["above"])
    return f"; {below} values below and {above} above the range" if below or above else ""
