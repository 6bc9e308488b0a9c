"""Progress on a terminal, silence elsewhere."""

import sys


class Progress:
    """Path-steps done, their rate and the time left; shown while a run goes on, on a terminal."""

    def __init__(self, wanted: bool | None, trajectories: int, steps: int):
        self._shown = sys.stderr.isatty() if wanted is None else wanted
        self._total, self._bar = trajectories * steps, None

    def __enter__(self):
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("compiling", total=self._total, rate="")
        return self

    def advance(self, steps: int, trajectories: int):
        if self._bar is not None:
            self._bar.update(self._task, advance=steps * trajectories, description="running")
            speed = self._bar.tasks[0].speed
            if speed:
                self._bar.update(self._task, rate=f"{speed / 1e6:.2f} M path-steps/s")

    def __exit__(self, *problem):
        if self._bar is not None:
            self._bar.stop()
