"""A request carried out, and kept in a claimed folder as it goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from bismut.ensembles import Request, Result, perform
from bismut.findings import certify
from bismut.store.journal import RunJournal
from bismut.store.reading import StoredRun
from bismut.store.run import Run
from bismut.store.runs import origin_of, write_run

_MARGIN, _SHARE = 10.0, 0.05  # seconds, and part of a limit of time, that are left for the last chunk and the last commit


class KeptRun(NamedTuple):
    """A result, where it is if anywhere, and what went wrong if that is not its own folder or not all of it is there; the time it took, and how many
    blocks were computed."""

    result: Result
    folder: Path | None
    problem: str
    seconds: float
    computed: int


def carry_out_kept(
    run: Run,
    request: Request,
    *,
    said: dict[str, Any] | None = None,
    progress: bool | None = None,
    executor: Any = None,
    blocks: range | None = None,
    deadline: float | None = None,
    certified: bool = False,
) -> KeptRun:
    """The result of a request whose folder is claimed: blocks that are there are not computed, and every other is committed as it ends.

    `certified` adds the certificate of the run, at a twentieth of its time, that of earlier processes included.
    """
    journal, clock = RunJournal(request, run), time.perf_counter()
    result = perform(request, progress=progress, executor=executor, journal=journal, blocks=blocks, deadline=deadline)
    seconds = time.perf_counter() - clock
    spent = seconds_of(run.stored) + seconds
    if certified and not result.outcome.interrupted:
        result.certificate = certify(result)
    folder, problem = write_run(run, result, {"seconds": round(spent, 3), **(said or {})}, journal.problem)
    return KeptRun(result, folder, problem, seconds, journal.computed)


def seconds_of(stored: StoredRun) -> float:
    """The time that a run has taken so far, of all processes that came to an end."""
    found = origin_of(stored).get("seconds")
    return float(found) if isinstance(found, int | float) else 0.0


def deadline_after(seconds: float | None, began: float | None = None) -> float | None:
    """The time at which a run that may take so long is to stop: a little before, for the last commit."""
    if seconds is None:
        return None
    return (time.monotonic() if began is None else began) + seconds - min(_MARGIN, _SHARE * seconds)
