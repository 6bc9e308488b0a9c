"""Other programs, judged by the same detectors on the same problems.

    rigid bodies   (ℝ³ × SO(3)), moments 1, 2, 3, in a trap, turning freely, kT = 1, friction 1, h = 0.02
    a well         U = ½ x² + ¼ x⁴ for each of three coordinates, kT = 1, friction 1, h = 0.1

Each adapter runs its program and hands over p_i v_i/kT, looks × independent copies × axes; all judgement is ours, and the same for everybody. None
of these programs is needed by bismut; what is not installed is said to be missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bismut.findings.chance import ALARM, judged, mean_of, near
from bismut.findings.equilibrium import GROUP, temperatures
from bismut.findings.report import Report

KT, FRICTION = 1.0, 1.0
INERTIA = (1.0, 2.0, 3.0)
BODY_STEP, WELL_STEP = 0.02, 0.1
BODY_AXES = ["translation 1", "translation 2", "translation 3", "rotation 1", "rotation 2", "rotation 3"]
WELL_AXES = ["coordinate 1", "coordinate 2", "coordinate 3"]


class Judged(NamedTuple):
    """Who ran, the axes, the step, and p_i v_i/kT (looks, copies, axes)."""

    subject: str
    names: list[str]
    step: float
    axes: np.ndarray


# Module of the adapter, and what must be installed for it.
_PEERS = {
    "bismut, rigid bodies": ("bismut.findings.peers.ours", "bodies", "bismut"),
    "jax-md, rigid bodies": ("bismut.findings.peers.by_jax_md", "bodies", "jax_md"),
    "bismut, well": ("bismut.findings.peers.ours", "well", "bismut"),
    "diffrax, well": ("bismut.findings.peers.by_diffrax", "well", "diffrax"),
    "OpenMM, well": ("bismut.findings.peers.by_openmm", "well", "openmm"),
}


def judge(budget: float = 10.0, tolerance: float = 0.02, only: tuple[str, ...] | None = None) -> tuple[dict[str, Report], dict[str, str]]:
    """A report for each program that is installed, and the reason for each that is not judged."""
    del budget
    reports, missing = {}, {}
    for name, (module, function, needed) in _PEERS.items():
        if only is not None and name not in only:
            continue
        try:
            importlib.import_module(needed)
        except ImportError as problem:
            missing[name] = f"not installed ({problem})"
            continue
        run: Callable[[], Judged] = getattr(importlib.import_module(module), function)
        found = run()
        findings = temperatures(found.axes, found.names, tolerance)
        for kind in ("translation", "rotation"):
            if places := [i for i, axis in enumerate(found.names) if axis.startswith(kind)]:
                mean = mean_of(found.axes[..., places].mean(-1))
                findings.insert(1, near(f"temperature, {kind}", mean, 1.0, tolerance, "⟨p v⟩/kT, mean over its axes", group=GROUP))
        reports[name] = Report(found.subject, found.step, judged(findings), ALARM)
    return reports, missing
