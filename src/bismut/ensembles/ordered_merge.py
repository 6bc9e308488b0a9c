"""Ordered merge: blocks are merged in their order, whatever the order in which they arrive.

Floating-point sums depend on their order, and so does the block after which errors are small enough. So a block waits until all before it have been
merged; those in a journal are merged in their place like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bismut.ensembles.block import BlockResult
from bismut.ensembles.journal import Job, Journal
from bismut.ensembles.request import Request
from bismut.ensembles.result import Failure
from bismut.errors import StoreError, WriteError
from bismut.mechanics import State

# `until` looks at errors after so many trajectories, and after half as many again, and so on. The mean and the standard error of a skewed observable
# rise and fall together, so stopping at a small error prefers small means: of q⁴ in a Gaussian, with looks after every 8 from 32 on, by up to 0.95 of
# the error asked for. With these looks, and `records.standard_error`, it is 0.4 at most, and 0.1 or less of an observable without tails.
MINIMUM, GROWTH = 128, 1.5
_WAITING = 64  # blocks that wait in memory for an earlier one

Place = tuple[int, int]


class Variant:
    """The merged blocks of one combination of swept values."""

    def __init__(self):
        self.totals: tuple | None = None
        self.finals: list[State] = []
        self.failures: list[Failure] = []
        self.run = 0
        self.beyond = 0  # trajectories that ended where the energy is infinite
        self.look = MINIMUM  # trajectories at which errors are looked at next
        self.enough = False


class OrderedMerge:
    """The blocks of a run; `blocks` are those of each variant that are wanted, `merged` is called with each block that the journal had."""

    def __init__(self, request: Request, blocks: range, journal: Journal | None, merged: Callable[[BlockResult], None]):
        self.request, self.blocks, self.journal, self.merged = request, blocks, journal, merged
        self.variants = [Variant() for _ in request.settings]
        self._waiting: dict[Place, BlockResult] = {}
        self._problem: WriteError | None = None
        self._order = self._wanted()
        self._next = next(self._order, None)
        self._advance()

    def _wanted(self) -> Iterator[Place]:
        for variant in range(self.request.variants):
            for block in self.blocks:
                if self.variants[variant].enough:
                    break
                yield variant, block

    def wants(self, variant: int) -> bool:
        return not self.variants[variant].enough

    def jobs(self) -> Iterator[Job]:
        """Blocks that are still to be computed, from their checkpoints."""
        for variant, block in self._wanted():
            if self.journal is None:
                yield Job(variant, block)
            elif (variant, block) not in self.journal.places:
                yield Job(variant, block, self.journal.begun(variant, block))

    def take(self, variant: int, block: int, result: BlockResult) -> None:
        """A block that was computed. It is committed at once; with `until`, which may not need it, when it is merged."""
        if not self.request.until:
            self._commit(variant, block, result)
        stored = self.journal is not None and (variant, block) in self.journal.places
        if not stored or len(self._waiting) < _WAITING:  # else it is read again when it is merged
            self._waiting[variant, block] = result
        self._advance()
        self._raise_write_error()

    def _commit(self, variant: int, block: int, result: BlockResult) -> None:
        """If the disk is full, what is in memory is merged all the same, and the error is raised afterwards."""
        if self.journal is not None:
            try:
                self.journal.commit(variant, block, result)
            except WriteError as problem:
                self._problem = problem

    def _raise_write_error(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _advance(self) -> None:
        """Merge what has arrived, up to the first block that has not."""
        while self._next is not None:
            if not self._merge(*self._next):
                return
            self._next = next(self._order, None)

    def end(self) -> None:
        """Merge all others that have arrived, too: a run was interrupted."""
        known = {*self._waiting, *(self.journal.places if self.journal is not None else ())}
        for variant, block in sorted(known):
            if self._next is not None and (variant, block) > self._next and block in self.blocks and not self.variants[variant].enough:
                self._merge(variant, block)
        self._raise_write_error()

    def _merge(self, variant: int, block: int) -> bool:
        result, new = self._waiting.pop((variant, block), None), True
        if result is None and self.journal is not None and (variant, block) in self.journal.places:
            result, new = self.journal.block(variant, block), False
        if result is None:
            return False
        try:
            take(self.request, self.variants[variant], result)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:
            if new:
                raise
            raise StoreError(f"Block {block} of variant {variant} does not fit this run, for it cannot be merged: {problem}.") from problem
        if self.request.until and new:
            self._commit(variant, block, result)
        if not new:
            self.merged(result)
        return True


def take(request: Request, variant: Variant, result: BlockResult) -> None:
    """A block merged into its variant."""
    variant.totals = merged(request, variant.totals, result.summaries)
    variant.run += result.trajectories
    variant.beyond += result.beyond
    variant.failures += result.failures
    if result.final is not None:
        variant.finals.append(result.final)
    variant.enough = bool(request.until) and _good_enough(request, variant)


def merged(request: Request, a: tuple | None, b: tuple) -> tuple:
    """Summaries of two parts of a run."""
    return b if a is None else tuple(watcher.merge(x, y) for (_, watcher), x, y in zip(request.watchers, a, b, strict=True))


def _good_enough(request: Request, variant: Variant) -> bool:
    finished = variant.run - len(variant.failures)
    if finished < variant.look or variant.totals is None:
        return False
    while variant.look <= finished:
        variant.look = int(GROWTH * variant.look)
    errors = {name: watcher.error(total) for (name, watcher), total in zip(request.watchers, variant.totals, strict=True) if name in request.until}
    return all(errors[name] <= target for name, target in request.until.items())
