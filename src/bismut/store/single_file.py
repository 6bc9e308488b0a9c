"""A file that is there whole or not at all.

    bytes  →  a file beside the place, synced  →  renamed to the place

What it replaces is there until then. Where writing fails nothing of it remains, and the error names the file; results that exist nowhere else are
kept in another place (`keep_file`). Libraries that write files themselves are given memory: HDF5 ends the process on a full disk.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bismut.errors import WriteError
from bismut.operating_system import CLOSE_ON_EXEC, sync_handle, write_bytes
from bismut.store.files import os_errors_as_write_errors
from bismut.store.zarr_writer import quoted_name


def write_file(place: str | Path, data: bytes | memoryview) -> Path:
    """Write a file, and the folders that lead to it; returns where it is."""
    place = Path(place)
    with os_errors_as_write_errors(place, "written"):
        place.parent.mkdir(parents=True, exist_ok=True)
        target = place.resolve()  # a link stays a link
        if target.exists() and not target.is_file():  # a pipe or a terminal; for a folder this is the error
            target.write_bytes(data)
            return place
        beside = target.with_name(f".bismut-{os.getpid()}{target.suffix}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | CLOSE_ON_EXEC, 0o666)
            try:
                write_bytes(handle, data)
                sync_handle(handle)
            finally:
                os.close(handle)
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    return place


def keep_file(place: str | Path, data: bytes | memoryview) -> Path:
    """Write what exists nowhere else. Where that fails it is written elsewhere, and the error says where."""
    place = Path(place)
    try:
        return write_file(place, data)
    except WriteError as problem:
        try:
            other = write_elsewhere(place, problem, lambda other: write_file(other, data))
        except WriteError:
            raise type(problem)(f"{problem} No other place took it.") from problem
        raise type(problem)(f"{problem} It is kept in {other} instead.") from problem


def write_elsewhere(path: Path, problem: WriteError, write: Callable[[Path], Path]) -> Path:
    """Write to the first other place that has space: the folder for temporary files, the current one, or the user's own."""
    for base in (tempfile.gettempdir, Path.cwd, Path.home):
        try:
            return write(Path(tempfile.mkdtemp(prefix="bismut-", dir=base())) / quoted_name(path.name))
        except (OSError, RuntimeError, WriteError):  # no such place, or no space there either
            continue
    raise problem
