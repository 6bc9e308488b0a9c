"""Ctrl-C, SIGTERM and SIGHUP: the first one stops at the next chunk and keeps what is complete, the second stops at once."""

import signal
import threading

# Ctrl-C, the end of a queue's time, a closed terminal; not all of them exist everywhere.
HEARD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stop:
    """Whether somebody asked the run to stop."""

    def __init__(self):
        self.asked = False
        self._before = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in HEARD:
                if signal.getsignal(number) not in (None, signal.SIG_IGN):  # nohup ignores SIGHUP, and that stays so
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def _hear(self, number, frame):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *problem):
        for number, handler in self._before.items():
            signal.signal(number, handler)
