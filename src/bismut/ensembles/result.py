"""What a run returns: a labelled report of everything observed, the final states, and the outcome.

Numerical failure is an outcome: which trajectory, which step, what residual, what to do. The others finish.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.ensembles.observers.report import ObserverReport
from bismut.errors import BismutError, nearest
from bismut.formatting import table
from bismut.mechanics import State

RESERVED = (
    "final",
    "times",
    "outcome",
    "provenance",
    "certificate",
    "observables",
    "request",
    "totals",
    "trajectories_run",
    "steps_run",
    "steps_done",
)


_SHOWN = 5  # failures
_LARGEST = 1000  # entries of an array that is written out


class Failure(NamedTuple):
    """One trajectory that could not go on; of a sweep, `at` says which value it had."""

    trajectory: int
    step: int
    time: float
    residual: float
    at: str = ""

    def __str__(self):
        where = f"trajectory {self.trajectory}, step {self.step} (t = {self.time:.6g})" + (f", {self.at}" if self.at else "")
        if not np.isfinite(self.residual):
            return f"{where}: the state ceased to be finite"
        return f"{where}: the equation of the step was not solved, residual {self.residual:.2g}"


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    trajectories  how many were run, in a sweep those of all values together
    failures      those of them that failed
    stopped       why it ended before everything asked for was done, if it did
    interrupted   whether by a signal or a limit of time
    partial       whether it ended before any trajectory was complete
    cause         what interrupted it: SIGINT, SIGTERM, ..., or "time" for a limit
    advice        what to do about failures
    beyond        trajectories that ended where the energy is infinite although their states are not: they went through a wall
    """

    trajectories: int
    failures: tuple[Failure, ...] = field(default=())
    stopped: str = ""
    interrupted: bool = False
    partial: bool = False
    cause: str = ""
    advice: str = "A smaller step usually helps; so do bounded increments, path=Wiener(seed, bounded=True), when noise is large."
    beyond: int = 0

    def __repr__(self):
        return f"Outcome({str(self).partition(chr(10))[0].rstrip(':')})"

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def complete(self) -> bool:
        return not self.stopped

    def __str__(self):
        ending = f"; {self.stopped}" if self.stopped else ""
        if self.ok:
            if self.partial:
                return self.stopped
            all_done = "the trajectory finished" if self.trajectories == 1 else f"all {self.trajectories} trajectories finished"
            return f"{all_done}{ending}"
        lines = [f"{len(self.failures)} of {self.trajectories} trajectories failed and were left out from then on{ending}:"]
        lines += [f"  {failure}" for failure in self.failures[:_SHOWN]]
        if len(self.failures) > _SHOWN:
            lines.append(f"  and {len(self.failures) - _SHOWN} more")
        lines.append(self.advice)
        return "\n".join(lines)


@dataclass(frozen=True)
class Provenance:
    """What is needed to repeat a run, beside the user's own functions. `trajectories` and `steps` were asked for, `trajectories_run` (in a sweep one
    for each value) and `steps_run` were done; `steps_before` were made by the run that this one went on from. `arithmetic`
    decides the bits; `machine`, for which the program was made, does not. `note` says what XLA computed in place of the native engine, and why."""

    scheme: str
    space: str
    precision: str
    step: float
    steps: int
    every: int
    trajectories: int
    t0: float
    seed: int
    substeps: int
    shift: int
    bounded: bool
    mode: str
    block: int
    parameters: Any
    versions: dict[str, str]
    machine: str = ""
    burn_in: int = 0
    sweep: dict[str, list[float | int]] | None = None
    trajectories_run: int | list[int] | None = None
    steps_run: int | None = None
    first_trajectory: int = 0
    steps_before: int = 0
    path: str = ""
    note: str = ""
    arithmetic: str = ""
    remarks: tuple[str, ...] = ()


def header_notes(provenance: Mapping[str, Any]) -> list[str]:
    """Lines of a header beside how the run ended: how it was computed, and what may run otherwise than it was meant."""
    return [*filter(None, [provenance.get("note")]), *(f"note: {remark}" for remark in provenance.get("remarks") or ())]


