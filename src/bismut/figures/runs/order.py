"""Orientational order in one picture: p, P₁ and P₂ with two standard errors, and Q as a map of its components."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.figures.runs.labels import Observed, titled
from bismut.figures.style import colour, scale


def order(figure: Any, shown: Observed) -> None:
    """Numbers on the left, the nematic tensor on the right."""
    data = shown.data
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    p, Q = data["polarisation"].values, data["nematic"].values
    names = [*(f"p{axis}" for axis in "xyz"[: len(p)]), "P₁", "P₂"]
    values = np.array([*p, float(data["P1"]), float(data["P2"])])
    errors = np.array([*data["polarisation_stderr"].values, float(data["P1_stderr"]), float(data["P2_stderr"])])
    left.errorbar(range(len(names)), values, yerr=2 * errors, fmt="o", color=colour("blue"), capsize=4)
    left.axhline(0.0, color=colour("soft"), linestyle="--", linewidth=1.0)
    left.set(xticks=range(len(names)), xticklabels=names, ylabel="mean, with two standard errors")
    most = max(float(np.nanmax(np.abs(Q))), np.finfo(float).tiny)
    mesh = right.imshow(Q, cmap=scale(), vmin=-most, vmax=most)
    axes = list("xyz"[: len(Q)])
    right.set(xticks=range(len(Q)), yticks=range(len(Q)), xticklabels=axes, yticklabels=axes, title="nematic tensor Q")
    right.grid(visible=False)
    figure.colorbar(mesh, ax=right, shrink=0.8)
    titled(figure, f"{shown.title}: orientational order", shown.caption)
