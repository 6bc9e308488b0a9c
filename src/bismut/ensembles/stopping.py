"""Ctrl-C: the first one stops at the next chunk and keeps what is complete, the second stops at once."""

import signal
import threading


class Stop:
    """Whether somebody asked the run to stop."""

    def __init__(self):
        self.asked = False
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def _hear(self, number, frame):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *problem):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
