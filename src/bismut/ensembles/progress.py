"""Progress on a terminal, silence elsewhere."""

import sys
import threading
from typing import Any

import numpy as np


class Progress:
    """Compiling, shown apart; then trajectories, path-steps and their rate, the time left, and the newest mean of one observable."""

    def __init__(self, wanted: bool | None, trajectories: int, steps: int, headline: str | None, console: Any = None):
        self._shown = sys.stderr.isatty() if wanted is None else wanted
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
        """So many steps of so many trajectories are done; `newest` is the last row of the observable shown."""
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
        mean = np.asarray(newest.mean)[-1]
        return f"{self._name} {mean.item():.5g}" if mean.size == 1 else ""

    def __exit__(self, *problem):
        if self._bar is not None:
            self._bar.stop()
