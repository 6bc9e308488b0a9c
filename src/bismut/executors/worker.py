"""A worker process: reads work and jobs from its standard input, and writes news to what was its standard output.

It ends when its input does, so nobody is left behind when the driver is killed. Signals that a terminal or a queue sends to everybody are left to the
driver, which tells its workers to stop.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from typing import Any, BinaryIO

from bismut.executors.executor import Line, Work, raised


class Worker:
    """What a worker knows: the work it was given last, and whether to stop."""

    def __init__(self, source: BinaryIO, sink: BinaryIO):
        self._source, self._sink, self._writing = source, sink, threading.Lock()
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._data, self._work = b"", None

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        self.say("ready", 0)
        while True:
            kind, *content = self._jobs.get()
            if kind == "work":
                (data,) = content
                self._work = self._work if data == self._data else None  # what it has compiled stays
                self._data = data
            else:
                self._do(*content)

    def say(self, kind: str, ticket: int, content: Any = None) -> None:
        data = pickle.dumps((kind, ticket, content), 5)
        with self._writing:
            self._sink.write(data)
            self._sink.flush()

    def _listen(self) -> None:
        while True:
            try:
                message = pickle.load(self._source)
            except (EOFError, OSError, pickle.UnpicklingError):
                os._exit(0)
            except Exception:  # such as a module that cannot be imported here: nobody would hear of a worker that only waits
                traceback.print_exc()
                os._exit(1)
            if message[0] == "stop":
                self._stopped.set()
                continue
            if message[0] == "work":
                self._stopped.clear()
            self._jobs.put(message)

    def _do(self, ticket: int, job: Any) -> None:
        try:
            if self._work is None:
                self._work = unpacked(self._data)
        except Exception as problem:
            self.say("refused", ticket, refusal(problem))
            return
        try:
            found = self._work(job, Line(self._stopped.is_set, lambda message: self.say("told", ticket, message)))
            self.say("done", ticket, found)  # which raises where that cannot be pickled
        except Exception as problem:
            self.say("raised", ticket, raised(problem))


def packed(work: Work) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(work, 5)


def unpacked(data: bytes) -> Work:
    return pickle.loads(data)


def refusal(problem: Exception) -> str:
    return f"A worker cannot take this work: {type(problem).__name__}: {problem}"


def ignore_signals() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def main() -> None:
    ignore_signals()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not be taken for news
    Worker(sys.stdin.buffer, sink).run()
