"""Ctrl-C, SIGTERM, SIGHUP and a limit of time: the first one stops at the next chunk and keeps what is complete, a second signal stops at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bismut.errors import WriteError

# Ctrl-C, the end of a queue's time, a closed terminal; not all of them exist everywhere.
HEARD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """A run was stopped before anything was complete; `cause` is the signal, or "time"."""

    def __init__(self, cause: str = ""):
        super().__init__("The run was interrupted before anything was complete.")
        self.cause = cause


class Stop:
    """Whether somebody asked the run to stop, and who: the name of a signal, "time" from the deadline on, a full "disk", or "workers" that die."""

    def __init__(self, deadline: float | None = None):
        self.cause, self._deadline = "", deadline
        self._before, self._within = {}, True

    @property
    def asked(self) -> bool:
        if not self.cause and self._deadline is not None and time.monotonic() >= self._deadline:
            self.cause = "time"
        return bool(self.cause)

    def when_full(self, write: Callable[..., None]) -> Callable[..., None]:
        """The same verb; but where the disk takes nothing more, the run is asked to stop, and what is in memory is not lost."""

        def writing(*what: Any) -> None:
            try:
                write(*what)
            except WriteError:
                self.cause = self.cause or "disk"

        return writing

    @contextmanager
    def on_error(self) -> Iterator[None]:
        """Within, an error asks those who run blocks to stop, so that nobody waits for hours to hear of it."""
        try:
            yield
        except BaseException:
            self.cause = self.cause or "error"
            raise

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in HEARD:
                if signal.getsignal(number) not in (None, signal.SIG_IGN):  # nohup ignores SIGHUP, and that stays so
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def _hear(self, number, frame):
        if not self._within:  # another signal broke off the putting back below
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
