"""What was found: one finding for each law, and the report of them all.

Each finding names a law, what was measured and the limit that separates held from failed. A law that a scheme does not claim is measured all the
same and shown as a fact; a law that could not be measured is listed with the reason, so that silence never looks like success.
"""

from __future__ import annotations

from dataclasses import dataclass

from bismut.errors import BismutError, nearest
from bismut.showing import counted, table


@dataclass(frozen=True)
class Finding:
    """One law: `held` is None where nothing was claimed, or nothing measured (`known` is then false and `measured` not a number)."""

    law: str
    measured: float
    limit: float
    held: bool | None
    words: str
    known: bool = True

    @property
    def mark(self) -> str:
        """✓ held, ✗ failed, · not claimed, – not measured."""
        return {True: "✓", False: "✗", None: "·"}[self.held] if self.known else "–"

    @property
    def number(self) -> str:
        """What was measured, in three digits."""
        return f"{self.measured:.3g}" if self.known else ""

    def __str__(self):
        return f"{self.mark} {self.law:<28} {self.number:>10}   {self.words}"


def at_most(law: str, measured: float, limit: float, claimed: bool, words: str, unclaimed: str = "not claimed") -> Finding:
    """A law that says: no larger than a limit."""
    return Finding(law, measured, limit, measured <= limit if claimed else None, f"{words}; {f'limit {limit:.1g}' if claimed else unclaimed}")


def not_measured(law: str, why: str) -> Finding:
    """A law about which nothing is known, and the reason."""
    return Finding(law, float("nan"), float("nan"), None, f"not measured: {why}", known=False)


@dataclass(frozen=True)
class Report:
    """All findings about one scheme with a step, or about a space; `ok` unless a claim failed, and `unmeasured` what was not looked at."""

    subject: str
    step: float | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.held is not False for finding in self.findings)

    @property
    def unmeasured(self) -> tuple[Finding, ...]:
        """Laws about which this report says nothing, each with the reason."""
        return tuple(finding for finding in self.findings if not finding.known)

    def __getitem__(self, law: str) -> Finding:
        by_law = {finding.law: finding for finding in self.findings}
        if law not in by_law:
            raise BismutError(f"There is no finding {law!r}. {nearest(law, by_law)}")
        return by_law[law]

    def __repr__(self):
        return "\n".join([self._head(), *(f"  {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        rows = [(finding.mark, finding.law, finding.number, finding.words) for finding in self.findings]
        return table(self._head(), rows, ("", "law", "measured", "how"))

    def _head(self) -> str:
        unknown = len(self.unmeasured)
        held = f"every claim measured held, {counted(unknown, 'law')} not measured" if unknown else "every claim held"
        subject = self.subject if self.step is None else f"{self.subject}, step {self.step:g}"
        return f"{subject}: {held if self.ok else 'A CLAIM FAILED'}"
