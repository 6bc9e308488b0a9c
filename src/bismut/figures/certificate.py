"""A report on one page: verdicts, defects against their limits, orders as lines, temperatures, energy over time, kinetic energies."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from bismut.figures.style import check_installed, colour, palette, styled
from bismut.findings import Finding, Report, Verdict
from bismut.palette import MARKS

_LINES = 40
_COLOURS = {"pass": "sage", "fail": "vermilion", "undecided": "magenta", "fact": "sky", "unmeasured": "soft"}
_MARKS = {
    "pass": ("●", "held"),
    "fail": ("✕", "failed"),
    "undecided": ("?", "undecided"),
    "fact": ("○", "not claimed"),
    "unmeasured": ("–", "not measured"),
}


def draw(report: Report, file: str | Path | None = None, dark: bool = False) -> Any:
    """The figure of matplotlib; written to a file if one is given."""
    check_installed()
    with styled(dark) as plt:
        figure = plt.figure(figsize=size_of(report))
        fill(figure, report)
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=130)
        plt.close(figure)
    return figure


def size_of(report: Report) -> tuple[float, float]:
    """Inches of the page: a list alone is as high as it has lines."""
    return (14.0, 9.5) if _panels(report) else (10.0, 1.6 + 0.32 * len(report.findings))


def fill(figure: Any, report: Report) -> None:
    """Draw on a figure: the verdicts, and the panels for which the report has numbers."""
    figure.suptitle(textwrap.fill(_title(report), 8 * int(figure.get_size_inches()[0])), x=0.01, ha="left", fontsize=14, weight="bold")
    key = "   ".join(" ".join(_MARKS[verdict.value]) for verdict in Verdict if any(f.verdict is verdict for f in report.findings))
    figure.supxlabel(key, x=0.01, ha="left", fontsize=9, color=colour("soft"))
    panels = _panels(report)
    wide = -(-len(panels) // 2) if panels else 0
    grid = figure.add_gridspec(2 if panels else 1, 1 + wide, width_ratios=[1.3] + [1.0] * wide)
    _verdicts(figure.add_subplot(grid[:, 0]), report, told=not panels)
    for number, panel in enumerate(panels):  # in two rows; the last fills what is left of its row
        row, column = divmod(number, wide)
        until = grid.ncols if number == len(panels) - 1 else column + 2
        panel(figure.add_subplot(grid[row, column + 1 : until]), report)


def _title(report: Report) -> str:
    """The headline, without the names that the list beside it has."""
    short = report.headline if len(report.headline) < 110 else report.headline.partition(" (")[0]
    return short if len(short) < 110 else f"{short[:107]}…"


def _panels(report: Report) -> list[Any]:
    return [panel for panel in (_defects, _orders, _temperatures, _energy, _kinetic) if panel(None, report)]


def _verdicts(axes: Any, report: Report, told: bool) -> None:
    """A line for each finding: its mark, its law, its number, and where there is room how it was measured."""
    axes.set_axis_off()
    shown = report.findings[:_LINES]
    pitch = 1 / max(len(shown), 1 if told else 24)
    for row, finding in enumerate(shown):
        y = 1 - (row + 0.5) * pitch
        say = lambda x, text, shade="ink", size=9.0, y=y, **more: axes.text(x, y, text, color=colour(shade), fontsize=size, va="center", **more)
        say(0.0, _MARKS[finding.verdict.value][0], _COLOURS[finding.verdict.value], 11.0, weight="bold")
        say(0.05 if not told else 0.03, textwrap.shorten(finding.law, 40, placeholder=" …"))
        say(1.0 if not told else 0.43, finding.number, ha="right")
        if told:
            say(0.46, textwrap.shorten(finding.words, 80, placeholder=" …"), "soft", 8.5)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _defects(axes: Any, report: Report) -> bool:
    """Measured over limit, on a logarithmic axis. One bar or two say no more than the list does."""
    found = [
        f
        for f in report.findings
        if f.alarm is None
        and f.known
        and f.verdict is not Verdict.fact
        and np.isfinite(f.limit)
        and f.limit > 0
        and f.measured >= 0
        and f.group != "accuracy"
    ]
    if axes is None or len(found) < 3:
        return len(found) > 2
    ratio = [max(f.measured / f.limit, 1e-7) for f in found]
    axes.barh(range(len(found)), ratio, left=1e-7, color=[colour(_COLOURS[f.verdict.value]) for f in found])
    axes.axvline(1.0, color=colour("ink"), linestyle="--")
    axes.set(xscale="log", yticks=range(len(found)), xlabel="measured / limit (dashed: where a claim fails)", title="defects")
    axes.set_yticklabels([textwrap.shorten(f.law, 26, placeholder=" …") for f in found], fontsize=8.5)
    axes.invert_yaxis()
    return True


def _orders(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "errors" in f.data]
    if axes is None or not found:
        return bool(found)
    for number, finding in enumerate(found):
        steps, errors = np.asarray(finding.data["steps"], float), np.asarray(finding.data["errors"], float)
        extra = 1 if finding.law == "weak order" else 0  # of one step
        shade = palette().series[number % 7]
        label = f"{finding.law}: {finding.number}{' (one step: slope + 1)' if extra else ''}"
        axes.loglog(steps, errors, color=shade, marker=MARKS[number % 7], label=label)
        if finding.data.get("order") and errors.min() > 0:
            axes.loglog(steps, 0.6 * errors[-1] * (steps / steps[-1]) ** (finding.data["order"] + extra), ":", color=shade)
    every = sorted({float(step) for finding in found for step in finding.data["steps"]})
    some = every[:: -(-len(every) // 4)]
    axes.set_xticks(some, [f"{step:.2g}" for step in some])
    axes.minorticks_off()
    axes.set(xlabel="step h", ylabel="error", title="errors (dotted: claimed slopes)")
    axes.legend(fontsize=9)
    return True


def _temperatures(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if f.law.startswith(("temperature", "configurational")) and f.known]
    if axes is None or not found:
        return bool(found)
    for row, finding in enumerate(found):
        axes.errorbar(finding.measured, row, xerr=3.3 * finding.error, fmt="o", color=colour(_COLOURS[finding.verdict.value]), capsize=3)
    _band(axes, found[0])
    axes.set(yticks=range(len(found)), xlabel="temperature / kT (band: what may be off)", title="temperatures (bars: 3.3 standard errors)")
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
    axes.set(xlabel="time t", ylabel="H − H(0)", title=f"energy without noise; drift {found[0].number}")
    return True


def _kinetic(axes: Any, report: Report) -> bool:
    found = [f for f in report.findings if "shape" in f.data]
    if axes is None or not found:
        return bool(found)
    values, shape = np.sort(np.asarray(found[0].data["values"], float)), found[0].data["shape"]
    axes.plot(values, (np.arange(len(values)) + 0.5) / len(values), color=colour("blue"), label="sampled")
    axes.plot(values, special.gammainc(shape, values), "--", color=colour("ink"), label=f"Γ({shape:g})")
    axes.set(xlabel="kinetic energy / kT", ylabel="distribution function", title="kinetic energy")
    axes.legend(fontsize=9)
    return True
