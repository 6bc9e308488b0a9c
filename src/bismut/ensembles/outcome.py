"""Numerical failure is an outcome: which trajectory, which step, what residual, what to do. The others finish."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

_SHOWN = 5


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
            whole = "the trajectory finished" if self.trajectories == 1 else f"all {self.trajectories} trajectories finished"
            return f"{whole}{ending}"
        lines = [f"{len(self.failures)} of {self.trajectories} trajectories failed and were left out from then on{ending}:"]
        lines += [f"  {failure}" for failure in self.failures[:_SHOWN]]
        if len(self.failures) > _SHOWN:
            lines.append(f"  and {len(self.failures) - _SHOWN} more")
        lines.append(self.advice)
        return "\n".join(lines)
