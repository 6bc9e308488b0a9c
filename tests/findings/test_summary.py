"""A report in a few lines: nothing that went wrong is left out, and everything is counted."""

import re

import pytest

from bismut.findings import Finding, Report, Verdict

LAWS = ["phase volume", "symplectic defect", "momentum map 'turn'", "own adjoint", "order", "strong order", "temperature", "⟨U⟩/kT", "engines agree"]


def report(**verdicts: Verdict) -> Report:
    findings = [Finding(law, 1e-3, 1.0, verdicts.get(law.split()[0], Verdict.passed), f"how {law}") for law in LAWS]
    return Report("Verlet", 0.01, tuple(findings))


@pytest.mark.parametrize(
    "verdicts",
    [
        {},
        {"phase": Verdict.failed},
        {"own": Verdict.fact},
        {"phase": Verdict.failed, "own": Verdict.undecided},
        dict.fromkeys(("phase", "own", "order"), Verdict.failed),
    ],
    ids=str,
)
def test_a_summary_is_the_verdict_and_at_most_six_lines(verdicts):
    whole = report(**verdicts)
    first, *shown, last = whole.summary().splitlines()
    assert first == whole.headline
    assert 1 <= len(shown) <= 5
    assert all(line in repr(whole) or line.split()[0] in repr(whole) for line in shown)
    for finding in (*whole.failed, *whole.undecided):
        assert any(finding.law in line and line.split()[0] == finding.mark for line in shown)
    assert len(shown) + sum(map(int, re.findall(r"(\d+) (?:passed|failed|undecided|shown|not)", last))) == len(LAWS)


def test_structure_comes_before_what_follows_from_it():
    laws = [line[4:].split("  ")[0] for line in report().summary().splitlines()[1:-1]]
    assert laws == ["symplectic defect", "momentum map 'turn'", "temperature", "⟨U⟩/kT", "strong order"]


def test_a_report_of_nothing_has_a_summary():
    assert Report("nothing", None, ()).summary() == repr(Report("nothing", None, ())) == "nothing: every claim held"
