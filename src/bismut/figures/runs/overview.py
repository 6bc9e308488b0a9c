"""All means over time of a run on one page, small."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.figures.runs.curves import curve_of, draw_curve
from bismut.figures.runs.wording import over, title_of, titled

_WIDE = 4


def overview(figure: Any, means: dict[str, Any], words: str) -> None:
    """A panel for each observer, named over it: the mean with two standard errors."""
    rows = -(-len(means) // _WIDE)
    panels = figure.subplots(rows, _WIDE, squeeze=False, sharex=True)
    for axis in panels.flat[len(means) :]:
        axis.set_axis_off()
    for i, (axis, (name, (data, called))) in enumerate(zip(panels.flat, means.items(), strict=False)):
        curve = curve_of(name, data, called)
        assert curve is not None
        draw_curve(axis, curve, lw=1.2)
        axis.set_title(f"{name}" if title_of(name, called) == name else f"{name}: {title_of(name, called)}", fontsize=10.5, loc="left")
        axis.set_ylabel("")
        axis.tick_params(labelsize=9)
        if i + _WIDE < len(means):
            axis.set_xlabel("")
        else:
            axis.tick_params(labelbottom=True)
        _calm(axis, curve.y)
    titled(figure, f"Overview: {over(next(iter(means.values()))[0])}", f"{words}; bands: two standard errors")


def _calm(axis: Any, mean: np.ndarray) -> None:
    """What is conserved is a line, not its round-off."""
    bottom, top = axis.get_ylim()
    size = max(1.0, float(np.nanmax(np.abs(mean), initial=0.0)))
    if top - bottom < 1e-9 * size:
        middle = (bottom + top) / 2
        axis.set_ylim(middle - 0.05 * size, middle + 0.05 * size)
