"""Judgement: is it symplectic, does it conserve, how fast does it converge."""

from bismut.findings.explain import explain
from bismut.findings.order import Convergence, convergence, distance, final_states
from bismut.findings.report import Finding, Report
from bismut.findings.spaces import check_space
from bismut.findings.structure import symplectic_defect, symplectic_form, tangent_map, volume_factor
from bismut.findings.verify import verify

__all__ = [
    "Convergence",
    "Finding",
    "Report",
    "check_space",
    "convergence",
    "distance",
    "explain",
    "final_states",
    "symplectic_defect",
    "symplectic_form",
    "tangent_map",
    "verify",
    "volume_factor",
]