def as_data(tree: Any) -> Any:
    """A tree of arrays as numbers, lists and dictionaries, which JSON can hold; other containers as a list of their arrays. An array of more than
    1000 entries is told by its shape, dtype and the SHA-256 of its bytes."""
    if isinstance(tree, Mapping):
        return {str(name): as_data(part) for name, part in tree.items()}
    if isinstance(tree, tuple | list):
        return [as_data(part) for part in tree]
    if hasattr(tree, "dtype") and jax.dtypes.issubdtype(tree.dtype, jax.dtypes.extended):
        return as_data(jax.random.key_data(tree))
    if tree is None:
        return None
    if hasattr(tree, "tolist"):
        array = np.asarray(tree)
        if array.size > _LARGEST:
            return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
        return array.tolist()
    return [as_data(leaf) for leaf in jax.tree.leaves(tree)]


class Result:
    """What a run found: a report for each observer, `result.energy` or `result["energy"]`, and

    final       the last states, trajectories along the first axis
    outcome     whether all trajectories finished; which failed, where and why
    times       of the records
    provenance  what is needed to repeat the run
    steps_done  steps made since the very beginning, burn-in and earlier runs included
    certificate what the run certifies about itself, if requested: simulate(..., certify=True)
    """

    def __init__(
        self,
        times: np.ndarray,
        observables: dict[str, ObserverReport],
        final: State | None,
        outcome: Outcome,
        provenance: Provenance,
        request: Any = None,
        totals: Sequence[tuple | None] = (),
    ):
        self.times, self.final, self.outcome, self.provenance = times, final, outcome, provenance
        self.observables, self.request, self.totals = observables, request, totals
        self.certificate: Any = None

    @property
    def trajectories_run(self) -> int | list[int]:
        """How many were run; in a sweep for each value, where these differ."""
        run = self.provenance.trajectories_run
        each = self.provenance.trajectories if run is None else run
        return each[0] if isinstance(each, list) and len(set(each)) == 1 else each

    @property
    def steps_run(self) -> int:
        return self.provenance.steps if self.provenance.steps_run is None else self.provenance.steps_run

    @property
    def steps_done(self) -> int:
        return self.provenance.steps_before + self.provenance.burn_in + self.steps_run

    def __getitem__(self, name: str) -> ObserverReport:
        if name not in self.observables:
            raise BismutError(f"This run did not observe {name!r}. {nearest(name, self.observables)}")
        return self.observables[name]

    def __getattr__(self, name: str) -> ObserverReport:
        if name.startswith("_") or name == "observables":
            raise AttributeError(name)
        try:
            return self[name]
        except BismutError as problem:
            raise AttributeError(str(problem)) from None

    def __dir__(self):
        return [*super().__dir__(), *self.observables]

    def __repr__(self):
        return "\n".join(
            [
                f"{self._how()}; {self.outcome}",
                *(f"  {line}" for line in header_notes(vars(self.provenance))),
                *(f"  {report!r}" for report in self.observables.values()),
            ]
        )

    def _repr_html_(self) -> str:
        text = lambda report: " ".join(filter(None, (report.text, str(report.population or ""))))
        rows = [(name, text(report), ", ".join(report.variables)) for name, report in self.observables.items()]
        return table("; ".join([self._how(), str(self.outcome), *header_notes(vars(self.provenance))]), rows, ("observed", "found", "arrays"))

    def _how(self) -> str:
        p, run, steps = self.provenance, self.trajectories_run, self.steps_run
        each = f"{min(run)}–{max(run)}" if isinstance(run, list) else str(run)
        asked = "" if run == p.trajectories else f" of {p.trajectories} asked for"
        bounded = ", increments bounded" if p.bounded else ""
        done = f"{steps} steps" if steps == p.steps else f"{steps} of {p.steps} steps"
        return f"{p.scheme} on {p.space}: {each} {'trajectory' if run == 1 else 'trajectories'}{asked}, {done} of {p.step:g}, seed {p.seed}{bounded}"
