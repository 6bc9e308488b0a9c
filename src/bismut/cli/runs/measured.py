"""The whole gallery, measured, and the page that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bismut import actions, flows
from bismut.errors import BismutError
from bismut.findings import Report, verify
from bismut.gallery import entries

_SCHEMES = ("VariationalEuler", "Midpoint", "Verlet")
# Columns of the page: the law, and how the page calls it.
_COLUMNS = {
    "symplectic defect": "symplectic defect",
    "Poisson map": "Poisson map",
    "action stationary": "d𝔊",
    "order": "order",
    "strong order": "strong",
    "weak order": "weak",
    "energy drift": "drift",
    "temperature": "T/kT",
    "configurational temperature": "T_conf/kT",
    "⟨U⟩/kT": "⟨U⟩/kT",
}


def catalogue(*, budget: int | float | str, order: bool = True, own: bool = False, seed: int = 0) -> Iterator[tuple[str, Report]]:
    """A report for each system with its own scheme, and unless `own` with each variational scheme that takes it."""
    for name, entry in entries().items():
        system = entry.build()
        chosen = entry.scheme(system)
        yield f"{name}, {chosen.title}", verify(chosen, entry.start(chosen), step=entry.step, seed=seed, budget=budget, order=order)
        for kind in () if own else _SCHEMES:
            if chosen.title == kind or isinstance(chosen, flows.Reduced):
                continue
            try:
                scheme = getattr(actions, kind)(system)
                start = entry.start(scheme)
            except BismutError:
                continue  # this scheme does not take this system
            yield f"{name}, {kind}", verify(scheme, start, step=entry.step, seed=seed, budget=budget, order=order, integrity=False)


def page_of(reports: Mapping[str, Report]) -> str:
    """The page in Markdown."""
    head = """# Measured

Every system of the gallery with its own scheme and with each variational scheme that takes it, as `bismut verify --all` measures them. This page is
written by that command and never by hand. ✓ held, ✗ failed, ? undecided, · measured but not claimed, – not measured, an empty field: no such law.

"""
    used = [law for law in _COLUMNS if any(law in report for report in reports.values())]
    rows = ["| system, scheme | step | " + " | ".join(_COLUMNS[law] for law in used) + " | all |", "|---" * (len(used) + 3) + "|"]
    rows += [
        f"| {name} | {report.step:g} | " + " | ".join(_cell(report, law) for law in used) + f" | {_all(report)} |" for name, report in reports.items()
    ]
    return head + "\n".join([*rows, "", *_notes(reports)]) + "\n"


def _cell(report: Report, law: str) -> str:
    if law not in report:
        return ""
    finding: Any = report[law]
    return f"{finding.mark} {finding.number}".strip()


def _all(report: Report) -> str:
    passed = sum(finding.verdict.value == "pass" for finding in report.findings)
    return f"{passed} ✓" + (f", {len(report.failed)} ✗" if report.failed else "") + (f", {len(report.undecided)} ?" if report.undecided else "")


def _notes(reports: Mapping[str, Report]) -> list[str]:
    lines = []
    for title, chosen in (("Failed", "failed"), ("Undecided", "undecided")):
        named = [
            f"- {name}: {finding.law}, {finding.number}. {finding.words}" for name, report in reports.items() for finding in getattr(report, chosen)
        ]
        lines += [f"## {title}", "", *(named or ["Nothing."]), ""]
    broken = [
        f"- {name}: {finding.law}, {finding.words}"
        for name, report in reports.items()
        for finding in report.findings
        if "no symmetry" in finding.words
    ]
    return [*lines, "## Declared, and no symmetry", "", *(broken or ["Nothing."]), ""]
