"""The journal of a run: what it needs to be resumed.

    committed blocks  →  merged, not computed            checkpoints  →  continued

A run with half of its blocks in a journal gives the same result, bit for bit, as a run that computes them all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol, runtime_checkable

from bismut.ensembles.block import BlockResult, Checkpoint


class Job(NamedTuple):
    """A block to be computed, from a checkpoint if it was begun."""

    variant: int
    block: int
    begun: Checkpoint | None = None


@runtime_checkable
class Journal(Protocol):
    """Where blocks are stored. Its methods are called by the driver, `checkpoint` also by the threads that run blocks."""

    @property
    def places(self) -> Collection[tuple[int, int]]:
        """Variant and number of the blocks that are committed as this run would compute them; asked often."""
        ...

    def block(self, variant: int, block: int) -> BlockResult | None:
        """A committed block; None if it is not there."""
        ...

    def begun(self, variant: int, block: int) -> Checkpoint | None:
        """The last checkpoint of a block that is not committed; None if it has none."""
        ...

    def commit(self, variant: int, block: int, result: BlockResult) -> None:
        """Store a block that has ended; on return it is safe."""
        ...

    def checkpoint(self, variant: int, block: int, reached: Checkpoint) -> None:
        """Store a block in progress, in place of its last checkpoint."""
        ...


class MemoryJournal:
    """A journal in memory, for tests and benchmarks."""

    def __init__(self):
        self.blocks: dict[tuple[int, int], BlockResult] = {}
        self.checkpoints: dict[tuple[int, int], Checkpoint] = {}

    @property
    def places(self) -> Collection[tuple[int, int]]:
        return self.blocks.keys()

    def block(self, variant: int, block: int) -> BlockResult | None:
        return self.blocks.get((variant, block))

    def begun(self, variant: int, block: int) -> Checkpoint | None:
        return self.checkpoints.get((variant, block))

    def commit(self, variant: int, block: int, result: BlockResult) -> None:
        self.blocks[variant, block] = result
        self.checkpoints.pop((variant, block), None)

    def checkpoint(self, variant: int, block: int, reached: Checkpoint) -> None:
        self.checkpoints[variant, block] = reached
