"""Measured responses in one picture each.

transport      running estimates against the window, and what each way gives at it
free energy    work in both directions: two distributions that cross where work is the difference of free energies
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bismut.errors import BismutError
from bismut.figures.style import check_installed, colour, styled, write_picture
from bismut.registry import PROVIDERS
from bismut.response import FreeEnergy, Transport

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
        _written(figure, file)
        plt.close(figure)
    return figure


@PROVIDERS.register
def free_energy(measured: FreeEnergy, file: str | Path | None = None, dark: bool = False) -> Any:
    """The picture of a free-energy difference as a figure of matplotlib; written to a file if one is given. It is what `FreeEnergy.figure` calls."""
    check_installed()
    if measured.forward is None or measured.backward is None:
        raise BismutError("The picture shows work in both directions, but there is none backward. Give backward= as well.")
    with styled(dark) as plt:
        figure, axes = plt.subplots(figsize=(8.5, 5.0))
        both = np.concatenate([measured.forward, -measured.backward])
        edges = np.linspace(float(np.quantile(both, 0.001)), float(np.quantile(both, 0.999)), 50)
        for work, label, ink, dash in ((measured.forward, "forward, W", "blue", "-"), (-measured.backward, "backward, −W", "vermilion", "--")):
            density, _ = np.histogram(work, edges)
            density = density / len(work) / np.diff(edges)
            axes.stairs(density, edges, color=colour(ink), label=label, linewidth=1.8, linestyle=dash)
            axes.stairs(density, edges, color=colour(ink), fill=True, alpha=0.15)
        axes.axvline(measured.value, color=colour("soft"), linestyle=":", label=f"ΔF = {measured.value:.4g}")
        axes.set(xlabel="work", ylabel="density", title=measured.subject)
        axes.title.set_fontsize(11)
        axes.legend()
        _written(figure, file)
        plt.close(figure)
    return figure


def _written(figure: Any, file: str | Path | None) -> None:
    if file is not None:
        write_picture(figure, file, dpi=130)
