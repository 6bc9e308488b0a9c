"""Progress: a bar on a terminal, one line that is written over in a notebook, and now and then a line where output goes into a file or a pipe.

A notebook needs no package for it, and a short run leaves no line in a log.
"""

import sys
import threading
import time
from typing import Any

import numpy as np


class Progress:
    """Compiling, shown apart; then trajectories, path-steps and their rate, the time left, and the newest mean of one observable."""

    def __init__(self, wanted: bool | None, trajectories: int, steps: int, headline: str | None, console: Any = None):
        drawn = console is not None or (sys.stderr is not None and sys.stderr.isatty())
        self._shown = wanted is not False and drawn
        self._lines = None if wanted is False or drawn or sys.stderr is None else Lines(in_notebook())
        self._trajectories, self._steps, self._name = trajectories, steps, headline
        self._bar, self._lock, self._done, self._console = None, threading.Lock(), 0, console

    def __enter__(self):
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}  {task.fields[headline]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=self._console or Console(stderr=True), transient=True)
            self._bar.start()
            self._compiling = self._bar.add_task("compiling", total=None, rate="", headline="")
            self._task = None
        return self

    def advance(self, steps: int, trajectories: int, newest=None) -> None:
        """So many steps of so many trajectories are done; `newest` is the last mean of the observable shown."""
        if self._lines is not None:
            with self._lock:
                self._done += steps * trajectories
                self._lines.tell(self._done, self._trajectories * self._steps, self._told(newest))
        if self._bar is None:
            return
        with self._lock:
            if self._task is None:
                # The rate is that of running: the clock of this bar starts when compiling has ended.
                self._bar.update(self._compiling, total=1, completed=1, description="compiled")
                self._task = self._bar.add_task("running", total=self._trajectories * self._steps, rate="", headline="")
            self._done += steps * trajectories
            speed = self._bar.tasks[-1].speed
            done = f"{self._done // self._steps}/{self._trajectories} trajectories"
            rate = f"{done}  {speed / 1e6:.2f} M path-steps/s" if speed else done
            self._bar.update(self._task, completed=self._done, rate=rate, headline=self._told(newest))

    def _told(self, newest) -> str:
        if newest is None or self._name is None:
            return ""
        return f"{self._name} {np.asarray(newest).item():.5g}" if np.size(newest) == 1 else ""

    def __exit__(self, *problem):
        if self._bar is not None:
            self._bar.stop()
        if self._lines is not None:
            self._lines.end()


class Lines:
    """Progress as text on standard error: written over every half second in a notebook, else a new line each half minute."""

    def __init__(self, over: bool, every: float | None = None):
        self._over, self._every = over, (0.5 if over else 30.0) if every is None else every
        self._began = self._last = time.monotonic()
        self._told = False

    def tell(self, done: int, total: int, headline: str) -> None:
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last, self._told = now, True
        rate = done / max(now - self._began, 1e-9)
        left = (total - done) / max(rate, 1e-9)
        text = f"{100 * done / max(total, 1):3.0f}%  {rate / 1e6:.2f} M path-steps/s  {left:.0f} s left  {headline}".rstrip()
        print(f"\r{text:<78}" if self._over else f"bismut: {text}", end="" if self._over else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._told and self._over:
            print(f"\r{'':78}\r", end="", file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
