"""Measured claims: is a scheme symplectic, does it conserve, how fast does it converge, does it sample exp(−H/kT)."""

from bismut.findings.advice import Advice, advise_step
from bismut.findings.certificate import certify
from bismut.findings.check_space import check_space
from bismut.findings.checks import Check, Study, check
from bismut.findings.convergence_study import convergence
from bismut.findings.explain import explain
from bismut.findings.finding import Finding, Verdict
from bismut.findings.report import Report
from bismut.findings.structure import symplectic_defect
from bismut.findings.verify import verify, verify_step

__all__ = [
    "Advice",
    "Check",
    "Finding",
    "Report",
    "Study",
    "Verdict",
    "advise_step",
    "certify",
    "check",
    "check_space",
    "convergence",
    "explain",
    "symplectic_defect",
    "verify",
    "verify_step",
]
