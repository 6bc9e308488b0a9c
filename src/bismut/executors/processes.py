"""Jobs in processes of this machine.

Processes are spawned, never forked, communicate through pipes, and do not import the user's script, so it needs no `if __name__ == "__main__"`. One
that dies is replaced. They stay for the next run, with their compiled programs, until the executor is closed or collected.

A pool of the standard library ends with its first killed worker, and a local cluster of Dask brings some seventeen packages; two pipes and two
threads for each process need neither.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
import weakref
from typing import Any

from bismut.errors import ProcessError
from bismut.executors.executor import ATTEMPTS, PATIENCE, several
from bismut.executors.supervision import Event, RemoteExecutor, WorkerPool, drain
from bismut.executors.threads import cores

_BEGIN = "import sys; sys.path[:] = {path!r}; from bismut.executors.worker import main; main()"

_DYING = 5.0  # seconds for a killed process to be gone


class Processes(RemoteExecutor):
    """An executor: processes of this machine, each with its share of the cores.

    workers     how many
    attempts    how often a block is tried before it is reported as failed
    patience    seconds without a sign of life after which a process is terminated and its block given to another
    """

    def __init__(self, workers: int = 2, *, attempts: int = ATTEMPTS, patience: float = PATIENCE):
        super().__init__(attempts, patience)
        self.workers = several(workers, "workers of Processes")
        self._pool = _ProcessPool(self.workers)
        self._finalizer = weakref.finalize(self, self._pool.close)

    def __repr__(self) -> str:
        return f"Processes({self.workers})"

    def close(self) -> None:
        """End the processes; the next run would start new ones."""
        self._pool.close()

    def _worker_pool(self, data: bytes) -> WorkerPool:
        self._pool.take(data)
        return self._pool


class _Process:
    """One process, and the job it has."""

    def __init__(self, threads: int, heard: queue.SimpleQueue):
        share = {name: str(threads) for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        command = [sys.executable, "-c", _BEGIN.format(path=sys.path)]
        self.works = 0
        self.job_id: int | None = None
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | share)
        self._outbox: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()
        threading.Thread(target=self._talk, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *message: Any) -> None:
        """Queue a message: a process that hangs does not read, and must not block the driver."""
        self._outbox.put(message)

    def _talk(self) -> None:
        sink = self._process.stdin
        assert sink is not None
        with contextlib.suppress(OSError, ValueError):  # it is dead, which `_listen` notices
            while (message := self._outbox.get()) is not None:
                pickle.dump(message, sink, 5)
                sink.flush()

    def _listen(self, heard: queue.SimpleQueue) -> None:
        source, ready = self._process.stdout, False
        assert source is not None
        while True:
            try:
                kind, job_id, content = pickle.load(source)
            except Exception as problem:
                if not isinstance(problem, EOFError | OSError | pickle.UnpicklingError):  # else it died, perhaps in the middle of a message
                    traceback.print_exc()  # such as a module that cannot be imported here: what follows cannot be read, either
                    self._process.kill()
                code = self._process.wait()
                heard.put((self, "gone", ready, code))
                return
            ready = True
            if kind != "ready":
                heard.put((self, kind, job_id, content))

    def end(self) -> None:
        self._outbox.put(None)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits for a disk that is gone cannot be killed before it returns
            self._process.wait(_DYING)


class _ProcessPool:
    """The processes."""

    def __init__(self, workers: int):
        self._workers, self._threads = workers, max(1, cores() // workers)
        self._all: list[_Process] = []
        self._heard: queue.SimpleQueue = queue.SimpleQueue()
        self._data, self._works = b"", 0
        self._taken = threading.Lock()

    def take(self, data: bytes) -> None:
        """Do this work from now on, until `disconnect`."""
        if not self._taken.acquire(blocking=False):
            raise ProcessError("These processes are at work for another run, with which this one would be mixed up. Use another Processes(n).")
        self._data, self._works = data, self._works + 1

    def disconnect(self) -> None:
        """Processes that are still at work are ended."""
        try:
            for process in [process for process in self._all if process.job_id is not None]:
                self._drop(process)
        finally:
            self._taken.release()

    def close(self) -> None:
        for process in list(self._all):
            self._drop(process)

    def free_slots(self) -> int:
        return self._workers - sum(process.job_id is not None for process in self._all)

    def submit(self, job_id: int, job: Any) -> None:
        process = next((process for process in self._all if process.job_id is None), None)
        if process is None:
            process = _Process(self._threads, self._heard)
            self._all.append(process)
        if process.works != self._works:
            process.send("work", self._data)
            process.works = self._works
        process.job_id = job_id
        process.send("job", job_id, job)
        self._heard.put((process, "begun", job_id, None))  # the time of patience starts here, whether or not it ever reads this

    def events(self, seconds: float) -> list[Event]:
        return drain(self._heard, seconds, self._read)

    def _read(self, heard: tuple) -> list[Event]:
        process, kind, *content = heard
        if process not in self._all:
            return []
        if kind != "gone":
            job_id, what = content
            if kind in ("done", "raised", "refused"):
                process.job_id = None
            return [Event(kind, job_id, what)]
        ready, code = content
        job_id = process.job_id
        self._drop(process)
        if job_id is None:
            return []
        if not ready and code > 0:
            return [Event("refused", job_id, f"A worker process ended before it was ready, with exit code {code}; its output is above.")]
        return [Event("lost", job_id, f"Its worker, process {process.pid}, died ({_death(code)}).")]

    def kill(self, job_id: int) -> None:
        for process in [process for process in self._all if process.job_id == job_id]:
            self._drop(process)

    def stop(self) -> None:
        for process in self._all:
            process.send("stop")

    def release(self, job_id: int) -> None:
        del job_id

    def _drop(self, process: _Process) -> None:
        self._all.remove(process)
        process.end()


def _death(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
