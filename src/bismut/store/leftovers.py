"""What killed processes left behind, removed by whoever comes next: a lock that nobody holds, files that no line names, a run that was replaced.

    lock     PLACE.n     PLACE.old     .NAME.old, once the run that replaced it has ended

Nothing that is committed is touched, and nothing at all while somebody writes there.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from bismut.errors import StoreError
from bismut.store.layout import is_run, remove_run, strangers, sweep
from bismut.store.lock import LOCK, Lock, alive, read_owner
from bismut.store.reading import aside, peek


def clean_up(path: Path) -> None:
    """If there are leftovers and nobody writes there. Where that cannot be known or nothing can be removed, they stay, and reading goes on."""
    with contextlib.suppress(OSError, StoreError):
        bring_back(path)
        old = aside(path, "old")
        if not (path.is_dir() and (_left(path) or old.is_dir())) or alive(read_owner(path / LOCK)):
            return
        lock = Lock(path)  # refused while the writer lives, or is on another machine
        try:
            run = peek(path)
            if run.folder == path and not run.manifest.problem:
                sweep(path, {place: part.number for place, part in run.parts.items()})
                if run.recorded_state == "complete" and old.is_dir() and not strangers(old):
                    remove_run(old)
        finally:
            lock.release(path)


def _left(path: Path) -> bool:
    return any(name == LOCK or re.search(r"\.(\d+|old)$", name) for name in os.listdir(path))


def bring_back(path: Path) -> None:
    """A run whose replacement was cut short between two renames gets its name back."""
    old = aside(path, "old")
    if not path.exists() and old.is_dir() and is_run(old):
        lock = Lock(old, held_for=path)  # refused while the other is alive and about to take the place
        try:
            old.rename(path)
        finally:
            lock.release(path if path.exists() else old)
