"""What runs in a worker of Dask: work is delivered once, before its first job, and kept until its run has ended."""

from __future__ import annotations

import pickle
import threading
from typing import Any

from distributed import WorkerPlugin, get_worker

from bismut.executors.executor import Line, Work, raised
from bismut.executors.worker import ignore_signals, refusal, unpacked

_DELIVERED: dict[str, bytes] = {}
_OPENED: dict[str, Work] = {}
_STOPPED: set[str] = set()
_OPENING = threading.Lock()


class Delivery(WorkerPlugin):
    """The work of a run. Dask brings it to every worker that is there, and to every one that comes. Workers that were begun by the driver are deaf to
    signals that a terminal sends to everybody: the driver tells them to stop."""

    def __init__(self, run: str, data: bytes, deaf: bool):
        self.name, self.data, self.deaf = run, data, deaf

    def setup(self, worker: Any) -> None:
        _DELIVERED[self.name] = self.data
        if self.deaf and threading.current_thread() is threading.main_thread():
            ignore_signals()

    def teardown(self, worker: Any) -> None:
        for table in (_DELIVERED, _OPENED):
            table.pop(self.name, None)
        _STOPPED.discard(self.name)


async def stop(run: str) -> None:
    """Not waited for, which Dask allows coroutines alone."""
    _STOPPED.add(run)


async def kill(dask_worker: Any) -> None:
    """In the nanny of a worker: end its process."""
    await dask_worker.process.process.kill()


def do(run: str, ticket: int, job: Any, every: float) -> tuple[str, Any]:
    """What a job came to, or the text of what went wrong."""
    worker = get_worker()
    say = lambda kind, content: worker.log_event(run, pickle.dumps((kind, ticket, content), 5))
    say("begun", worker.address)
    task = worker.state.tasks.get(f"{run}-{ticket}")
    # A driver that was killed cannot say that it has lost interest, but then Dask takes the task back.
    stopped = lambda: run in _STOPPED or (task is not None and task.state == "cancelled")
    try:
        work = _opened(run)
    except Exception as problem:
        return "refused", refusal(problem)
    try:
        return "done", work(job, Line(stopped, lambda message: say("told", message), every))
    except Exception as problem:
        return "raised", raised(problem)


def _opened(run: str) -> Work:
    with _OPENING:
        if run not in _OPENED:
            _OPENED[run] = unpacked(_DELIVERED[run])
        return _OPENED[run]
