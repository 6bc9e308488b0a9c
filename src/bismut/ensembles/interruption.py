"""Interruption by SIGINT, SIGTERM, SIGHUP or a time limit: the first stops at the next chunk and keeps what is complete, a second aborts."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bismut.errors import WriteError
from bismut.operating_system import heeded

_MARGIN, _SHARE = 10.0, 0.05  # seconds, and part of a limit of time, that are left for the last chunk and the last commit


def deadline_after(seconds: float | None, began: float | None = None) -> float | None:
    """The time of `time.monotonic` at which a run that may take so long is to stop: a little before, for the last commit."""
    if seconds is None:
        return None
    return (time.monotonic() if began is None else began) + seconds - min(_MARGIN, _SHARE * seconds)


class Interrupted(KeyboardInterrupt):
    """A run was stopped before anything was complete; `cause` is the signal, or "time"."""

    def __init__(self, cause: str = ""):
        super().__init__("The run was interrupted before anything was complete.")
        self.cause = cause


def interrupt_of(cause: str) -> KeyboardInterrupt:
    """The interrupt of a measurement, with the number of its signal, if it was one."""
    return KeyboardInterrupt(*([int(signal.Signals[cause])] if cause in signal.Signals.__members__ else []))


class Stop:
    """Whether the run is to stop, and why: the name of a signal, "time" from the deadline on, a full "disk", or "workers" that die."""

    def __init__(self, deadline: float | None = None):
        self.cause, self._deadline = "", deadline
        self._before, self._within = {}, True

    @property
    def asked(self) -> bool:
        if not self.cause and self._deadline is not None and time.monotonic() >= self._deadline:
            self.cause = "time"
        return bool(self.cause)

    def when_full(self, write: Callable[..., None]) -> Callable[..., None]:
        """The same function; but if the disk is full, the run is asked to stop, and what is in memory is not lost."""

        def writing(*what: Any) -> None:
            try:
                write(*what)
            except WriteError:
                self.cause = self.cause or "disk"

        return writing

    @contextmanager
    def on_error(self) -> Iterator[None]:
        """Within, an error asks running blocks to stop, so that it is reported at once."""
        try:
            yield
        except BaseException:
            self.cause = self.cause or "error"
            raise

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in heeded():
                self._before[number] = signal.signal(number, self._hear)
        return self

    def _hear(self, number, frame):
        if not self._within:  # another signal interrupted the restoring below
            signal.signal(number, self._before[number])
            signal.raise_signal(number)
            return
        if self.cause and self.cause != "time":
            raise KeyboardInterrupt
        self.cause = signal.Signals(number).name

    def __exit__(self, *problem):
        self._within = False
        for number, handler in self._before.items():
            signal.signal(number, handler)
