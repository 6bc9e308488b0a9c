"""Signals that end a process wait while something is being written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Ctrl-C, the end of a queue's time, a closed terminal; not all of them exist everywhere.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def held() -> Iterator[None]:
    """Within, signals are only noted; the first of them is delivered at the end. Python hears signals in its main thread, so others need nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before, within = {}, True

    def note(number: int, _: Any) -> None:
        if within:
            noted.append(number)
        else:  # another signal broke off the putting back below
            signal.signal(number, before[number])
            signal.raise_signal(number)

    try:
        for number in ENDING:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):  # nohup ignores SIGHUP, and that stays so
                before[number] = signal.signal(number, note)
        yield
    finally:
        within = False
        for number, handler in before.items():
            signal.signal(number, handler)
        if noted:
            signal.raise_signal(noted[0])
