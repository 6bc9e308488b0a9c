"""Who does jobs: one small interface.

    each(work, jobs, line)  ↦  (job, work(job, line))  for every job, as they come

An executor decides who does a job, where, and what happens when that goes wrong; it knows nothing of what jobs are. Work that leaves the process is
pickled once, by value where it is the user's own (cloudpickle), so lambdas and models travel as they are.
"""

from __future__ import annotations

import operator
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
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
    """A job that could not be done: how often it was tried, what came of the last time, the exception if it was raised here, and whether it was
    `lost` instead: its worker died or hung."""

    attempts: int
    why: str
    problem: Exception | None = None
    lost: bool = False


class Again(NamedTuple):
    """A job that came back before its end, to be gone on with as another one; `told` goes down the line first."""

    job: Any
    told: Any


class Raised(NamedTuple):
    """An exception that travels: in a line or two, and its traceback as a text."""

    brief: str
    trace: str


def raised(problem: BaseException) -> Raised:
    """An exception in words: type, first line, and the last place that is neither ours nor a library's."""
    said = str(problem).strip().splitlines()
    words = f"{type(problem).__name__}: {said[0][:_LONGEST]}" if said else type(problem).__name__
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith(_LIBRARIES)]
    where = f"\n  {own[-1].filename}, line {own[-1].lineno}, in {own[-1].name}" if own else ""
    return Raised(words + where, "".join(traceback.format_exception(problem)))


_LONGEST = 500  # letters of a message that are shown
_LIBRARIES = (
    *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).resolve().parents[1]),
    "<",  # frozen or generated
)


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
