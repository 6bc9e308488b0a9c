"""What a run remembers of itself while it is carried out, so that it can be gone on with.

    committed blocks  →  merged, not computed            checkpoints  →  gone on with from there

A run that finds half of its blocks in a journal gives the same result, bit for bit, as a run that computes them all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol, runtime_checkable

from bismut.ensembles.block import BlockResult, Checkpoint


class Job(NamedTuple):
    """A block to be run, from where it was left if it was begun."""

    variant: int
    block: int
    begun: Checkpoint | None = None


@runtime_checkable
class Journal(Protocol):
    """Where blocks are kept. Its verbs are called by whoever carries a run out, and `checkpoint` also by the threads that run blocks."""

    @property
    def places(self) -> Collection[tuple[int, int]]:
        """Variant and number of the blocks that are committed as this run would compute them; asked often."""
        ...

    def block(self, variant: int, block: int) -> BlockResult | None:
        """A committed block; None if it is not there."""
        ...

    def begun(self, variant: int, block: int) -> Checkpoint | None:
        """Where a block that is not committed can be gone on with; None if at its beginning."""
        ...

    def commit(self, variant: int, block: int, result: BlockResult) -> None:
        """Keep a block that has ended; on return it is safe."""
        ...

    def checkpoint(self, variant: int, block: int, reached: Checkpoint) -> None:
        """Keep a block in progress, in place of what was kept of it before."""
        ...


class Memory:
    """A journal in memory, for tests and for whoever wants to see what is committed."""

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
