"""`simulate(..., store=folder)`: a run that begins where there is none, and continues or is read where it is.

The same call, made again after a crash, continues where the first one was.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.ensembles import Request, Result, run_request
from bismut.errors import StoreError
from bismut.formatting import first_of
from bismut.registry import PROVIDERS
from bismut.store.claim import clean_up
from bismut.store.files import folder_of
from bismut.store.provenance import identity_of, run_provenance
from bismut.store.repair import repair
from bismut.store.resume import asked_counts, begin_run, check_same_run, resume_run
from bismut.store.run_reader import holds_run, open_run
from bismut.store.run_stored import RunJournal, run_and_store
from bismut.store.verify_data import verify_data


@PROVIDERS.register
class SimulationFolder:
    """The folder of a run, as `simulate` uses it."""

    def __init__(self, store: Any):
        self.path = folder_of(store, "store")

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines the run in the folder; nothing if there is none."""
        return identity_of(open_run(self.path)) if holds_run(self.path) else {}

    def run(
        self, asked: Request, *, extend: bool, force: bool, certify: bool, progress: bool | None, executor: Any, deadline: float | None
    ) -> Result:
        """The result of a request: its run is begun in the folder, continued there, or only read."""
        path, command = self.path, shlex.join(sys.argv)
        clean_up(path)
        if not holds_run(path):
            run = begin_run(path, asked, run_provenance(asked, command))
        else:
            _repair_damage(path, asked, command, extend, force, progress)
            stored = open_run(path)
            check_same_run(stored, asked, extend=extend, force=force)
            journal = RunJournal(asked, stored)
            if stored.state == "complete" and stored.asked == asked_counts(asked):
                if progress is not False:
                    print(f"bismut: {path} is complete; nothing is computed.", file=sys.stderr)
                return run_request(asked, progress=False, journal=journal)
            run = resume_run(path, asked, command=command, extend=extend, force=force)
        with run:
            ended = run_and_store(run, asked, executor=executor, progress=progress, deadline=deadline, certified=certify)
        if ended.problem:
            place = f" The result is kept in {ended.folder} instead." if ended.folder else ""
            warnings.warn(f"{ended.problem}{place}", RuntimeWarning, stacklevel=4)
        return ended.result


def _repair_damage(path: Path, asked: Request, command: str, extend: bool, force: bool, progress: bool | None) -> None:
    """Recompute what is damaged, and say so."""
    report = verify_data(path)
    damaged = report.corrupt
    if not damaged:
        return
    if extend:
        raise StoreError(f"{path} is damaged in {first_of([*damaged])}. Without extend=True, simulate recomputes it; then it can be extended.")
    warnings.warn(f"{path} was damaged and has been repaired: {first_of(report.problems, between=' ')}", RuntimeWarning, stacklevel=5)
    repair(path, lambda stored: asked, command=command, force=force, progress=progress)
