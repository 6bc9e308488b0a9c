"""The page of all measurements, in Markdown: three tables, and what failed, is undecided, or is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bismut.cli.runs.measured import Settings
from bismut.findings import Finding, Report

# Columns by table: the beginning of the laws, and how the page calls them. Of several laws the one that comes out worst is shown.
_TABLES = {
    "Structure": {
        "symplectic defect": "symplectic defect",
        "Poisson map": "Poisson map",
        "phase volume": "volume",
        "momentum map ": "momentum maps",
        "Casimir ": "Casimirs",
        "invariant ": "invariants",
        "constraints": "constraints",
        "stays on the space": "on the space",
        "action stationary": "d𝔊",
        "own adjoint": "own adjoint",
        "reversible": "reversible",
        "derivatives of ": "derivatives",
        "engines agree": "engines",
        "compilers agree": "compilers",
        "a cut run goes on": "cut run",
    },
    "Accuracy": {
        "order": "order",
        "right limit": "right limit",
        "strong order": "strong order",
        "weak order": "weak order",
        "energy drift": "energy drift",
        "modified energy": "modified energy",
    },
    "Equilibrium": {
        "temperature": "T/kT",
        "equipartition": "equipartition",
        "kinetic energy (KS)": "kinetic energy (KS)",
        "kinetic energy (AD)": "(AD)",
        "configurational temperature": "T_conf/kT",
        "⟨U⟩/kT": "⟨U⟩/kT",
        "two temperatures": "two temperatures",
        "distance from Gibbs": "distance from Gibbs",
    },
}
_WORST = ("fail", "undecided", "pass", "fact", "unmeasured")

_HEAD = """# Measured

Every system of the gallery with its own scheme and with each other scheme of its kind that takes it. This page is written by

    {command}

and never by hand; claims elsewhere in the documentation are quoted from here. [The certificate](certificate.md) says how each number is measured
and what a verdict means. ✓ held, ✗ failed, ? undecided, · measured but not claimed, – not measured, an empty field: no such law. Of several laws of
a kind the worst is shown. Orders are slopes with their standard errors.

bismut {version}, {budget} of sampling for each pair, seed {seed}: {counts}, in {minutes:.0f} minutes.
"""


def page_of(reports: Mapping[str, Report], settings: Settings, refused: Mapping[str, str], command: str, left: int = 0) -> str:
    """The page; `left` pairs are still to be measured."""
    reports = dict(sorted(reports.items(), key=lambda item: item[0].split(",")[0]))
    verdicts = [report.verdict.value for report in reports.values()]
    words = {"pass": "every claim held", "undecided": "something undecided", "fail": "something failed"}
    counts = ", ".join([f"{len(reports)} pairs", *(f"{verdicts.count(verdict)} with {said}" for verdict, said in words.items())])
    minutes = sum(report.seconds or 0.0 for report in reports.values()) / 60
    head = _HEAD.format(command=command, counts=counts, minutes=minutes, **settings._asdict())
    if left:
        head += f"\n**Not complete: {left} pairs are still to be measured.**\n"
    return "\n".join([head, *(line for title in _TABLES for line in _table(title, reports)), *_notes(reports, refused)]).rstrip() + "\n"


def _table(title: str, reports: Mapping[str, Report]) -> list[str]:
    columns = {law: name for law, name in _TABLES[title].items() if any(_of(report, law) for report in reports.values())}
    rows = {name: report for name, report in reports.items() if any(_of(report, law) for law in columns)}
    if not rows:
        return []
    lines = [f"## {title}", "", "| system, scheme | h | " + " | ".join(columns.values()) + " |", "|---" * (len(columns) + 2) + "|"]
    lines += [f"| {name} | {report.step:g} | " + " | ".join(_cell(_of(report, law)) for law in columns) + " |" for name, report in rows.items()]
    return [*lines, ""]


def _of(report: Report, law: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.law == law or (law.endswith(" ") and finding.law.startswith(law))]


def _cell(findings: list[Finding]) -> str:
    if not findings:
        return ""
    worst = min(findings, key=lambda finding: (_WORST.index(finding.verdict.value), -finding.measured if finding.known else 0.0))
    return f"{worst.mark} {worst.number}".strip().replace("|", "\\|")


def _notes(reports: Mapping[str, Report], refused: Mapping[str, str]) -> list[str]:
    def named(which: Iterable[tuple[str, Finding]]) -> list[str]:
        return [f"- {name}: {finding.law}, {finding.number or 'no number'}. {finding.words}" for name, finding in which] or ["Nothing."]

    every = [(name, finding) for name, report in reports.items() for finding in report.findings]
    broken = [f"- {name}: {finding.law}, {finding.words}" for name, finding in every if "no symmetry" in finding.words]
    return [
        *("## Failed", "", *named(one for one in every if one[1].verdict.value == "fail"), ""),
        *("## Undecided", "", *named(one for one in every if one[1].verdict.value == "undecided"), ""),
        *("## Declared, and no symmetry", "", *(broken or ["Nothing."]), ""),
        *("## Schemes that do not take a system", "", *([f"- {name}: {reason}" for name, reason in refused.items()] or ["None."]), ""),
    ]
