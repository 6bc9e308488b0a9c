"""The command line in processes that are forked from a server which has imported it: a run that is killed costs no second of imports.

They can be signalled, killed and waited for like any other. Processes as a user begins them are in tests/cli/test_processes.py.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["__main__", "bismut._api", "bismut.store", "typer"])
RUNNING: list[multiprocessing.process.BaseProcess] = []  # what a test has begun; what it leaves, when it fails, is ended after it (conftest)


class Command:
    """`bismut WORDS` in a folder, begun and not waited for; `before` is called first, in the process."""

    def __init__(self, folder: Path, *words: str, before: Callable[[], None] | None = None):
        self._told = [Path(tempfile.mkstemp(prefix=name, dir=folder.parent)[1]) for name in ("stdout", "stderr")]
        self._process = PROCESSES.Process(target=_bismut, args=(folder, list(map(str, words)), self._told, before))
        self._process.start()
        RUNNING.append(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[str, ...]:
        """What it printed and what it said of problems, once it has ended."""
        self._process.join(timeout)
        assert self.returncode is not None, "it has not ended"
        return tuple(file.read_text(encoding="utf-8") for file in self._told)

    def wait_for(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not there():
            assert self.returncode is None, self.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _bismut(folder: Path, words: list[str], told: list[Path], before: Callable[[], None] | None) -> None:
    os.chdir(folder)
    for number, file in enumerate(told, 1):
        os.dup2(os.open(file, os.O_WRONLY), number)
    sys.argv = ["bismut", *words]
    if before is not None:
        before()
    from bismut.cli import main

    main()


def often() -> None:
    """Checkpoints ten times a second."""
    from bismut.ensembles import block

    block.CADENCE = 0.1


def slowly() -> None:
    """Chunks that take their time, with checkpoints between."""
    from bismut.ensembles import block

    block.CADENCE, block.Pace.steps, block.Pace.learn = 0.05, lambda *_: 16, lambda *_: time.sleep(0.02)
