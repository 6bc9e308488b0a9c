"""The gallery, measured pair by pair: each system with its own scheme, and with every other that takes it; and the page of all measurements.

A report is stored as soon as it is complete, one file for each pair, so that an interrupted study can be resumed, and extended by a system. What
breaks in one pair is a failure in its report.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bismut import actions, flows
from bismut.errors import BismutError
from bismut.findings import Finding, Report, Verdict, verify
from bismut.gallery import entries
from bismut.gallery.entry import Entry
from bismut.mechanics import Scheme
from bismut.registry import SCHEMES, SPLITTINGS
from bismut.user_errors import reason_of


class SystemWithScheme(NamedTuple):
    """A system and a scheme: names, how the scheme is made, and whether it is the one that the system comes with."""

    system: str
    scheme: str
    entry: Entry
    make: Callable[[], Scheme]
    own: bool

    @property
    def name(self) -> str:
        return f"{self.system}, {self.scheme}"


class Settings(NamedTuple):
    """What decides a report beside the code: reports with others are not mixed."""

    budget: str
    order: bool
    seed: int = 0
    version: str = version("bismut")


def pairs(own: bool = False, only: tuple[str, ...] = ()) -> tuple[list[SystemWithScheme], dict[str, str]]:
    """All pairs, and for each that is refused the reason; of some systems, if they are named."""
    chosen_pairs, refused = [], {}
    for name, entry in entries().items():
        if only and name not in only:
            continue
        system = entry.build()
        chosen = entry.scheme(system)
        chosen_pairs.append(SystemWithScheme(name, chosen.title, entry, partial(_constant, chosen), own=True))
        for title, make in {} if own else _others(system, chosen).items():
            try:
                entry.start(make())
            except BismutError as problem:
                refused[f"{name}, {title}"] = reason_of(problem)
                continue
            except Exception:  # not a refusal but a failure: `measure` meets it again and reports it
                pass
            chosen_pairs.append(SystemWithScheme(name, title, entry, make, own=False))
    return sorted(chosen_pairs, key=lambda pair: not pair.own), refused  # the most useful first


def _constant(scheme: Scheme) -> Scheme:
    return scheme


def _others(system: Any, chosen: Scheme) -> dict[str, Callable[[], Scheme]]:
    """Registered schemes of the same kind as the one that a system comes with, by title."""
    kind = actions.DiscreteHamiltonian if isinstance(chosen, actions.DiscreteHamiltonian) else actions.Action
    alike = isinstance(chosen, kind | flows.Langevin)
    schemes = {name: one for name, one in SCHEMES.items() if alike and isinstance(one, type) and issubclass(one, kind)}
    others: dict[str, Callable[[], Scheme]] = {name: partial(one, system) for name, one in schemes.items() if name != chosen.title}
    if isinstance(chosen, flows.Langevin):
        baths = [one for _, one in SPLITTINGS.items() if not isinstance(one, type)]  # a class is one over an action
        others = {f"Langevin({bath})": partial(chosen.with_splitting, bath) for bath in baths if bath != chosen.splitting} | others
    return others


def measure(pair: SystemWithScheme, settings: Settings) -> Report:
    """The report on a pair; what breaks is a failure in it, and stops no other pair."""
    begun = time.monotonic()
    try:
        scheme = pair.make()
        return verify(
            scheme,
            pair.entry.start(scheme),
            step=pair.entry.step,
            seed=settings.seed,
            budget=settings.budget,
            order=settings.order,
            integrity=settings.order and pair.own,
        )
    except Exception as problem:
        broken = Finding("could not be measured", float("nan"), 0.0, Verdict.failed, f"{type(problem).__name__}: {reason_of(problem)}")
        return Report(pair.scheme, pair.entry.step, (broken,), None, settings.seed, time.monotonic() - begun)


def stored_report(folder: Path, pair: SystemWithScheme, settings: Settings) -> Report | None:
    """The report of an interrupted study, if it was measured with the same settings."""
    file = _file(folder, pair)
    if not file.exists():
        return None
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        return Report.from_json(stored["report"]) if stored["settings"] == list(settings) else None
    except (ValueError, KeyError, TypeError, BismutError):
        return None  # cut short, or of an earlier version: it is measured again


def store_report(folder: Path, pair: SystemWithScheme, settings: Settings, report: Report) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = _file(folder, pair)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"settings": settings, "report": report.as_json()}, ensure_ascii=False), encoding="utf-8")
    part.replace(file)


def _file(folder: Path, pair: SystemWithScheme) -> Path:
    plain = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in f"{pair.system}--{pair.scheme}")
    return folder / f"{plain}.json"


def measure_all(
    chosen: list[SystemWithScheme], settings: Settings, folder: Path, *, resume: bool, begun: Callable[[int, SystemWithScheme], None]
) -> Iterator[tuple[SystemWithScheme, Report]]:
    """Reports one after the other; `begun` is called before each that is measured."""
    for number, pair in enumerate(chosen):
        report = stored_report(folder, pair, settings) if resume else None
        if report is None:
            begun(number, pair)
            report = measure(pair, settings)
            store_report(folder, pair, settings, report)
        yield pair, report


# The page, in Markdown: three tables, and what failed, is undecided, or is refused.

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
        "noise drawn": "noise",
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
        "stability": "stability",
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
    meanings = {"pass": "every claim held", "undecided": "something undecided", "fail": "something failed"}
    counts = ", ".join([f"{len(reports)} pairs", *(f"{verdicts.count(verdict)} with {said}" for verdict, said in meanings.items())])
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
        return [f"- {name}: {finding.law}, {finding.number or 'no number'}. {finding.how}" for name, finding in which] or ["Nothing."]

    every = [(name, finding) for name, report in reports.items() for finding in report.findings]
    broken = [f"- {name}: {finding.law}, {finding.how}" for name, finding in every if "no symmetry" in finding.how]
    return [
        *("## Failed", "", *named(one for one in every if one[1].verdict.value == "fail"), ""),
        *("## Undecided", "", *named(one for one in every if one[1].verdict.value == "undecided"), ""),
        *("## Declared, and no symmetry", "", *(broken or ["Nothing."]), ""),
        *("## Schemes that do not take a system", "", *([f"- {name}: {reason}" for name, reason in refused.items()] or ["None."]), ""),
    ]
