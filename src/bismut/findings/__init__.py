"""Judgement: is it symplectic, does it conserve, how fast does it converge."""

from bismut.findings.advice import Advice, advise_step
from bismut.findings.certificate import certify
from bismut.findings.explain import explain
from bismut.findings.finding import Finding, Verdict
from bismut.findings.handwritten import verify_step
from bismut.findings.order import Convergence, convergence, distance, final_states
from bismut.findings.report import Report
from bismut.findings.spaces import check_space
from bismut.findings.structure import symplectic_defect, symplectic_form, tangent_map, volume_factor
from bismut.findings.verify import verify

__all__ = [
    "Advice",
    "Convergence",
    "Finding",
    "Report",
    "Verdict",
    "advise_step",
    "certify",
    "check_space",
    "convergence",
    "distance",
    "explain",
    "final_states",
    "symplectic_defect",
    "symplectic_form",
    "tangent_map",
    "verify",
    "verify_step",
    "volume_factor",
]
