"""Distributions: histograms that a run counted, and those of its last momenta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.runs.curves import COLOURS, caption, title_of


def counts(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The density of one quantity; what fell outside the range is said."""
    axis = figure.add_subplot()
    axis.stairs(data["density"].values, data["edges"].values, fill=True, alpha=0.35, color=COLOURS[0])
    axis.stairs(data["density"].values, data["edges"].values, color=COLOURS[0], lw=1.4)
    axis.set_xlabel(title_of(name, called))
    axis.set_ylabel("density")
    axis.set_title(caption(words + _outside(data)), fontsize=9.5, loc="left")


def grid(figure: Any, name: str, data: Any, words: str, called: Mapping[str, Any]) -> None:
    """The density of two quantities."""
    axis = figure.add_subplot()
    x, y = data["edges_x"].values, data["edges_y"].values
    mesh = axis.pcolormesh(x, y, data["density"].values.T, cmap="cividis", rasterized=True)
    figure.colorbar(mesh, ax=axis, label="density")
    axis.grid(visible=False)
    x_label, y_label = called.get("of", (f"{name}[0]", f"{name}[1]"))
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.set_title(caption(words + _outside(data)), fontsize=9.5, loc="left")


def spread(figure: Any, name: str, words: str, momenta: list[Any]) -> None:
    """Histograms of the components of p over trajectories; bodies count as further samples."""
    axis = figure.add_subplot()
    drawn, total = 0, 0
    for which, array in enumerate(momenta):
        values = np.asarray(array)
        # The last axis holds components; those between the trajectories and it are bodies.
        parts = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
        total += parts.shape[1]
        for i in range(min(parts.shape[1], len(COLOURS) - drawn)):
            kept = parts[:, i][np.isfinite(parts[:, i])]
            label = f"p{which if len(momenta) > 1 else ''}[{i}]"
            if kept.size and np.ptp(kept) > 1e-9 * max(1.0, np.abs(kept).max()):
                axis.hist(kept, bins="auto" if kept.size < 5000 else 80, histtype="step", density=True, color=COLOURS[drawn], lw=1.5, label=label)
            elif kept.size:
                axis.axvline(kept[0], color=COLOURS[drawn], lw=1.5, label=f"{label}, all equal")
            drawn += 1
    axis.set_xlabel("momentum p, last states")
    axis.set_ylabel("density")
    axis.legend(loc="best")
    axis.set_title(caption(words + (f"; the first {drawn} of {total} components" if total > drawn else "")), fontsize=9.5, loc="left")


def _outside(data: Any) -> str:
    below, above = int(data["below"]), int(data["above"])
    return f"; {below} values below and {above} above the range" if below or above else ""
