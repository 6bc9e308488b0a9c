"""Jobs done by processes of this machine.

Processes are begun afresh, never forked, talk through pipes, and run no file of the user again, so a script needs no `if __name__ == "__main__"`. One
that dies is replaced. They stay for the next run, with what they have compiled, until the executor is closed or forgotten.
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
from bismut.executors.supervision import Crew, Elsewhere, News
from bismut.executors.threads import cores

_BEGIN = "import sys; sys.path[:] = {path!r}; from bismut.executors.worker import main; main()"

_DYING = 5.0  # seconds for a killed process to be gone


class Processes(Elsewhere):
    """An executor: processes of this machine, each with its share of the cores.

    workers     how many
    attempts    how often a block is tried before it is reported as failed
    patience    seconds without a sign of life after which a process is terminated and its block given to another
    """

    def __init__(self, workers: int = 2, *, attempts: int = ATTEMPTS, patience: float = PATIENCE):
        super().__init__(attempts, patience)
        self.workers = several(workers, "workers of Processes")
        self._pool = _Pool(self.workers)
        self._finalizer = weakref.finalize(self, self._pool.close)

    def __repr__(self) -> str:
        return f"Processes({self.workers})"

    def close(self) -> None:
        """End the processes; the next run would begin new ones."""
        self._pool.close()

    def _crew(self, data: bytes) -> Crew:
        self._pool.take(data)
        return self._pool


class _Process:
    """One process, and the job it has."""

    def __init__(self, threads: int, heard: queue.SimpleQueue):
        share = {name: str(threads) for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        command = [sys.executable, "-c", _BEGIN.format(path=sys.path)]
        self.works = 0
        self.ticket: int | None = None
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | share)
        self._outbox: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()
        threading.Thread(target=self._talk, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, *message: Any) -> None:
        """Put into its letter box: a process that hangs does not read, and nobody should wait for it here."""
        self._outbox.put(message)

    def _talk(self) -> None:
        sink = self._process.stdin
        assert sink is not None
        with contextlib.suppress(OSError, ValueError):  # it is dead, and whoever listens to it hears so
            while (message := self._outbox.get()) is not None:
                pickle.dump(message, sink, 5)
                sink.flush()

    def _listen(self, heard: queue.SimpleQueue) -> None:
        source, ready = self._process.stdout, False
        assert source is not None
        while True:
            try:
                kind, ticket, content = pickle.load(source)
            except Exception as problem:
                if not isinstance(problem, EOFError | OSError | pickle.UnpicklingError):  # else it died, perhaps in the middle of a word
                    traceback.print_exc()  # such as a module that cannot be imported here: what follows is not understood, either
                    self._process.kill()
                code = self._process.wait()
                heard.put((self, "gone", ready, code))
                return
            ready = True
            if kind != "ready":
                heard.put((self, kind, ticket, content))

    def end(self) -> None:
        self._outbox.put(None)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits for a disk that is gone cannot be killed until it is back
            self._process.wait(_DYING)


class _Pool:
    """The processes: a crew."""

    def __init__(self, workers: int):
        self._workers, self._threads = workers, max(1, cores() // workers)
        self._all: list[_Process] = []
        self._heard: queue.SimpleQueue = queue.SimpleQueue()
        self._data, self._works = b"", 0
        self._taken = threading.Lock()

    def take(self, data: bytes) -> None:
        """From now on this work is done, until it is left."""
        if not self._taken.acquire(blocking=False):
            raise ProcessError("These processes are at work for another run, with which this one would be mixed up. Use another Processes(n).")
        self._data, self._works = data, self._works + 1

    def leave(self) -> None:
        """Whoever is still at work is ended: nobody waits for it."""
        try:
            for process in [process for process in self._all if process.ticket is not None]:
                self._drop(process)
        finally:
            self._taken.release()

    def close(self) -> None:
        for process in list(self._all):
            self._drop(process)

    def room(self) -> int:
        return self._workers - sum(process.ticket is not None for process in self._all)

    def give(self, ticket: int, job: Any) -> None:
        process = next((process for process in self._all if process.ticket is None), None)
        if process is None:
            process = _Process(self._threads, self._heard)
            self._all.append(process)
        if process.works != self._works:
            process.say("work", self._data)
            process.works = self._works
        process.ticket = ticket
        process.say("job", ticket, job)
        self._heard.put((process, "begun", ticket, None))  # the clock runs from here, whether or not it ever reads this

    def news(self, seconds: float) -> list[News]:
        found: list[News] = []
        try:
            found += self._read(self._heard.get(timeout=seconds))
            while True:
                found += self._read(self._heard.get_nowait())
        except queue.Empty:
            return found

    def _read(self, heard: tuple) -> list[News]:
        process, kind, *content = heard
        if process not in self._all:
            return []
        if kind != "gone":
            ticket, what = content
            if kind in ("done", "raised", "refused"):
                process.ticket = None
            return [News(kind, ticket, what)]
        ready, code = content
        ticket = process.ticket
        self._drop(process)
        if ticket is None:
            return []
        if not ready and code > 0:
            return [News("refused", ticket, f"A worker process ended before it was ready, with exit code {code}; its output is above.")]
        return [News("lost", ticket, f"Its worker, process {process.pid}, died ({_death(code)}).")]

    def end(self, ticket: int) -> None:
        for process in [process for process in self._all if process.ticket == ticket]:
            self._drop(process)

    def stop(self) -> None:
        for process in self._all:
            process.say("stop")

    def forget(self, ticket: int) -> None:
        del ticket

    def _drop(self, process: _Process) -> None:
        self._all.remove(process)
        process.end()


def _death(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
