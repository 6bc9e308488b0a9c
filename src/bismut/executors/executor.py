"""The interface of executors.

    each(work, jobs, channel)  ↦  (job, work(job, channel))  for every job, as they end

An executor decides where a job runs and what happens when that fails; it knows nothing of what jobs are. Work that leaves the process is pickled
once, by value where it is the user's own (cloudpickle), so lambdas and models can be sent.
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
PATIENCE = 600.0  # seconds without a message after which a worker counts as hung; the first message comes when programs are compiled


class Channel(NamedTuple):
    """The channel between a job and the driver: whether to stop, where messages go, the least time between them in seconds, and how many threads the
    job may use."""

    stopped: Callable[[], bool] = lambda: False
    send: Callable[[Any], None] = lambda message: None
    every: float = 0.0
    threads: int = 1


class Failed(NamedTuple):
    """A job that could not be done: how often it was tried, why the last attempt failed, the exception if it was raised in this process, and whether
    its worker died or hung (`lost`)."""

    attempts: int
    why: str
    problem: Exception | None = None
    lost: bool = False


class Unfinished(NamedTuple):
    """A job handed back before its end, to be continued as another one; `message` is sent through the channel first."""

    job: Any
    message: Any


class Raised(NamedTuple):
    """An exception as text, to be sent: a line or two, and its traceback."""

    brief: str
    trace: str


def raised(problem: BaseException) -> Raised:
    """An exception as text: type, first line of its message, and the last place that is neither ours nor a library's."""
    lines = str(problem).strip().splitlines()
    brief = f"{type(problem).__name__}: {lines[0][:_LONGEST]}" if lines else type(problem).__name__
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith(_LIBRARIES)]
    where = f"\n  {own[-1].filename}, line {own[-1].lineno}, in {own[-1].name}" if own else ""
    return Raised(brief + where, "".join(traceback.format_exception(problem)))


_LONGEST = 500  # characters of a message that are shown
_LIBRARIES = (
    *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).resolve().parents[1]),
    "<",  # frozen or generated
)


Work = Callable[[Any, Channel], Any]


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
    """Runs jobs, several at a time if it can, and takes few of them ahead. A job that cannot be done is returned as `Failed`; the others continue."""

    @property
    def remote(self) -> bool:
        """Whether jobs run in other processes."""
        ...

    def each(self, work: Work, jobs: Iterable[Any], channel: Channel) -> Iterator[tuple[Any, Any]]: ...
