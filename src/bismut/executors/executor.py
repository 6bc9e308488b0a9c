"""Who does jobs: one small interface.

    each(work, jobs, line)  ↦  (job, work(job, line))  for every job, as they come

An executor decides who does a job, where, and what happens when that goes wrong; it knows nothing of what jobs are. Work that leaves the process is
pickled once, by value where it is the user's own (cloudpickle), so lambdas and models travel as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bismut.errors import DomainError

ATTEMPTS = 3  # how often a job is tried where workers may die
PATIENCE = 600.0  # seconds without a sign of life after which a worker is taken for hung; the first sign comes when programs are compiled


class Line(NamedTuple):
    """The line between a job and whoever asked for it: whether it is to stop, what it tells on its way, and how many seconds apart at least."""

    stopped: Callable[[], bool] = lambda: False
    tell: Callable[[Any], None] = lambda message: None
    every: float = 0.0


class Failed(NamedTuple):
    """A job that could not be done: how often it was tried, and what came of the last time."""

    attempts: int
    why: str
    problem: Exception | None = None


class Again(NamedTuple):
    """A job that came back before its end, to be gone on with as another one; `told` goes down the line first."""

    job: Any
    told: Any


Work = Callable[[Any, Line], Any]


def several(value: Any, what: str) -> int:
    """A number of workers or attempts."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise DomainError(f"{what} must be a whole number ≥ 1, got {value!r}.")
    return number


@runtime_checkable
class Executor(Protocol):
    """Does jobs, several at a time if it can, and begins few of them ahead. What could not be done is given back as `Failed`; the others go on."""

    @property
    def elsewhere(self) -> bool:
        """Whether jobs leave this process."""
        ...

    def each(self, work: Work, jobs: Iterable[Any], line: Line) -> Iterator[tuple[Any, Any]]: ...
