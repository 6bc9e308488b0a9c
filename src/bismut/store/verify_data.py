"""What of a run is complete, what is partial and what is damaged: every committed file is read and compared with its checksum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bismut.errors import ChangedError, StoreError
from bismut.formatting import first_of
from bismut.store.layout import BLOCKS, CHECKPOINTS, STATISTICS
from bismut.store.manifest import MANIFEST
from bismut.store.run_reader import CommittedFiles, StoredRun, open_run, remedy
from bismut.store.zarr_reader import load_group

_TRIES = 20  # readings of a run that changes meanwhile


@dataclass(frozen=True)
class DataReport:
    """Places of a run that are complete, partial and corrupt; of the last, what is wrong with each."""

    run: str
    state: str
    complete: tuple[str, ...]
    partial: tuple[str, ...]
    corrupt: dict[str, tuple[str, ...]]

    @property
    def ok(self) -> bool:
        return not self.corrupt

    @property
    def problems(self) -> list[str]:
        """All problems, of all places."""
        return [problem for several in self.corrupt.values() for problem in several]

    def __str__(self) -> str:
        lines = [f"{self.run}: {self.state}; {len(self.complete)} parts complete, {len(self.partial)} partial, {len(self.corrupt)} corrupt"]
        lines += [f"  partial  {place}" for place in self.partial]
        lines += [f"  corrupt  {place}: {first_of(problems)}" for place, problems in self.corrupt.items()]
        return "\n".join(lines)


def damage_message(path: Path, problems: Sequence[str]) -> str:
    return "\n  ".join([f"{path} is damaged:", first_of(problems, between="\n  ")]) + f"\n{remedy(path)}"


def verify_data(path: str | Path) -> DataReport:
    """Read everything that was committed, and report what is damaged. A run without a manifest, or of another schema, is refused."""
    checked: dict[str, tuple[CommittedFiles, tuple[str, ...]]] = {}
    run = open_run(path, allow_damage=True)
    for _ in range(_TRIES):
        try:
            for place, files in run.committed.items():
                if place not in checked or checked[place][0] != files:
                    checked[place] = files, problems_of(run, place)
            break
        except ChangedError:
            run = open_run(path, allow_damage=True)
    wrong = {place: problems for place, (_, problems) in checked.items() if problems and place in run.committed}
    if run.manifest.problem:
        wrong[MANIFEST] = (run.manifest.problem,)
    sound = [place for place in run.committed if place not in wrong]
    partial = [place for place in sound if place.startswith(f"{CHECKPOINTS}/") or (place == STATISTICS and run.state != "complete")]
    torn = ("manifest.jsonl: half a line at its end, which was not committed",) if run.manifest.torn else ()
    complete = tuple(place for place in sound if place not in partial)
    return DataReport(str(path), str(run), complete, (*partial, *torn), wrong)


def problems_of(run: StoredRun, place: str) -> tuple[str, ...]:
    """What is wrong with a place: with each of its files, or else with the arrays that they hold."""
    reads = [partial(run.read, place, key) for key in run.committed[place].files]
    return _failures(reads) or _failures([partial(_decode, run, place)])


def _failures(reads: Sequence[Callable[[], Any]]) -> tuple[str, ...]:
    problems = []
    for read in reads:
        try:
            read()
        except ChangedError:
            raise
        except StoreError as problem:
            problems.append(str(problem))
    return tuple(problems)


def _decode(run: StoredRun, place: str) -> None:
    if place == STATISTICS:
        load_group(run.results())
    elif place.startswith((f"{BLOCKS}/", f"{CHECKPOINTS}/")):
        run.unpacked(place)
