"""A transport coefficient in one picture: running estimates against the window, and what each way gives at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bismut.figures.style import check_installed, colour, styled
from bismut.registry import PROVIDERS
from bismut.response import Transport

_LOOKS = {"einstein": ("Einstein, slope from τ to 2τ", "blue", "-"), "green_kubo": ("Green–Kubo, integral to τ", "vermilion", "--")}
_ANSWERS = {"response": ("linear response", "sage"), "transient": ("response to a force of one step", "ochre")}


@PROVIDERS.register
def transport(measured: Transport, file: str | Path | None = None, dark: bool = False) -> Any:
    """The picture of a transport coefficient as a figure of matplotlib; written to a file if one is given. It is what `Transport.figure` calls."""
    check_installed()
    with styled(dark) as plt:
        figure, axes = plt.subplots(figsize=(8.5, 5.0))
        lag = measured.curves["lag"]
        for name, (label, ink, dash) in _LOOKS.items():
            if name in measured.ways:
                value, error = measured.curves[name], measured.curves[f"{name}_stderr"]
                known = np.isfinite(value) & (lag > 0)
                axes.plot(lag[known], value[known], dash, color=colour(ink), label=label)
                axes.fill_between(lag[known], (value - 2 * error)[known], (value + 2 * error)[known], color=colour(ink), alpha=0.2, linewidth=0)
        for name, (label, ink) in _ANSWERS.items():
            if name in measured.ways:
                value, error = measured.ways[name].trace
                axes.axhspan(value - 2 * error, value + 2 * error, color=colour(ink), alpha=0.25, linewidth=0, label=label)
        axes.axvline(measured.window, color=colour("soft"), linestyle=":", label="window")
        axes.set(xlabel="τ", ylabel="D, mean over components", title=measured.subject, xlim=(0, lag[-1]))
        axes.title.set_fontsize(11)
        axes.legend(loc="lower right")
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=130)
        plt.close(figure)
    return figure
