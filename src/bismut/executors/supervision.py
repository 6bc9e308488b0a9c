"""Jobs in other processes, whose workers may die, hang or fail.

    submit while slots are free  →  wait for events  →  done: yield the result
                                                        lost or raised: submit it again, up to a number of attempts
                                                        silent for too long: kill its worker, and the same

The rules are the same for processes of this machine and for clusters; a `WorkerPool` sends jobs to workers and collects their events.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, Protocol, Self

from bismut.errors import DomainError, ProcessError
from bismut.executors.executor import Channel, Failed, Unfinished, Work, several
from bismut.executors.worker import packed

log = logging.getLogger(__name__)

_LISTEN = 0.2  # seconds between two checks whether to stop


class Event(NamedTuple):
    """An event of a job.

    begun     a worker has begun it
    waiting   its worker is gone, and the pool will assign another one
    message   that it sends while it runs
    done      its result
    raised    its exception, a `Raised`
    lost      its worker is gone: how that is known
    refused   no worker can ever do it: why
    """

    kind: Literal["begun", "waiting", "message", "done", "raised", "lost", "refused"]
    job_id: int
    content: Any = None


class WorkerPool(Protocol):
    """Workers in other processes."""

    def free_slots(self) -> int:
        """How many more jobs may be submitted now."""
        ...

    def submit(self, job_id: int, job: Any) -> None: ...

    def events(self, seconds: float) -> list[Event]:
        """The events that have arrived; empty if none does within so many seconds."""
        ...

    def kill(self, job_id: int) -> None:
        """Kill the worker that has this job. The job counts as lost already."""
        ...

    def stop(self) -> None:
        """Ask all jobs to stop when they can. May be called repeatedly."""
        ...

    def release(self, job_id: int) -> None:
        """The result of the job has been taken over: workers may free it."""
        ...

    def disconnect(self) -> None:
        """This work has no more jobs; those that still run are not waited for."""
        ...


class RemoteExecutor:
    """An executor whose workers are processes, of this machine or of others. They stay for the next run until closed: `with Dask(...) as d:`."""

    remote = True

    def __init__(self, attempts: int, patience: float):
        self.attempts, self.patience = several(attempts, "attempts"), patience
        if not (isinstance(patience, int | float) and patience > 0):
            raise DomainError(f"patience must be a positive number of seconds, got {patience!r}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that it started."""
        raise NotImplementedError

    def _worker_pool(self, data: bytes) -> WorkerPool:
        """The workers, with this work to do."""
        raise NotImplementedError

    def each(self, work: Work, jobs: Iterable[Any], channel: Channel) -> Iterator[tuple[Any, Any]]:
        pool = self._worker_pool(packed(work))
        try:
            yield from supervised(pool, jobs, channel, attempts=self.attempts, patience=self.patience)
        finally:
            pool.disconnect()


def drain(queue: SimpleQueue, seconds: float, read: Callable[[Any], list[Event]]) -> list[Event]:
    """The events of all messages in a queue; empty if none arrives within so many seconds."""
    events: list[Event] = []
    try:
        events += read(queue.get(timeout=seconds))
        while True:
            events += read(queue.get_nowait())
    except Empty:
        return events


@dataclass
class _Pending:
    job: Any
    attempts: int
    last_event: float | None = None  # time of its last event; None before it was begun


def supervised(pool: WorkerPool, jobs: Iterable[Any], channel: Channel, *, attempts: int, patience: float) -> Iterator[tuple[Any, Any]]:
    """(job, result), as they end."""
    work = _Supervision(pool, iter(jobs), channel, attempts, patience)
    while True:
        if channel.stopped():
            work.stop()
        else:
            work.submit()
        if work.ended:
            return
        yield from work.listen()


class _Supervision:
    """Jobs in progress: those submitted, by their job_id, and those to be submitted again."""

    def __init__(self, pool: WorkerPool, jobs: Iterator[Any], channel: Channel, attempts: int, patience: float):
        self._pool, self._jobs, self._channel, self._attempts, self._patience = pool, jobs, channel, attempts, patience
        self._submitted: dict[int, _Pending] = {}
        self._retries: deque[_Pending] = deque()
        self._number, self._more = 0, True
        self._now, self._listened = 0.0, time.monotonic()

    @property
    def ended(self) -> bool:
        return not (self._submitted or self._retries or self._more)

    def stop(self) -> None:
        self._pool.stop()
        self._more = False
        self._retries.clear()

    def submit(self) -> None:
        while (self._retries or self._more) and self._pool.free_slots() > 0:
            pending = self._retries.popleft() if self._retries else next((_Pending(job, 0) for job in self._jobs), None)
            if pending is None:
                self._more = False
                return
            self._number += 1
            self._submitted[self._number] = pending
            self._pool.submit(self._number, pending.job)

    def listen(self) -> Iterator[tuple[Any, Any]]:
        came = self._pool.events(_LISTEN)
        silent = self._silent(came)  # before anything is yielded: the consumer may take long, and events wait meanwhile
        for kind, job_id, content in came:
            pending = self._submitted.get(job_id)
            if pending is None:
                continue  # already declared lost
            if kind == "refused":
                raise ProcessError(content)
            if kind == "message":
                self._channel.send(content)
            elif kind == "done":
                del self._submitted[job_id]
                if isinstance(content, Unfinished):
                    self._channel.send(content.message)
                    self._retries.append(_Pending(content.job, 0))
                else:
                    yield pending.job, content
                self._pool.release(job_id)  # after it was yielded
            elif kind == "raised":
                log.debug("a job raised an exception:\n%s", content.trace)
                yield from self._failed(job_id, content.brief)
            elif kind == "lost":
                yield from self._failed(job_id, content, lost=True)
        for job_id in silent:
            self._pool.kill(job_id)
            yield from self._failed(job_id, f"Its worker gave no sign of life for {self._patience:g} seconds, and was ended.", lost=True)

    def _silent(self, came: list[Event]) -> list[int]:
        """Jobs without an event for too long. A driver that was busy, or stopped by Ctrl-Z, first reads what arrived meanwhile."""
        before, self._listened = self._listened, time.monotonic()
        self._now += min(self._listened - before, self._patience / 2)
        for kind, job_id, _ in came:
            if pending := self._submitted.get(job_id):
                pending.last_event = None if kind == "waiting" else self._now
        return [
            job_id
            for job_id, pending in self._submitted.items()
            if pending.last_event is not None and self._now - pending.last_event > self._patience
        ]

    def _failed(self, job_id: int, why: str, lost: bool = False) -> Iterator[tuple[Any, Any]]:
        """Another attempt, or none. A job that came back on its way (`Unfinished`) starts counting anew."""
        pending = self._submitted.pop(job_id)
        self._pool.release(job_id)
        tried = pending.attempts + 1
        log.debug("attempt %d of %d at a job failed: %s", tried, self._attempts, why)
        if tried >= self._attempts:
            yield pending.job, Failed(tried, why, lost=lost)
        elif not self._channel.stopped():
            self._retries.append(_Pending(pending.job, tried))
