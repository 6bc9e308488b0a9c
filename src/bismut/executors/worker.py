"""A worker process: reads work and jobs from its standard input, and writes events to what was its standard output.

It ends when its input does, so no process remains when the driver is killed. Signals that a terminal or a queue sends to all processes are left to
the driver, which asks its workers to stop.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
import traceback
from typing import Any, BinaryIO

from bismut.executors.executor import Channel, Work, raised
from bismut.operating_system import ignore_signals


class Worker:
    """The state of a worker: its last work, and whether to stop."""

    def __init__(self, source: BinaryIO, sink: BinaryIO):
        self._source, self._sink, self._writing = source, sink, threading.Lock()
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._data, self._work = b"", None

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        self.send("ready", 0)
        while True:
            kind, *content = self._jobs.get()
            if kind == "work":
                (data,) = content
                self._work = self._work if data == self._data else None  # with its compiled programs
                self._data = data
            else:
                self._do(*content)

    def send(self, kind: str, job_id: int, content: Any = None) -> None:
        data = pickle.dumps((kind, job_id, content), 5)
        with self._writing:
            self._sink.write(data)
            self._sink.flush()

    def _listen(self) -> None:
        while True:
            try:
                message = pickle.load(self._source)
            except (EOFError, OSError, pickle.UnpicklingError):
                os._exit(0)
            except Exception:  # such as a module that cannot be imported here: a worker that only waits would not be noticed
                traceback.print_exc()
                os._exit(1)
            if message[0] == "stop":
                self._stopped.set()
                continue
            if message[0] == "work":
                self._stopped.clear()
            self._jobs.put(message)

    def _do(self, job_id: int, job: Any) -> None:
        try:
            if self._work is None:
                self._work = unpacked(self._data)
        except Exception as problem:
            self.send("refused", job_id, refusal(problem))
            return
        try:
            channel = Channel(self._stopped.is_set, lambda message: self.send("message", job_id, message), threads=int(os.environ.get("NPROC", "1")))
            result = self._work(job, channel)
            self.send("done", job_id, result)  # which raises where that cannot be pickled
        except Exception as problem:
            self.send("raised", job_id, raised(problem))


def packed(work: Work) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(work, 5)


def unpacked(data: bytes) -> Work:
    return pickle.loads(data)


def refusal(problem: Exception) -> str:
    return f"A worker cannot take this work: {type(problem).__name__}: {problem}"


def main() -> None:
    ignore_signals()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a model must not be read as events
    Worker(sys.stdin.buffer, sink).run()
