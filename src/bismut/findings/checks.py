"""Checks: what `verify` and the certificates of runs measure, a function for each group of laws.

    @CHECKS.register
    @check("structure", laws=("symplectic defect", "phase volume"), rank=10, cost=1.0)
    def one_step(study: Study) -> list[Finding]: ...

A check measures laws of a scheme and returns a finding for each. Other packages publish theirs as entry points in the group `bismut.checks`; `verify`
measures them after bismut's own, and a check with a cost is part of certificates too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.ensembles import Trajectory, trajectory
from bismut.findings.finding import Finding
from bismut.findings.noether import ProbePoints, probe_points
from bismut.mechanics import Scheme, State, System
from bismut.noise import Path, counter
from bismut.registry import CHECKS

GROUPS = ("structure", "consistency", "accuracy", "integrity", "equilibrium")  # as reports list them
STEPS = 200  # of the path along which conservation is measured


@dataclass(frozen=True)
class Study:
    """What checks measure: a scheme with a step, from a state at time t0, on a path of noise.

    order, integrity, equilibrium  whether these are asked for
    budget                         seconds of work for sampling
    tolerance                      how far temperatures may deviate, relatively, and averages, in units of their spread
    temperature                    kT, if the scheme does not define it
    observables                    functions of a State whose averages are compared with those of exp(−H/kT)
    """

    scheme: Scheme
    state: State
    step: float
    path: Path
    t0: float
    order: bool = True
    integrity: bool = True
    equilibrium: bool = True
    budget: float = 10.0
    tolerance: float = 0.02
    temperature: float | None = None
    observables: Mapping[str, Callable[[State], Any]] = field(default_factory=dict)

    @property
    def system(self) -> System:
        return self.scheme.system

    @property
    def seed(self) -> int:
        return self.path.seed_number

    @property
    def eps(self) -> float:
        """Round-off of the system's numbers."""
        return float(np.finfo(self.system.dtype).eps)

    @property
    def h(self) -> Any:
        return jnp.asarray(self.step, self.system.dtype)

    def increment(self) -> Any:
        """ΔW of the first step."""
        return self.path.increment(counter(0), counter(0), self.scheme.channels, self.h, self.system.dtype)

    @cached_property
    def run(self) -> Trajectory:
        """A short path."""
        return trajectory(self.scheme, self.state, step=self.step, steps=STEPS, path=self.path, t0=self.t0)

    @cached_property
    def probes(self) -> ProbePoints | None:
        """Random points and velocities near the path; None where there is no Lagrangian in (q, v)."""
        return probe_points(self.system, self.run.states, self.t0) if in_velocities(self.scheme) else None


def in_velocities(scheme: Scheme) -> bool:
    """Whether there is a Lagrangian in (q, v)."""
    return scheme.system.has_lagrangian and not scheme.system.in_phase_space


@dataclass(frozen=True)
class Check:
    """A function that measures laws, and when it is called.

    laws     listed as not measured if the function cannot be evaluated
    rank     checks are made in this order
    cost     in units of the structure of a step; None for one that is no part of certificates
    label    what a certificate lists if the run does not pay for it: the laws, unless something else is said
    applies  whether a scheme has something to measure
    """

    name: str
    group: str
    laws: tuple[str, ...]
    measure: Callable[[Study], list[Finding]]
    rank: int
    cost: float | None
    label: tuple[str, ...]
    applies: Callable[[Scheme], bool]

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return self.measure.__doc__ or ", ".join(self.laws)

    def __call__(self, study: Study) -> list[Finding]:
        """The findings, in the group of this check."""
        return [replace(finding, group=self.group) for finding in self.measure(study)] if self.applies(study.scheme) else []


def check(
    group: str,
    laws: tuple[str, ...],
    *,
    rank: int = 100,
    cost: float | None = None,
    label: tuple[str, ...] = (),
    applies: Callable[[Scheme], bool] = lambda scheme: True,
) -> Callable[[Callable[[Study], list[Finding]]], Check]:
    """Make a check of a function, whose name it takes; arguments are the fields of `Check`."""
    return lambda function: Check(function.__name__, group, laws, function, rank, cost, label or laws, applies)


def all_checks() -> list[Check]:
    """All checks of bismut and of installed packages, by rank."""
    return sorted((one for _, one in CHECKS.items()), key=lambda one: one.rank)


def by_group(findings: list[Finding]) -> list[Finding]:
    """Findings as a report lists them: groups in their order, those of other packages last."""
    return sorted(findings, key=lambda one: GROUPS.index(one.group) if one.group in GROUPS else len(GROUPS))
