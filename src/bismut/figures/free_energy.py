"""Work in both directions in one picture: two distributions that cross where work is the difference of free energies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bismut.errors import BismutError
from bismut.figures.style import check_installed, colour, styled
from bismut.registry import PROVIDERS
from bismut.response import FreeEnergy


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
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=130)
        plt.close(figure)
    return figure
