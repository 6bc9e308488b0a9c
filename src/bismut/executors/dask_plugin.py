"""The code in a worker of Dask: work arrives once, before its first job, and stays until its run has ended.

It is not sent as a dependency of tasks, because Dask keeps tasks on workers that already have their dependencies.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any

from distributed import WorkerPlugin, get_worker

from bismut.executors.executor import Channel, Work, raised
from bismut.executors.worker import refusal, unpacked
from bismut.operating_system import ignore_signals

_DATA: dict[str, bytes] = {}
_WORK: dict[str, Work] = {}
_STOPPED: set[str] = set()
_OPENING = threading.Lock()


class WorkPlugin(WorkerPlugin):
    """The work of a run. Dask sends it to every worker, also to those that join later. Workers that the driver started ignore signals,
    which a terminal sends to all processes: the driver asks them to stop."""

    def __init__(self, run: str, data: bytes, ignores_signals: bool):
        self.name, self.data, self.ignores_signals = run, data, ignores_signals

    def setup(self, worker: Any) -> None:
        _DATA[self.name] = self.data
        if self.ignores_signals and threading.current_thread() is threading.main_thread():
            ignore_signals()

    def teardown(self, worker: Any) -> None:
        for table in (_DATA, _WORK):
            table.pop(self.name, None)
        _STOPPED.discard(self.name)


async def stop(run: str) -> None:
    """Not waited for, which Dask allows coroutines alone."""
    _STOPPED.add(run)


async def kill(dask_worker: Any) -> None:
    """In the nanny of a worker: end its process."""
    await dask_worker.process.process.kill()


def do(run: str, job_id: int, job: Any, every: float) -> tuple[str, Any]:
    """The event of a job that has ended, and its content."""
    worker = get_worker()
    send = lambda kind, content: worker.log_event(run, pickle.dumps((kind, job_id, content), 5))
    send("begun", worker.address)
    task = worker.state.tasks.get(f"{run}-{job_id}")
    # A driver that was killed cannot ask the job to stop, but then Dask cancels the task.
    stopped = lambda: run in _STOPPED or (task is not None and task.state == "cancelled")
    try:
        work = _opened(run)
    except Exception as problem:
        return "refused", refusal(problem)
    threads = max(1, worker.state.nthreads // max(1, worker.state.executing_count))
    try:
        return "done", work(job, Channel(stopped, lambda message: send("message", message), every, threads))
    except Exception as problem:
        return "raised", raised(problem)


def _opened(run: str) -> Work:
    with _OPENING:
        if run not in _WORK:
            _WORK[run] = unpacked(_DATA[run])
        return _WORK[run]
