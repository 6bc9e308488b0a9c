"""A report on one page: verdicts, defects against their limits, orders as lines, temperatures, energy over time, kinetic energies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from bismut.figures.style import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, check_installed, styled
from bismut.findings import Finding, Report

_COLOURS = {"pass": GREEN, "fail": VERMILION, "undecided": ORANGE, "fact": SKY, "unmeasured": "#999999"}


def draw(report: Report, file: str | Path | None = None) -> Any:
    """The figure of matplotlib; written to a file if one is given."""
    check_installed()
    with styled() as plt:
        figure = plt.figure(figsize=(13, 9.5))
        fill(figure, report)
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=130)
        plt.close(figure)
    return figure


def fill(figure: Any, report: Report) -> None:
    """Draw on a figure: the panels for which the report has numbers, in two rows; the last one fills what is left of its row."""
    figure.suptitle(_title(report))
    panels = [panel for panel in (_defects, _orders, _temperatures, _energy, _kinetic) if panel(None, report)]
    grid = figure.add_gridspec(2, 1 + max(2, -(-len(panels) // 2)))
    _verdicts(figure.add_subplot(grid[:, 0]), report)
    for number, panel in enumerate(panels):
        row, column = divmod(number, grid.ncols - 1)
        until = grid.ncols if number == len(panels) - 1 else column + 2
        panel(figure.add_subplot(grid[row, column + 1 : until]), report)


def _title(report: Report) -> str:
    """The headline, without the names that the list beside it has."""
    short = report.headline if len(report.headline) < 110 else report.headline.partition(" (")[0]
    return short if len(short) < 110 else f"{short[:107]}…"


_MARKS = {
    "pass": ("●", "held"),
    "fail": ("✕", "failed"),
    "undecided": ("?", "undecided"),
    "fact": ("○", "not claimed"),
    "unmeasured": ("–", "not measured"),
}


def _verdicts(axes: Any, report: Report) -> None:
    axes.set_axis_off()
    shown = report.findings[:34]
    for row, finding in enumerate(shown):
        y = 1 - (row + 2) / (len(shown) + 2)
        axes.text(0.0, y, _MARKS[finding.verdict.value][0], color=_COLOURS[finding.verdict.value], fontsize=10)
        axes.text(0.06, y, f"{finding.law}  {finding.number}", fontsize=8.5, color=BLACK)
    used = [verdict for verdict in _MARKS if any(finding.verdict.value == verdict for finding in shown)]
    for place, verdict in enumerate(used):
        mark, said = _MARKS[verdict]
        axes.text(place / max(len(used), 3), 1.0, f"{mark} {said}", color=_COLOURS[verdict], fontsize=8.5)
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
    axes.barh(range(len(found)), ratio, left=1e-7, color=[_COLOURS[f.verdict.value] for f in found])
    axes.axvline(1.0, color=BLACK, linestyle="--")
    axes.set(xscale="log", yticks=range(len(found)), xlabel="measured / limit (dashed: where a claim fails)", title="defects")
    axes.set_yticklabels([f.law for f in found], fontsize=7.5)
    axes.invert_yaxis()
    return True


def _orders(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "errors" in f.data]
    if axes is None or not found:
        return bool(found)
    for finding, colour in zip(found, (BLUE, VERMILION, GREEN, ORANGE), strict=False):
        steps, errors = np.asarray(finding.data["steps"], float), np.asarray(finding.data["errors"], float)
        extra = 1 if finding.law == "weak order" else 0  # of one step
        axes.loglog(steps, errors, "o-", color=colour, label=f"{finding.law}: {finding.number}{' (one step: slope + 1)' if extra else ''}")
        if finding.data.get("order") and errors.min() > 0:
            axes.loglog(steps, 0.6 * errors[-1] * (steps / steps[-1]) ** (finding.data["order"] + extra), ":", color=colour)
    marks = sorted({float(h) for finding in found for h in finding.data["steps"]})
    axes.set_xticks(marks, [f"{h:.3g}" for h in marks])
    axes.minorticks_off()
    axes.set(xlabel="h", ylabel="error", title="errors (dotted: claimed slopes)")
    axes.legend(fontsize=8)
    return True


def _temperatures(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if f.law.startswith(("temperature", "configurational")) and f.known]
    if axes is None or not found:
        return bool(found)
    for row, finding in enumerate(found):
        axes.errorbar(finding.measured, row, xerr=3.3 * finding.error, fmt="o", color=_COLOURS[finding.verdict.value], capsize=3)
    _band(axes, found[0])
    axes.set(yticks=range(len(found)), xlabel="temperature / kT (band: what may be off)", title="temperatures (bars: 3.3 standard errors)")
    axes.set_yticklabels([f.law.removeprefix("temperature, ") for f in found], fontsize=8)
    axes.invert_yaxis()
    return True


def _band(axes: Any, finding: Finding) -> None:
    axes.axvspan(1 - finding.limit, 1 + finding.limit, color=SKY, alpha=0.25)
    axes.axvline(1.0, color=BLACK, linestyle="--")


def _energy(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "energy" in f.data]
    if axes is None or not found:
        return bool(found)
    data = found[0].data
    for line in np.asarray(data["energy"], float):
        axes.plot(data["time"], line - line[0], color=BLUE, alpha=0.4, linewidth=0.8)
    axes.set(xlabel="t", ylabel="H − H(0)", title=f"energy without noise; drift {found[0].number}")
    return True


def _kinetic(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "shape" in f.data]
    if axes is None or not found:
        return bool(found)
    values, shape = np.sort(np.asarray(found[0].data["values"], float)), found[0].data["shape"]
    axes.plot(values, (np.arange(len(values)) + 0.5) / len(values), color=BLUE, label="sampled")
    axes.plot(values, special.gammainc(shape, values), "--", color=BLACK, label=f"Γ({shape:g})")
    axes.set(xlabel="kinetic energy / kT", ylabel="distribution function", title="kinetic energy")
    axes.legend(fontsize=8)
    return True
