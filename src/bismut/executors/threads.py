"""Jobs in threads of this process, which share compiled programs. Machine code releases the interpreter's lock.

Many jobs get a thread each; few share all threads, several of which then work on one trajectory of many bodies.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, islice, takewhile
from queue import SimpleQueue
from typing import Any

from bismut.executors.executor import Channel, Failed, Work, raised, several
from bismut.operating_system import cores


class Threads:
    """An executor: threads of this process, by default as many as there are cores. A job that raises is not retried: it would raise again."""

    remote = False

    def __init__(self, workers: int | None = None):
        self.workers = cores() if workers is None else several(workers, "workers of Threads")

    def __repr__(self) -> str:
        return f"Threads({self.workers})"

    def each(self, work: Work, jobs: Iterable[Any], channel: Channel) -> Iterator[tuple[Any, Any]]:
        """No more than twice as many jobs as workers are taken ahead, so that little is wasted if the consumer stops."""
        jobs = takewhile(lambda _: not channel.stopped(), jobs)
        first = list(islice(jobs, self.workers + 1))
        channel = channel._replace(threads=max(1, self.workers // max(1, len(first))))
        if self.workers == 1 or len(first) < 2:
            for job in chain(first, jobs):
                yield job, _done(work, job, channel)
            return
        done: SimpleQueue[tuple[Any, Future]] = SimpleQueue()
        ahead: set[Future] = set()
        with _lent(self.workers) as pool:

            def begin(jobs: Iterable[Any]) -> None:
                for job in jobs:
                    future = pool.submit(_done, work, job, channel)
                    ahead.add(future)
                    future.add_done_callback(lambda future, job=job: done.put((job, future)))

            try:
                begin((*first, *islice(jobs, 2 * self.workers - len(first))))
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
    """A pool for one run, that of the run before if it is free: starting threads would take as long as a short run."""
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


def _done(work: Work, job: Any, channel: Channel) -> Any:
    try:
        return work(job, channel)
    except Exception as problem:
        return Failed(1, raised(problem).brief, problem)
