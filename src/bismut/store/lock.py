"""The writer of a folder: a file `lock` in it that names host, process and when that process began.

The file is also locked by the operating system, which releases the lock when its owner ends, however it dies: so a lock that can be taken was left by
a dead process. Where the file system has no such locks, and for owners on other hosts, the text of the file decides.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

from bismut.documents import parsed
from bismut.errors import StoreError
from bismut.formatting import printable
from bismut.operating_system import NO_FOLLOW, close_and_remove, process_runs, process_start, same_file, sync_handle, try_lock, write_bytes
from bismut.store.files import read_regular
from bismut.store.rules import OWNER

LOCK = "lock"
_LARGEST = 4096  # bytes of a lock
_TIMEOUT = 0.3  # seconds to wait for a process that only cleans up


class Lock:
    """The lock of a folder, taken at construction and held until `release`."""

    def __init__(self, folder: Path, held_for: Path | None = None):
        self._file = folder / LOCK
        shown, end = held_for or folder, time.monotonic() + _TIMEOUT
        while True:
            self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                    raise StoreError(f"{self._file} is not a regular file, so {shown} cannot be locked. Remove it, or choose another name.")
                if self._acquire(shown, last=time.monotonic() >= end):
                    return
            except BaseException:
                os.close(self._handle)
                raise
            os.close(self._handle)
            time.sleep(0.02)

    def _acquire(self, shown: Path, last: bool) -> bool:
        """Write the owner into the open file; False if it has to be opened again: another process holds it, or removed it just now."""
        acquired, owner = try_lock(self._handle), read_owner(self._file)
        busy = f"{shown} is being written by {describe_owner(owner)}"
        if acquired is False:
            if last:
                raise StoreError(f"{busy}. Wait for it to end, or choose another name.")
            return False
        if not same_file(self._handle, self._file):
            return False
        if owner and owner.get("host") != socket.gethostname():
            raise StoreError(f"{busy}, which cannot be reached here. If that process has ended, remove {self._file}.")
        if acquired is None and owner and alive(owner):
            raise StoreError(f"{busy}. Wait for it to end, or choose another name.")
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        write_bytes(self._handle, (json.dumps(_this_process()) + "\n").encode())
        sync_handle(self._handle)
        return True

    def release(self, folder: Path) -> None:
        """Give the lock up. The folder may have been renamed; if it was removed and made again, the lock in it belongs to another process."""
        with contextlib.suppress(OSError):  # a full disk: the next writer sees that no process holds it
            close_and_remove(self._handle, folder / LOCK)


def _this_process() -> dict[str, Any]:
    number = os.getpid()
    return {"host": socket.gethostname(), "process": number, "began": process_start(number), "locked": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


def read_owner(file: Path) -> dict[str, Any]:
    """The owner that a lock names; empty if the file is missing or was cut short."""
    try:
        return parsed(read_regular(file.parent, file.name, most=_LARGEST), str(file), OWNER)
    except StoreError:
        return {}


def describe_owner(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return printable(f"process {owner['process']} on {owner['host']} since {owner.get('locked')}")


def alive(owner: dict[str, Any]) -> bool | None:
    """Whether the owner of a lock runs; None if that cannot be known from here. A process that reuses its number is not the owner."""
    if owner and owner.get("host") != socket.gethostname():
        return None
    number = owner.get("process")
    if not isinstance(number, int) or number <= 0 or not process_runs(number):
        return False
    return process_start(number) == owner.get("began")
