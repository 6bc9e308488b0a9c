"""Log records of a run, at DEBUG: blocks as they are handed out and as they come back, logged by the driver for every executor.

bismut.ensembles.task     the engine that was chosen, and what was compiled
bismut.ensembles.block_log   blocks
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

from bismut.ensembles.block import BlockResult
from bismut.ensembles.journal import Job
from bismut.executors import Failed

log = logging.getLogger(__name__)


class BlockLog:
    """Logs the blocks of one run; `several` if they belong to several variants."""

    def __init__(self, several: bool):
        self._several, self._handed = several, {}

    def handed(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """The jobs, each logged as it is taken."""
        for job in jobs:
            self._handed[job.variant, job.block] = time.monotonic()
            log.debug("%s handed out%s", self._name(job), "" if job.begun is None else f", from step {job.begun.done}")
            yield job

    def came(self, job: Job, result: BlockResult | Failed | None) -> None:
        seconds = time.monotonic() - self._handed.pop((job.variant, job.block), time.monotonic())
        log.debug("%s %s after %.2f s", self._name(job), _ending(result), seconds)

    def _name(self, job: Job) -> str:
        return f"block {job.block} of variant {job.variant}" if self._several else f"block {job.block}"


def _ending(result: Any) -> str:
    if result is None:
        return "not begun"
    if isinstance(result, Failed):
        return f"could not be run, tried {result.attempts} times,"
    failed = f", {len(result.failures)} of them failed," if result.failures else ""
    return f"done: {result.trajectories} trajectories, {result.steps} steps{failed}"
