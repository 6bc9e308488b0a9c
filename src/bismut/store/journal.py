"""The journal of a run on disk: blocks and checkpoints are committed to its folder, and found there by whoever goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bismut.ensembles import Request
from bismut.ensembles.block import BlockResult, Checkpoint
from bismut.ensembles.expected import Expected
from bismut.ensembles.kept import block_arrays, block_result, checkpoint, checkpoint_arrays
from bismut.errors import StoreError, WriteError
from bismut.store.reading import StoredRun
from bismut.store.run import Run


class RunJournal:
    """A `Journal` of a request. With a claimed run it is written to; with one that is only read it is not.

    A block counts as committed if it has all steps and all trajectories of the request. One with fewer steps is gone on with, if it says where: so a
    run that is given more steps continues from its last ones. `problem` is the first failure to write, `computed` counts commits.
    """

    def __init__(self, request: Request, run: Run | StoredRun):
        self.request, self._run = request, run if isinstance(run, Run) else None
        self._stored = run.stored if isinstance(run, Run) else run
        self._expected = Expected(request)
        self.problem: WriteError | None = None
        self.computed = 0
        self._records, self._checkpoints = self._stored.blocks, self._stored.checkpoints
        self._places = {place for place, record in self._records.items() if self._whole(place, record)}

    def _fits(self, place: tuple[int, int], record: Mapping[str, Any]) -> bool:
        variant, block = place
        inside = 0 <= variant < self.request.variants and 0 <= block < self.request.blocks
        return inside and record.get("trajectories") == len(self.request.numbers(block))

    def _whole(self, place: tuple[int, int], record: Mapping[str, Any]) -> bool:
        return self._fits(place, record) and record.get("steps") == self.request.steps

    @property
    def places(self) -> Collection[tuple[int, int]]:
        return self._places

    def block(self, variant: int, block: int) -> BlockResult | None:
        if (variant, block) not in self._places:
            return None
        stored = self._stored if self._run is None or self._begun_with(variant, block) else self._run.stored
        return block_result(self._expected, variant, block, stored.block(variant, block))

    def _begun_with(self, variant: int, block: int) -> bool:
        """Whether a block was there when the journal was opened, as it is now."""
        return self._whole((variant, block), self._records.get((variant, block), {}))

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
        with self._noting() as run:
            run.commit(variant, block, block_arrays(self.request, result), record)
        self._places.add((variant, block))
        self.computed += 1

    def checkpoint(self, variant: int, block: int, reached: Checkpoint) -> None:
        record = {"step": reached.done, "watched": reached.watched, "trajectories": len(self.request.numbers(block))}
        with self._noting() as run:
            run.checkpoint(variant, block, checkpoint_arrays(reached), record)

    @contextmanager
    def _noting(self) -> Iterator[Run]:
        """The run to write to; the first failure is noted."""
        if self._run is None:
            raise StoreError(f"{self._stored.folder} is read-only here; claim it to write to it.")
        try:
            yield self._run
        except WriteError as problem:
            self.problem = self.problem or problem
            raise
