"""All findings about one scheme, one space or one run: a table to read, JSON for machines, an exit code for scripts, a page of pictures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bismut.errors import BismutError, nearest
from bismut.findings.finding import Finding, Verdict
from bismut.formatting import counted, table
from bismut.registry import PROVIDERS

SCHEMA = "bismut.certificate/1"  # grows by keys; a reader may ignore what it does not know
FAILED, UNDECIDED = 1, 3
# What a summary shows first, by how laws begin, after whatever failed or is undecided; a Casimir is as good as a momentum map.
_FIRST = (
    ("symplectic defect", "Poisson map"),
    ("momentum map", "Casimir", "invariant"),
    ("temperature",),
    ("⟨U⟩/kT",),
    ("strong order", "weak order", "order"),
    ("energy drift", "energy"),
    ("engines agree",),
    ("failures",),
)
_LINES = 5  # of findings in a summary; a sixth counts the rest


@dataclass(frozen=True)
class Report:
    """All findings about one scheme with a step, or about a space. `ok` if every claim passed: none failed, none is undecided.

    alarm    the probability that a report on a correct scheme contains a failure; None where nothing is statistical
    seconds  what it cost
    """

    subject: str
    step: float | None
    findings: tuple[Finding, ...]
    alarm: float | None = None
    seed: int | None = None
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        return not self.failed and not self.undecided

    @property
    def verdict(self) -> Verdict:
        return Verdict.failed if self.failed else Verdict.undecided if self.undecided else Verdict.passed

    @property
    def exit_code(self) -> int:
        """0 if every claim passed, 1 if one failed, 3 if none failed but one is undecided."""
        return {Verdict.failed: FAILED, Verdict.undecided: UNDECIDED}.get(self.verdict, 0)

    @property
    def failed(self) -> tuple[Finding, ...]:
        return self._with(Verdict.failed)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Claims for which there were too few samples."""
        return self._with(Verdict.undecided)

    @property
    def unmeasured(self) -> tuple[Finding, ...]:
        """Laws about which this report says nothing, each with the reason."""
        return self._with(Verdict.unmeasured)

    def _with(self, verdict: Verdict) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is verdict)

    def __getitem__(self, law: str) -> Finding:
        by_law = {finding.law: finding for finding in self.findings}
        if law not in by_law:
            raise BismutError(f"There is no finding {law!r}. {nearest(law, by_law)}")
        return by_law[law]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __contains__(self, law: str) -> bool:
        return any(finding.law == law for finding in self.findings)

    def __repr__(self):
        return "\n".join([self.headline, *_lines(self.findings), *self._small_print()])

    def summary(self) -> str:
        """The verdict and at most six lines: what failed, what is undecided, the most important claims, and how many others there are.

        `print(report)` shows all of them.
        """
        shown = [*self.failed, *self.undecided]
        for laws in _FIRST:
            shown += [f for law in laws for f in (*self._with(Verdict.passed), *self._with(Verdict.fact)) if f.law.startswith(law)][:1]
        shown = shown[:_LINES]
        rest = [finding for finding in self.findings if not any(finding is one for one in shown)]
        return "\n".join([self.headline, *_lines(shown), *([f"    and {_counts(rest)}; print(report) shows all"] if rest else [])])

    def _repr_html_(self) -> str:
        rows = [(finding.mark, finding.law, finding.number, finding.how) for finding in self.findings]
        return table("\n".join([self.headline, *map(str.strip, self._small_print())]), rows, ("", "law", "measured", "how"))

    def __rich__(self) -> Any:
        """The table that a terminal shows in colour."""
        from rich.table import Table
        from rich.text import Text

        colours = {Verdict.passed: "green", Verdict.failed: "bold red", Verdict.undecided: "yellow", Verdict.fact: "cyan", Verdict.unmeasured: "dim"}
        grid = Table(
            title=Text(self.headline), caption=Text("\n".join(map(str.strip, self._small_print()))), box=None, title_justify="left", padding=(0, 1)
        )
        grid.add_column("")
        grid.add_column("law", no_wrap=True)
        grid.add_column("measured", justify="right", no_wrap=True)
        grid.add_column("how")
        for finding in self.findings:
            style = colours[finding.verdict]
            grid.add_row(Text(finding.mark, style), Text(finding.law, style), Text(finding.number), Text(finding.how, "dim"))
        return grid

    @property
    def headline(self) -> str:
        """One line: what was judged, and how it came out."""
        subject = self.subject if self.step is None else f"{self.subject}, step {self.step:g}"
        return f"{subject}: {self._outcome()}"

    def _outcome(self) -> str:
        if self.failed:
            return f"A CLAIM FAILED: {', '.join(finding.law for finding in self.failed)}"
        if self.undecided:
            names = ", ".join(finding.law for finding in self.undecided)
            return f"nothing failed, {counted(len(self.undecided), 'claim')} undecided ({names}): more samples would tell"
        unknown = len(self.unmeasured)
        return f"every claim measured held, {counted(unknown, 'law')} not measured" if unknown else "every claim held"

    def _small_print(self) -> list[str]:
        count = sum(finding.alarm is not None for finding in self.findings)
        if not count or self.alarm is None:
            return []
        return [f"  {counted(count, 'finding')} left to chance, judged together: a faultless run is called faulty with probability {self.alarm:g}"]

    # For machines.

    def as_json(self) -> dict[str, Any]:
        """Plain data under a versioned schema."""
        counts = Counter(finding.verdict.value for finding in self.findings)
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "step": self.step,
            "verdict": self.verdict.value,
            "ok": self.ok,
            "counts": {verdict.value: counts.get(verdict.value, 0) for verdict in Verdict},
            "false_alarm_rate": self.alarm,
            "seed": self.seed,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "findings": [finding.as_json() for finding in self.findings],
        }

    def to_json(self) -> str:
        return json.dumps(self.as_json(), indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | dict[str, Any]) -> Report:
        """A report as `as_json` wrote it."""
        document = json.loads(text) if isinstance(text, str) else text
        if str(document.get("schema", "")).split("/")[0] != SCHEMA.split("/", maxsplit=1)[0]:
            raise BismutError(f"Expected a certificate with schema {SCHEMA}, got {document.get('schema')!r}.")
        optional = {"alarm": document.get("false_alarm_rate"), "seed": document.get("seed"), "seconds": document.get("seconds")}
        return cls(document["subject"], document["step"], tuple(map(_finding, document["findings"])), **optional)

    def figure(self, file: str | Path | None = None, *, dark: bool = False) -> Any:
        """One page: defects, orders, drift, temperatures, bias; written to a file if one is given, on paper or in the dark. Needs matplotlib."""
        return PROVIDERS["certificate"](self, file, dark)

    def short(self) -> list[str]:
        """The verdict in three lines."""
        temperature = [finding for finding in self.findings if finding.law == "temperature" and finding.known]
        # Without an error it is no measured temperature, but the part of kT by which noise raises it (`bath.heated`).
        heat = lambda finding: f"temperature {finding.number} kT" if finding.error else f"noise of the system raises kT by {finding.measured:.0%}"
        named = lambda finding: heat(finding) if finding.law == "temperature" else f"{finding.law} {finding.number}"
        trouble = "; ".join(f"{named(finding)}: {finding.verdict.value}" for finding in (*self.failed, *self.undecided)[:3])
        counts = "; ".join([_counts(self.findings), *map(heat, temperature[:1])])
        return [f"certificate: {self.verdict.value.upper()}", f"  {counts}", f"  {trouble or 'nothing failed, nothing undecided'}"]


def _lines(findings: Sequence[Finding]) -> list[str]:
    """The findings as the rows of a table."""
    names, numbers = max([28, *(len(f.law) for f in findings)]), max([10, *(len(f.number) for f in findings)])
    return [f"  {f.mark} {f.law:<{names}} {f.number:>{numbers}}   {f.how}" for f in findings]


def _counts(findings: Sequence[Finding]) -> str:
    """12 passed, 2 shown as facts."""
    names = {
        Verdict.passed: "passed",
        Verdict.failed: "failed",
        Verdict.undecided: "undecided",
        Verdict.fact: "shown as facts",
        Verdict.unmeasured: "not measured",
    }
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {name}" for verdict, name in names.items() if counts[verdict])


def _finding(document: dict[str, Any]) -> Finding:
    fields = {name: value for name, value in document.items() if name in Finding.__dataclass_fields__}
    numbers = {name: float("nan") if document.get(name) is None else document[name] for name in ("measured", "limit", "error")}
    return Finding(**{**fields, **numbers, "how": document["words"], "verdict": Verdict(document["verdict"])})
