"""One claim, measured.

    measured ± error   against   limit        pass, fail or undecided

A law that a scheme does not claim is measured all the same and is a fact; a law that could not be measured says why, so that silence never looks
like success. For statistical findings two numbers decide (`statistics`): `alarm`, the probability of such a measurement if the claim is true, and
`doubt`, that if the claim is false. A claim fails when the first is small, passes when the second is, and is undecided when neither is: more samples
would tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from bismut.formatting import with_error


class Verdict(StrEnum):
    """The outcome of a claim; `fact` where nothing was claimed, `unmeasured` where nothing was measured."""

    passed = "pass"
    failed = "fail"
    undecided = "undecided"
    fact = "fact"
    unmeasured = "unmeasured"

    @property
    def mark(self) -> str:
        return {"pass": "✓", "fail": "✗", "undecided": "?", "fact": "·", "unmeasured": "–"}[self.value]


def verdict_of(holds: bool | None) -> Verdict:
    """The verdict on a claim that is not statistical; None where there is no claim."""
    return {True: Verdict.passed, False: Verdict.failed, None: Verdict.fact}[holds if holds is None else bool(holds)]


@dataclass(frozen=True)
class Finding:
    """One law.

    measured, error   the value and its standard error, 0 where nothing is statistical
    limit             what separates pass from fail: a largest value, or where `expected` is given the largest distance from it
    how               how it was measured; "words" in JSON
    alarm, doubt      probabilities of such a measurement if the claim is true, and if it is false; None where nothing is statistical
    samples           the number of independent samples with the same error
    group             which part of a report it belongs to
    seed, seconds     of the noise, and of the measurement, which findings of a group may share
    data              numbers for a picture
    """

    law: str
    measured: float
    limit: float
    verdict: Verdict
    how: str
    error: float = 0.0
    expected: float | None = None
    alarm: float | None = None
    doubt: float | None = None
    samples: float | None = None
    group: str = "structure"
    seed: int | None = None
    seconds: float | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def held(self) -> bool | None:
        """True for pass, False for fail, None for everything else."""
        return {Verdict.passed: True, Verdict.failed: False}.get(self.verdict)

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return self.verdict is not Verdict.unmeasured

    @property
    def mark(self) -> str:
        """✓ pass, ✗ fail, ? undecided, · not claimed, – not measured."""
        return self.verdict.mark

    @property
    def number(self) -> str:
        """What was measured: three digits, or what the error leaves."""
        if not self.known:
            return ""
        return with_error(self.measured, self.error) if self.error > 1e-9 * abs(self.measured) else f"{self.measured:.3g}"

    def __str__(self):
        return f"{self.mark} {self.law:<28} {self.number:>10}   {self.how}"

    def as_json(self) -> dict[str, Any]:
        """Plain data; NaN is null."""
        fields = {**asdict(self), "verdict": self.verdict.value}
        return {"words" if name == "how" else name: plain(value) for name, value in fields.items()}


def plain(value: Any) -> Any:
    """A tree as JSON has it: numbers of NumPy as Python's, and what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def at_most(law: str, measured: float, limit: float, claimed: bool, how: str, unclaimed: str = "not claimed") -> Finding:
    """A law that says: no larger than a limit."""
    verdict = verdict_of(measured <= limit if claimed else None)
    return Finding(law, measured, limit, verdict, f"{how}; {f'limit {limit:.1g}' if claimed else unclaimed}")


def not_measured(law: str, why: str) -> Finding:
    """A law about which nothing is known, and the reason."""
    return Finding(law, float("nan"), float("nan"), Verdict.unmeasured, f"not measured: {why}")
