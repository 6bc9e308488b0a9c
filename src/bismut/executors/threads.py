"""Jobs done by threads of this process, which share compiled programs. Whoever waits long enough in machine code leaves the interpreter alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, islice, takewhile
from queue import SimpleQueue
from typing import Any

from bismut.executors.executor import Failed, Line, Work, raised, several


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads:
    """An executor: threads of this process, by default as many as there are cores. A job that raises is not retried: it would raise again."""

    elsewhere = False

    def __init__(self, workers: int | None = None):
        self.workers = cores() if workers is None else several(workers, "workers of Threads")

    def __repr__(self) -> str:
        return f"Threads({self.workers})"

    def each(self, work: Work, jobs: Iterable[Any], line: Line) -> Iterator[tuple[Any, Any]]:
        """No more than twice as many jobs as workers are begun ahead, so whoever has seen enough can stop and little is wasted."""
        jobs = takewhile(lambda _: not line.stopped(), jobs)
        first = list(islice(jobs, 2))
        if self.workers == 1 or len(first) < 2:
            for job in chain(first, jobs):
                yield job, _done(work, job, line)
            return
        done: SimpleQueue[tuple[Any, Future]] = SimpleQueue()
        ahead: set[Future] = set()
        with _lent(self.workers) as pool:

            def begin(jobs: Iterable[Any]) -> None:
                for job in jobs:
                    future = pool.submit(_done, work, job, line)
                    ahead.add(future)
                    future.add_done_callback(lambda future, job=job: done.put((job, future)))

            try:
                begin((*first, *islice(jobs, 2 * self.workers - 2)))
                while ahead:
                    job, future = done.get()
                    ahead.remove(future)
                    yield job, future.result()
                    begin(islice(jobs, 1))
            finally:
                wait([future for future in ahead if not future.cancel()])


_idle: list[tuple[int, ThreadPoolExecutor]] = []  # one pool at the most, of the run that ended last
_lending = threading.Lock()


@contextmanager
def _lent(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads of one's own, those of the run before if they are free: starting them anew would take as long as a short run."""
    with _lending:
        known = _idle.pop() if _idle and _idle[0][0] == workers else None
    pool = known[1] if known else ThreadPoolExecutor(workers, "bismut")
    try:
        yield pool
    finally:
        with _lending:
            old, _idle[:] = list(_idle), [(workers, pool)]
        for _, one in old:
            one.shutdown()


def _done(work: Work, job: Any, line: Line) -> Any:
    try:
        return work(job, line)
    except Exception as problem:
        return Failed(1, raised(problem).brief, problem)
