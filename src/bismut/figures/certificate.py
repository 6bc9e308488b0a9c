"""A report on one page: verdicts, defects against their limits, orders as lines, temperatures, energy over time, kinetic energies."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from bismut.figures.style import check_installed, colour, palette, styled, write_picture
from bismut.findings import Finding, Report, Verdict
from bismut.palette import MARKS
from bismut.registry import PROVIDERS

_LINES = 40
_COLOURS = {"pass": "sage", "fail": "vermilion", "undecided": "magenta", "fact": "sky", "unmeasured": "soft"}
_MARKS = {
    "pass": ("●", "held"),
    "fail": ("✕", "failed"),
    "undecided": ("?", "undecided"),
    "fact": ("○", "not claimed"),
    "unmeasured": ("–", "not measured"),
}


@PROVIDERS.register
def certificate(report: Report, file: str | Path | None = None, dark: bool = False) -> Any:
    """The page of a report as a figure of matplotlib; written to a file if one is given. It is what `Report.figure` calls."""
    check_installed()
    with styled(dark) as plt:
        figure = plt.figure(figsize=size_of(report))
        fill(figure, report)
        if file is not None:
            write_picture(figure, file, dpi=130)
        plt.close(figure)
    return figure


def size_of(report: Report) -> tuple[float, float]:
    """Inches of the page: a list alone is as high as it has lines."""
    return (14.0, 9.5) if _panels(report) else (10.0, 1.6 + 0.32 * len(_rows(report.findings, verbose=True)))


def fill(figure: Any, report: Report) -> None:
    """Draw on a figure: the verdicts, and the panels for which the report has numbers."""
    figure.suptitle(textwrap.fill(_title(report), 8 * int(figure.get_size_inches()[0])), x=0.01, ha="left", fontsize=14, weight="bold")
    key = "   ".join(" ".join(_MARKS[verdict.value]) for verdict in Verdict if any(f.verdict is verdict for f in report.findings))
    figure.supxlabel(key, x=0.01, ha="left", fontsize=9, color=colour("soft"))
    panels = _panels(report)
    wide = -(-len(panels) // 2) if panels else 0
    grid = figure.add_gridspec(2 if panels else 1, 1 + wide, width_ratios=[1.3] + [1.0] * wide)
    _verdicts(figure.add_subplot(grid[:, 0]), report, verbose=not panels)
    for number, (draw, findings) in enumerate(panels):  # in two rows; the last fills what is left of its row
        row, column = divmod(number, wide)
        until = grid.ncols if number == len(panels) - 1 else column + 2
        draw(figure.add_subplot(grid[row, column + 1 : until]), findings)


def _title(report: Report) -> str:
    """The headline, without the names that the list beside it has."""
    short = report.headline if len(report.headline) < 110 else report.headline.partition(" (")[0]
    return short if len(short) < 110 else f"{short[:107]}…"


def _panels(report: Report) -> list[tuple[Callable[[Any, list[Finding]], None], list[Finding]]]:
    """The panels of a report, each with the findings that it draws."""
    findings = report.findings
    choices = (
        (_defects, defects if len(defects := list(filter(_is_defect, findings))) > 2 else []),  # one bar or two say no more than the list does
        (_orders, [f for f in findings if "errors" in f.data]),
        (_temperatures, [f for f in findings if f.law.startswith(("temperature", "configurational")) and f.known]),
        (_energy, [f for f in findings if "energy" in f.data]),
        (_kinetic, [f for f in findings if "shape" in f.data]),
    )
    return [(draw, chosen) for draw, chosen in choices if chosen]


def _is_defect(finding: Finding) -> bool:
    """Whether a finding is a value with an upper limit, and a claim."""
    claimed = finding.known and finding.verdict is not Verdict.fact and finding.alarm is None and finding.group != "accuracy"
    return claimed and np.isfinite(finding.limit) and finding.limit > 0 and finding.measured >= 0


class _FindingRow(NamedTuple):
    """A line of the list; one that goes on from the line above has no mark."""

    law: str
    how: str
    finding: Finding | None = None
    wide: bool = False


def _rows(findings: Sequence[Finding], verbose: bool) -> list[_FindingRow]:
    """The lines of the list. Where reasons are shown, laws that were not measured for one reason stand together above it."""
    rows: list[_FindingRow] = []
    for finding in findings:
        same = [other for other in findings if verbose and not finding.known and not other.known and other.how == finding.how]
        if len(same) < 2:
            rows.append(_FindingRow(finding.law, finding.how, finding))
        elif same[0] is finding:
            rows += [_FindingRow(", ".join(other.law for other in same), "", finding, wide=True), _FindingRow("", finding.how, wide=True)]
    return rows


def _verdicts(axes: Any, report: Report, verbose: bool) -> None:
    """A line for each finding: its mark, its law, its number, and where there is room how it was measured."""
    axes.set_axis_off()
    shown = _rows(report.findings, verbose)[:_LINES]
    pitch = 1 / max(len(shown), 1 if verbose else 24)
    for number, row in enumerate(shown):
        y = 1 - (number + 0.5) * pitch
        say = lambda x, text, shade="ink", size=9.0, y=y, **more: axes.text(x, y, text, color=colour(shade), fontsize=size, va="center", **more)
        if row.finding is not None:
            say(0.0, _MARKS[row.finding.verdict.value][0], _COLOURS[row.finding.verdict.value], 11.0, weight="bold")
            say(1.0 if not verbose else 0.43, row.finding.number, ha="right")
        say(0.05 if not verbose else 0.03, textwrap.shorten(row.law, 130 if row.wide else 40, placeholder=" …"))
        if verbose:
            say(0.05 if row.wide else 0.46, textwrap.shorten(row.how, 130 if row.wide else 80, placeholder=" …"), "soft", 8.5)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _defects(axes: Any, findings: list[Finding]) -> None:
    """Measured over limit, on a logarithmic axis."""
    ratio = [max(f.measured / f.limit, 1e-7) for f in findings]
    axes.barh(range(len(findings)), ratio, left=1e-7, color=[colour(_COLOURS[f.verdict.value]) for f in findings])
    axes.axvline(1.0, color=colour("ink"), linestyle="--")
    axes.set(xscale="log", yticks=range(len(findings)), xlabel="measured / limit (dashed: where a claim fails)", title="defects")
    axes.set_yticklabels([textwrap.shorten(f.law, 26, placeholder=" …") for f in findings], fontsize=8.5)
    axes.invert_yaxis()


def _orders(axes: Any, findings: list[Finding]) -> None:
    for number, finding in enumerate(findings):
        steps, errors = np.asarray(finding.data["steps"], float), np.asarray(finding.data["errors"], float)
        extra = 1 if finding.law == "weak order" else 0  # of one step
        shade = palette().series[number % 7]
        label = f"{finding.law}: {finding.number}{' (one step: slope + 1)' if extra else ''}"
        axes.loglog(steps, errors, color=shade, marker=MARKS[number % 7], label=label)
        if finding.data.get("order") and errors.min() > 0:
            axes.loglog(steps, 0.6 * errors[-1] * (steps / steps[-1]) ** (finding.data["order"] + extra), ":", color=shade)
    every = sorted({float(step) for finding in findings for step in finding.data["steps"]})
    some = every[:: -(-len(every) // 4)]
    axes.set_xticks(some, [f"{step:.2g}" for step in some])
    axes.minorticks_off()
    axes.set(xlabel="step h", ylabel="error", title="errors (dotted: claimed slopes)")
    axes.legend(fontsize=9)


def _temperatures(axes: Any, findings: list[Finding]) -> None:
    for row, finding in enumerate(findings):
        axes.errorbar(finding.measured, row, xerr=3.3 * finding.error, fmt="o", color=colour(_COLOURS[finding.verdict.value]), capsize=3)
    _band(axes, findings[0])
    axes.set(yticks=range(len(findings)), xlabel="temperature / kT (band: what may be off)", title="temperatures (bars: 3.3 standard errors)")
    axes.set_yticklabels([f.law.removeprefix("temperature, ") for f in findings], fontsize=8)
    axes.invert_yaxis()


def _band(axes: Any, finding: Finding) -> None:
    axes.axvspan(1 - finding.limit, 1 + finding.limit, color=colour("sky"), alpha=0.25)
    axes.axvline(1.0, color=colour("ink"), linestyle="--")


def _energy(axes: Any, findings: list[Finding]) -> None:
    data = findings[0].data
    for line in np.asarray(data["energy"], float):
        axes.plot(data["time"], line - line[0], color=colour("blue"), alpha=0.4, linewidth=0.8)
    axes.set(xlabel="time t", ylabel="H − H(0)", title=f"energy without noise; drift {findings[0].number}")


def _kinetic(axes: Any, findings: list[Finding]) -> None:
    values, shape = np.sort(np.asarray(findings[0].data["values"], float)), findings[0].data["shape"]
    axes.plot(values, (np.arange(len(values)) + 0.5) / len(values), color=colour("blue"), label="sampled")
    axes.plot(values, special.gammainc(shape, values), "--", color=colour("ink"), label=f"Γ({shape:g})")
    axes.set(xlabel="kinetic energy / kT", ylabel="distribution function", title="kinetic energy")
    axes.legend(fontsize=9)
