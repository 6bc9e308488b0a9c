"""Jobs given to workers elsewhere, who may die, hang or fail.

    give as many as there is room for  →  hear what comes  →  done: hand it on
                                                              lost or raised: give it again, at most so often
                                                              silent for long: end its worker, and the same

What holds for processes here and for clusters is said here once; a crew says how a job gets to a worker and how news come back.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, Self

from bismut.errors import DomainError, ProcessError
from bismut.executors.executor import Again, Failed, Line, Work, several
from bismut.executors.worker import packed

log = logging.getLogger(__name__)

_LISTEN = 0.2  # seconds between two looks at whether somebody wants to stop


class News(NamedTuple):
    """What is heard of a job.

    begun     a worker has begun it
    waiting   its worker is gone, and the crew finds another one
    told      it tells something on its way
    done      it has ended, with what it came to
    raised    it has ended with an exception: a `Raised`
    lost      its worker is gone: how that is known
    refused   no worker will ever do it: why
    """

    kind: Literal["begun", "waiting", "told", "done", "raised", "lost", "refused"]
    ticket: int
    content: Any = None


class Crew(Protocol):
    """Workers elsewhere."""

    def room(self) -> int:
        """How many more jobs may be given now."""
        ...

    def give(self, ticket: int, job: Any) -> None: ...

    def news(self, seconds: float) -> list[News]:
        """What has come; after so many seconds, nothing."""
        ...

    def end(self, ticket: int) -> None:
        """End the worker that has this job. It counts as lost already."""
        ...

    def stop(self) -> None:
        """Tell all jobs to stop when they can. May be said again."""
        ...

    def forget(self, ticket: int) -> None:
        """What the job came to was taken over: it need not be kept elsewhere."""
        ...

    def leave(self) -> None:
        """No more jobs come of this work; who is still at one is not waited for."""
        ...


class Elsewhere:
    """An executor whose workers are processes, here or on other machines. They stay for the next run until it is closed: `with Dask(...) as d:`."""

    elsewhere = True

    def __init__(self, attempts: int, patience: float):
        self.attempts, self.patience = several(attempts, "attempts"), patience
        if not (isinstance(patience, int | float) and patience > 0):
            raise DomainError(f"patience must be a positive number of seconds, got {patience!r}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that were begun here."""
        raise NotImplementedError

    def _crew(self, data: bytes) -> Crew:
        """The workers, who will do this work."""
        raise NotImplementedError

    def each(self, work: Work, jobs: Iterable[Any], line: Line) -> Iterator[tuple[Any, Any]]:
        crew = self._crew(packed(work))
        try:
            yield from supervised(crew, jobs, line, attempts=self.attempts, patience=self.patience)
        finally:
            crew.leave()


@dataclass
class _Given:
    job: Any
    attempts: int
    heard: float | None = None  # when; None before it was begun


def supervised(crew: Crew, jobs: Iterable[Any], line: Line, *, attempts: int, patience: float) -> Iterator[tuple[Any, Any]]:
    """(job, what it came to), as they come."""
    work = _Supervision(crew, iter(jobs), line, attempts, patience)
    while True:
        if line.stopped():
            work.stop()
        else:
            work.give()
        if work.ended:
            return
        yield from work.listen()


class _Supervision:
    """Jobs on their way: those given, by their tickets, and those to be given again."""

    def __init__(self, crew: Crew, jobs: Iterator[Any], line: Line, attempts: int, patience: float):
        self._crew, self._jobs, self._line, self._attempts, self._patience = crew, jobs, line, attempts, patience
        self._held: dict[int, _Given] = {}
        self._again: deque[_Given] = deque()
        self._number, self._more = 0, True
        self._now, self._listened = 0.0, time.monotonic()

    @property
    def ended(self) -> bool:
        return not (self._held or self._again or self._more)

    def stop(self) -> None:
        self._crew.stop()
        self._more = False
        self._again.clear()

    def give(self) -> None:
        while (self._again or self._more) and self._crew.room() > 0:
            given = self._again.popleft() if self._again else next((_Given(job, 0) for job in self._jobs), None)
            if given is None:
                self._more = False
                return
            self._number += 1
            self._held[self._number] = given
            self._crew.give(self._number, given.job)

    def listen(self) -> Iterator[tuple[Any, Any]]:
        came = self._crew.news(_LISTEN)
        silent = self._silent(came)  # before anything is handed on: who takes it may take long, and meanwhile nobody listens
        for kind, ticket, content in came:
            given = self._held.get(ticket)
            if given is None:
                continue  # of one that was taken for lost
            if kind == "refused":
                raise ProcessError(content)
            if kind == "told":
                self._line.tell(content)
            elif kind == "done":
                del self._held[ticket]
                if isinstance(content, Again):
                    self._line.tell(content.told)
                    self._again.append(_Given(content.job, 0))
                else:
                    yield given.job, content
                self._crew.forget(ticket)  # after it was handed on
            elif kind == "raised":
                log.debug("a job raised an exception:\n%s", content.trace)
                yield from self._failed(ticket, content.brief)
            elif kind == "lost":
                yield from self._failed(ticket, content, lost=True)
        for ticket in silent:
            self._crew.end(ticket)
            yield from self._failed(ticket, f"Its worker gave no sign of life for {self._patience:g} seconds, and was ended.", lost=True)

    def _silent(self, came: list[News]) -> list[int]:
        """Of whom nothing was heard for long. A driver that was away, busy or stopped by Ctrl-Z, first listens to what was said meanwhile."""
        before, self._listened = self._listened, time.monotonic()
        self._now += min(self._listened - before, self._patience / 2)
        for kind, ticket, _ in came:
            if given := self._held.get(ticket):
                given.heard = None if kind == "waiting" else self._now
        return [ticket for ticket, given in self._held.items() if given.heard is not None and self._now - given.heard > self._patience]

    def _failed(self, ticket: int, why: str, lost: bool = False) -> Iterator[tuple[Any, Any]]:
        """Another attempt, or none: a job that came back on its way (`Again`) was begun anew, so workers that die before anything is done are few."""
        given = self._held.pop(ticket)
        self._crew.forget(ticket)
        tried = given.attempts + 1
        log.debug("attempt %d of %d at a job failed: %s", tried, self._attempts, why)
        if tried >= self._attempts:
            yield given.job, Failed(tried, why, lost=lost)
        elif not self._line.stopped():
            self._again.append(_Given(given.job, tried))
