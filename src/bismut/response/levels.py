"""Coupled runs: one noise, two steps.

    Y_0 = f(z at h_0),        Y_l = f(z at h_l) − f(z at h_{l−1}),      h_l = h_0/2^l,       Σ_{l ≤ L} ⟨Y_l⟩ = ⟨f⟩ at h_L

A coarse increment is the sum of two fine ones, Wiener(seed, substeps=2), and starts do not depend on the step, so both members of a pair follow the
same path and Var Y_l falls with the step. Every level has trajectories of its own: levels are independent, and more can be added (Giles).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bismut.ensembles import complete_run, moments, request, values
from bismut.ensembles.moments import Moments
from bismut.mechanics import Scheme
from bismut.noise import Wiener

_APART = 2**40  # trajectory numbers of one level; none has more
_PORTION = 100_000  # trajectories whose values are held at a time


@dataclass(frozen=True)
class Problem:
    """The mean of a function of a state after a time, and how runs towards it are made."""

    scheme: Scheme
    start: Any
    of: Any
    time: float
    seed: int
    t0: float

    def values(self, steps: int, substeps: int, first: int, trajectories: int) -> tuple[np.ndarray, int]:
        """f at the end for each trajectory, flat (trajectories, components), NaN for those that failed; and how many those are."""
        path = Wiener(self.seed, substeps=substeps)
        run = complete_run(
            request(
                self.scheme,
                self.start,
                step=self.time / steps,
                steps=steps,
                trajectories=trajectories,
                first_trajectory=first,
                path=path,
                t0=self.t0,
                observe={"of": values(self.of, every=steps)},
                keep_final=False,
            )
        )
        return np.asarray(run.observables["of"].value)[:, -1].reshape(trajectories, -1), len(run.outcome.failures)


@dataclass
class Level:
    """The statistics of one level.

    steps    of its fine member; the coarse one makes half as many
    alone    whether there is no coarse member: the first level
    number   by which its trajectories are told from those of other levels
    """

    steps: int
    alone: bool
    number: int
    difference: Moments | None = field(default=None, repr=False)
    fine: Moments | None = field(default=None, repr=False)
    coarse: Moments | None = field(default=None, repr=False)
    failed: int = 0
    undefined: int = 0  # of those that failed, where the states are finite and f is not, at least
    drawn: int = 0

    @property
    def cost(self) -> float:
        """Steps of one trajectory."""
        return self.steps if self.alone else 1.5 * self.steps

    @property
    def count(self) -> int:
        return 0 if self.difference is None else int(np.min(self.difference.n))

    @property
    def mean(self) -> np.ndarray:
        assert self.difference is not None
        return self.difference.mean

    @property
    def variance(self) -> np.ndarray:
        """Of one trajectory."""
        return variance_of(self.difference)

    @property
    def squared_error(self) -> np.ndarray:
        return self.variance / max(self.count, 1)

    def add(self, problem: Problem, trajectories: int) -> None:
        """Run so many more trajectories."""
        while trajectories > 0:
            n = min(trajectories, _PORTION)
            first = self.number * _APART + self.drawn
            fine, lost = problem.values(self.steps, 1, first, n)
            coarse, more = (None, 0) if self.alone else problem.values(self.steps // 2, 2, first, n)
            counted = np.isfinite(fine).all(1) & (True if coarse is None else np.isfinite(coarse).all(1))
            self.failed += int(n - counted.sum())
            self.undefined += max(int(n - counted.sum()) - lost - more, 0)
            self.drawn += n
            trajectories -= n
            if not counted.any():
                continue
            self.fine = _joined(self.fine, fine[counted])
            self.coarse = None if coarse is None else _joined(self.coarse, coarse[counted])
            self.difference = _joined(self.difference, (fine if coarse is None else fine - coarse)[counted])


def variance_of(over: Moments | None) -> np.ndarray:
    return np.array([np.inf]) if over is None else over.second / np.maximum(over.n - 1, 1)


def _joined(before: Moments | None, values: np.ndarray) -> Moments:
    new = moments.gather(values)
    return new if before is None else moments.merge(before, new)
