"""A report on one page, from its JSON alone."""

import numpy as np
import pytest

from bismut.findings import Finding, Report, Verdict
from bismut.findings.equilibrium import temperatures
from bismut.findings.finding import not_measured
from bismut.findings.statistics import gamma_distribution, holm_verdicts


@pytest.fixture
def report() -> Report:
    rng = np.random.default_rng(0)
    findings = [
        Finding("symplectic defect", 1e-15, 3e-11, Verdict.passed, "max |TᵀΩT − Ω| of one step"),
        Finding("momentum drift", 1e-14, 3e-11, Verdict.passed, "max |J − J₀|"),
        Finding("order", 2.0, 1.75, Verdict.passed, "slope", group="accuracy", data={"steps": [0.1, 0.05], "errors": [1e-2, 2.5e-3], "order": 2}),
        Finding("energy drift", 0.01, 0.25, Verdict.passed, "drift", data={"time": [0, 1, 2], "energy": [[0.0, 0.1, 0.0]]}),
        *temperatures(rng.chisquare(1, size=(8, 500, 2)), ["rotation 1", "rotation 2"], 0.02),
        *gamma_distribution(rng.gamma(1.0, size=500), 1.0, 0.02),
    ]
    return Report("BAOAB", 0.01, holm_verdicts(findings), 1e-3, 0, 1.0)


def test_the_page_has_a_panel_for_each_kind(report, tmp_path):
    again = Report.from_json(report.to_json())
    figure = again.figure(tmp_path / "deep" / "report.png")
    assert (tmp_path / "deep" / "report.png").stat().st_size > 10_000
    titles = {axes.get_title() for axes in figure.axes}
    assert len(titles) == 6  # the list of verdicts has none
    assert any("temperatures" in title for title in titles)


def test_json_keeps_what_was_found(report):
    again = Report.from_json(report.to_json())
    assert again.verdict == report.verdict
    assert [f.law for f in again.findings] == [f.law for f in report.findings]
    assert again["temperature"].measured == report["temperature"].measured
    assert len(report.short()) == 3


def test_a_terminal_gets_a_table(report):
    from rich.console import Console

    console = Console(width=200, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(report)
    told = console.export_text()
    assert all(finding.law in told for finding in report.findings)


def test_laws_that_were_not_measured_for_one_reason_stand_together(tmp_path):
    names = ["Noether", "order", "symplectic defect"]
    why = "the first step did not converge"
    report = Report("scheme", 0.01, (*(not_measured(name, why) for name in names), not_measured("cost", "of another reason")), 1e-3, 0, 1.0)
    texts = [text.get_text() for axes in report.figure(tmp_path / "report.png").axes for text in axes.texts]
    assert texts.count(f"not measured: {why}") == 1
    assert ", ".join(names) in texts
    assert {"cost", "not measured: of another reason"} <= set(texts)
