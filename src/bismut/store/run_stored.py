"""A request run, and stored in a claimed folder block by block.

Blocks and checkpoints are committed to the folder as they end, and read from it when the run is resumed: a resumed run gives the same result, bit for
bit, as one that computes all of its blocks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bismut.ensembles import Request, Result, run_request
from bismut.ensembles.block import BlockResult, Checkpoint
from bismut.ensembles.block_codec import Expected, block_arrays, block_result, checkpoint, checkpoint_arrays
from bismut.errors import StoreError, WriteError
from bismut.findings import certify
from bismut.store.provenance import read_provenance
from bismut.store.run_reader import StoredRun
from bismut.store.run_writer import RunWriter
from bismut.store.save_load import store_result


class StoredResult(NamedTuple):
    """A result and how storing it went.

    folder    where it is, if anywhere
    problem   what went wrong, if that is not its own folder or not all of it is there
    seconds   of this process
    computed  how many blocks were computed
    """

    result: Result
    folder: Path | None
    problem: str
    seconds: float
    computed: int


def run_and_store(
    run: RunWriter,
    request: Request,
    *,
    fields: dict[str, Any] | None = None,
    progress: bool | None = None,
    executor: Any = None,
    blocks: range | None = None,
    deadline: float | None = None,
    certified: bool = False,
) -> StoredResult:
    """The result of a request whose folder is claimed: committed blocks are not computed, and every other is committed as it ends.

    `fields` go into the provenance; `certified` adds the certificate of the run, at a twentieth of its time, that of earlier processes included.
    """
    journal, clock = RunJournal(request, run), time.perf_counter()
    result = run_request(request, progress=progress, executor=executor, journal=journal, blocks=blocks, deadline=deadline)
    seconds = time.perf_counter() - clock
    total = seconds_of(run.stored) + seconds
    if certified and not result.outcome.interrupted:
        result.certificate = certify(result)
    folder, problem = store_result(run, result, {"seconds": round(total, 3), **(fields or {})}, journal.problem)
    return StoredResult(result, folder, problem, seconds, journal.computed)


def seconds_of(stored: StoredRun) -> float:
    """The time that a run has taken so far, of all processes that came to an end."""
    seconds = read_provenance(stored).get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else 0.0


class RunJournal:
    """A `Journal` of a request. With a claimed run it is written to; with a stored run it is read-only.

    A block counts as committed if it has all steps and all trajectories of the request. One with fewer steps is continued, if it holds its end: so a
    run that is given more steps continues from its last ones. `problem` is the first failure to write, `computed` counts commits.
    """

    def __init__(self, request: Request, run: RunWriter | StoredRun):
        self.request, self._run = request, run if isinstance(run, RunWriter) else None
        self._stored = run.stored if isinstance(run, RunWriter) else run
        self._expected = Expected(request)
        self.problem: WriteError | None = None
        self.computed = 0
        self._records, self._checkpoints = self._stored.blocks, self._stored.checkpoints
        self._places = {place for place, record in self._records.items() if self._is_complete(place, record)}

    def _fits(self, place: tuple[int, int], record: Mapping[str, Any]) -> bool:
        variant, block = place
        inside = 0 <= variant < self.request.variants and 0 <= block < self.request.blocks
        return inside and record.get("trajectories") == len(self.request.numbers(block))

    def _is_complete(self, place: tuple[int, int], record: Mapping[str, Any]) -> bool:
        return self._fits(place, record) and record.get("steps") == self.request.steps

    @property
    def places(self) -> Collection[tuple[int, int]]:
        return self._places

    def block(self, variant: int, block: int) -> BlockResult | None:
        if (variant, block) not in self._places:
            return None
        stored = self._stored if self._run is None or self._was_committed(variant, block) else self._run.stored
        return block_result(self._expected, variant, block, stored.block(variant, block))

    def _was_committed(self, variant: int, block: int) -> bool:
        """Whether a block was committed, as it is now, when the journal was opened."""
        return self._is_complete((variant, block), self._records.get((variant, block), {}))

    def begun(self, variant: int, block: int) -> Checkpoint | None:
        place = variant, block
        if place in self._checkpoints and self._fits(place, self._checkpoints[place]):
            return checkpoint(self._stored.checkpoint(variant, block))
        record = self._records.get(place, {})
        if record.get("goes_on") and self._fits(place, record) and record.get("steps", self.request.steps) < self.request.steps:
            return checkpoint(self._stored.block(variant, block)["end"])
        return None

    def commit(self, variant: int, block: int, result: BlockResult) -> None:
        record = {"steps": result.steps, "trajectories": result.trajectories, "failed": len(result.failures), "goes_on": result.end is not None}
        with self._noting_failure() as run:
            run.commit(variant, block, block_arrays(self.request, result), record)
        self._places.add((variant, block))
        self.computed += 1

    def checkpoint(self, variant: int, block: int, reached: Checkpoint) -> None:
        record = {"step": reached.done, "watched": reached.watched, "trajectories": len(self.request.numbers(block))}
        with self._noting_failure() as run:
            run.checkpoint(variant, block, checkpoint_arrays(reached), record)

    @contextmanager
    def _noting_failure(self) -> Iterator[RunWriter]:
        """The run to write to; the first failure is noted."""
        if self._run is None:
            raise StoreError(f"{self._stored.folder} is read-only here; claim it to write to it.")
        try:
            yield self._run
        except WriteError as problem:
            self.problem = self.problem or problem
            raise
