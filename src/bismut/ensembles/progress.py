"""Progress: a bar on a terminal, an output that is replaced in a notebook, and now and then a line where output goes into a file or a pipe.

On a narrow terminal the bar, the rate and the counts are left out; the share that is done and the time that is left stay. A short run leaves no line
in a log, and nothing stays in the file of a notebook.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bismut.formatting import bar as drawn_bar
from bismut.formatting import per_second

_NAMED, _BAR, _ELAPSED = 24, 56, 80  # columns of a terminal from which on a word, a bar, and the time that has passed are shown


@runtime_checkable
class ProgressDisplay(Protocol):
    """Where progress is shown."""

    def update(self, done: int, total: int, counted: str, headline: str) -> None: ...

    def end(self) -> None: ...


class Progress:
    """Trajectories, path-steps and their rate, the time left, and the newest mean of one observable."""

    def __init__(self, wanted: bool | None, trajectories: int, steps: int, headline: str | None, console: Any = None):
        self._display = None if wanted is False else _chosen(console)
        self._trajectories, self._steps, self._name = trajectories, steps, headline
        self._lock, self._done = threading.Lock(), 0

    def __enter__(self):
        return self

    def advance(self, steps: int, trajectories: int, newest=None) -> None:
        """So many steps of so many trajectories are done; `newest` is the last mean of the observable shown."""
        if self._display is None:
            return
        with self._lock:
            self._done += steps * trajectories
            counted = f"{self._done // self._steps}/{self._trajectories} trajectories"
            self._display.update(self._done, self._trajectories * self._steps, counted, self._headline(newest))

    def _headline(self, newest) -> str:
        if newest is None or self._name is None:
            return ""
        return f"{self._name} {np.asarray(newest).item():.5g}" if np.size(newest) == 1 else ""

    def __exit__(self, *problem):
        if self._display is not None:
            self._display.end()


def _chosen(console: Any) -> ProgressDisplay | None:
    if console is not None:
        return TerminalBar(console)
    if in_notebook():
        return NotebookCell()
    if sys.stderr is None:
        return None
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        return LogLines() if console.is_dumb_terminal else TerminalBar(console)
    return LogLines()


class TerminalBar:
    """On a terminal. What does not fit is left out, the least important first."""

    def __init__(self, console: Any):
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._console = console
        columns = [TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.fields[more]}"), TimeRemainingColumn()]
        self._taken = len("100%  0:00:00 ")
        if console.width >= _NAMED:
            columns.insert(0, TextColumn("{task.description}"))
            self._taken += len("running ")
        if console.width >= _BAR:
            wide = min(40, console.width // 5)
            columns.insert(1, BarColumn(wide))
            self._taken += wide + 1
        if console.width >= _ELAPSED:
            columns.insert(-1, TimeElapsedColumn())
            self._taken += len("0:00:00 ")
        self._bar = Progress(*columns, console=console, transient=True)
        self._bar.start()
        # The rate is that of running: the clock of the second task starts when compiling has ended.
        self._task, self._running = self._bar.add_task("compiling", total=None, more=""), False

    def update(self, done: int, total: int, counted: str, headline: str) -> None:
        if not self._running:
            self._bar.remove_task(self._task)
            self._task, self._running = self._bar.add_task("running", total=total, more=""), True
        speed = self._bar.tasks[-1].speed
        rate = per_second(speed) if speed else ""
        self._bar.update(self._task, completed=done, more=fitting((rate, headline, counted), self._console.width - self._taken))

    def end(self) -> None:
        self._bar.stop()


def fitting(parts: tuple[str, ...], room: int) -> str:
    """As many parts, two spaces apart, as there is room for; the first matter most."""
    text = ""
    for part in parts:
        longer = f"{text}  {part}" if text and part else text or part
        text = longer if len(longer) <= room else text
    return text


class LogLines:
    """In a file or a pipe: a line each half minute."""

    def __init__(self, every: float = 30.0):
        self._every = every
        self._began = self._last = time.monotonic()

    def update(self, done: int, total: int, counted: str, headline: str) -> None:
        del counted
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self.show(done / max(total, 1), _text(done, total, now - self._began, headline))

    def show(self, fraction: float, text: str) -> None:
        del fraction
        print(f"bismut: {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class NotebookCell(LogLines):
    """In a notebook: an output of its own, replaced every half second and empty in the end."""

    def __init__(self, every: float = 0.5):
        super().__init__(every)
        self._handle: Any = None

    def show(self, fraction: float, text: str) -> None:
        self._replace({"text/plain": text, "text/html": drawn_bar(fraction, text)})

    def _replace(self, data: dict[str, str]) -> None:
        from IPython.display import DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(data, raw=True)
        else:
            self._handle.update(data, raw=True)

    def end(self) -> None:
        if self._handle is not None:
            self._replace({"text/plain": "", "text/html": ""})


def _text(done: int, total: int, seconds: float, headline: str) -> str:
    rate = done / max(seconds, 1e-9)
    left = (total - done) / max(rate, 1e-9)
    return f"{100 * done / max(total, 1):3.0f}%  {per_second(rate)}  {left:.0f} s left  {headline}".rstrip()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, or of what is made like one."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
