"""Blocks of a run, worked on by as many threads as there are cores, given back in order."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Job = TypeVar("Job")
Found = TypeVar("Found")


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads:
    """An executor: threads of this process, which share compiled programs. Whoever waits long enough in machine code leaves the interpreter alone."""

    def __init__(self, workers: int | None = None):
        self.workers = workers or cores()

    def each(self, work: Callable[[Job], Found], jobs: Iterable[Job]) -> Generator[Found]:
        """work(job) for every job, in the order of the jobs.

        No more than twice as many jobs as workers are begun ahead, so whoever has seen enough can stop and little is wasted.
        """
        jobs = iter(jobs)
        first = list(islice(jobs, 2))
        if self.workers == 1 or len(first) < 2:
            for job in first:
                yield work(job)
            for job in jobs:
                yield work(job)
            return
        pool = ThreadPoolExecutor(self.workers)
        try:
            ahead = deque(pool.submit(work, job) for job in (*first, *islice(jobs, 2 * self.workers - 2)))
            while ahead:
                found = ahead.popleft().result()
                ahead.extend(pool.submit(work, job) for job in islice(jobs, 1))
                yield found
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
