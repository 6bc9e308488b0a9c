"""A report on one page: verdicts, defects against their limits, orders as lines, temperatures, energy over time, kinetic energies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from bismut.figures.style import check_installed, colour, styled
from bismut.findings import Finding, Report

SIZE = (13.0, 9.5)
_MARKS = {"✓": "●", "✗": "✕"}
_COLOURS = {"pass": "sage", "fail": "vermilion", "undecided": "magenta", "fact": "sky", "unmeasured": "soft"}


def draw(report: Report, file: str | Path | None = None, dark: bool = False) -> Any:
    """The figure of matplotlib; written to a file if one is given."""
    check_installed()
    with styled(dark) as plt:
        figure = plt.figure(figsize=SIZE)
        fill(figure, report)
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=130)
        plt.close(figure)
    return figure


def fill(figure: Any, report: Report) -> None:
    """Draw on a figure: the panels for which the report has numbers."""
    figure.suptitle(report.headline if len(report.headline) < 110 else report.headline[:107] + "…", x=0.01, ha="left", weight="bold")
    panels = [panel for panel in (_defects, _orders, _temperatures, _energy, _kinetic) if panel(None, report)]
    grid = figure.add_gridspec(2, 1 + max(2, -(-len(panels) // 2)))
    _verdicts(figure.add_subplot(grid[:, 0]), report)
    places = [(row, column) for row in (0, 1) for column in range(1, grid.ncols)]
    for panel, place in zip(panels, places, strict=False):
        panel(figure.add_subplot(grid[place]), report)


def _verdicts(axes: Any, report: Report) -> None:
    axes.set_axis_off()
    shown = report.findings[:34]
    for row, finding in enumerate(shown):
        y = 1 - (row + 1) / (len(shown) + 1)
        axes.text(0.0, y, _MARKS.get(finding.mark, finding.mark), color=colour(_COLOURS[finding.verdict.value]), fontsize=10)
        axes.text(0.06, y, f"{finding.law}  {finding.number}", fontsize=8.5, color=colour("ink"))
    axes.set_xlim(0, 1)


def _defects(axes: Any, report: Report) -> bool:
    """Measured over limit, on a logarithmic axis."""
    found = [
        f
        for f in report.findings
        if f.alarm is None and f.known and np.isfinite(f.limit) and f.limit > 0 and f.measured >= 0 and f.group != "accuracy"
    ]
    if axes is None or not found:
        return bool(found)
    ratio = [max(f.measured / f.limit, 1e-7) for f in found]
    axes.barh(range(len(found)), ratio, left=1e-7, color=[colour(_COLOURS[f.verdict.value]) for f in found])
    axes.axvline(1.0, color=colour("ink"), linestyle="--")
    axes.set(xscale="log", yticks=range(len(found)), xlabel="measured / limit", title="defects")
    axes.set_yticklabels([f.law for f in found], fontsize=7.5)
    axes.invert_yaxis()
    return True


def _orders(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "errors" in f.data]
    if axes is None or not found:
        return bool(found)
    for finding, name in zip(found, ("blue", "vermilion", "sage"), strict=False):
        steps, errors = np.asarray(finding.data["steps"], float), np.asarray(finding.data["errors"], float)
        axes.loglog(steps, errors, "o-", color=colour(name), label=f"{finding.law}: {finding.number}")
        if finding.data.get("order") and errors.min() > 0:
            extra = 1 if finding.law == "weak order" else 0  # of one step
            axes.loglog(steps, errors[-1] * (steps / steps[-1]) ** (finding.data["order"] + extra), ":", color=colour(name))
    axes.set(xlabel="h", ylabel="error", title="orders (dotted: claimed)")
    axes.legend(fontsize=8)
    return True


def _temperatures(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if f.law.startswith(("temperature", "configurational")) and f.known]
    if axes is None or not found:
        return bool(found)
    for row, finding in enumerate(found):
        axes.errorbar(finding.measured, row, xerr=3.3 * finding.error, fmt="o", color=colour(_COLOURS[finding.verdict.value]), capsize=3)
    _band(axes, found[0])
    axes.set(yticks=range(len(found)), xlabel="kT", title="temperatures (3.3 standard errors)")
    axes.set_yticklabels([f.law.removeprefix("temperature, ") for f in found], fontsize=8)
    axes.invert_yaxis()
    return True


def _band(axes: Any, finding: Finding) -> None:
    axes.axvspan(1 - finding.limit, 1 + finding.limit, color=colour("sky"), alpha=0.25)
    axes.axvline(1.0, color=colour("ink"), linestyle="--")


def _energy(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "energy" in f.data]
    if axes is None or not found:
        return bool(found)
    data = found[0].data
    for line in np.asarray(data["energy"], float):
        axes.plot(data["time"], line - line[0], color=colour("blue"), alpha=0.4, linewidth=0.8)
    axes.set(xlabel="t", ylabel="H − H(0)", title=f"energy without noise; drift {found[0].number}")
    return True


def _kinetic(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "shape" in f.data]
    if axes is None or not found:
        return bool(found)
    values, shape = np.sort(np.asarray(found[0].data["values"], float)), found[0].data["shape"]
    axes.plot(values, (np.arange(len(values)) + 0.5) / len(values), color=colour("blue"), label="sampled")
    axes.plot(values, special.gammainc(shape, values), "--", color=colour("ink"), label=f"Γ({shape:g})")
    axes.set(xlabel="kinetic energy / kT", ylabel="distribution function", title="kinetic energy")
    axes.legend(fontsize=8)
    return True
