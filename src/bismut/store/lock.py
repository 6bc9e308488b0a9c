"""Who writes into a folder: a file `lock` in it that names host, process and when that process began.

The file is also locked in the sense of the operating system, which ends with its owner however it dies: so a lock that can be had was left by a dead
process. Where the file system has no such locks, and on other hosts, the words in the file decide.
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
from bismut.store.files import read_plain, write_bytes
from bismut.store.rules import OWNER
from bismut.wording import printable

try:
    import fcntl
except ImportError:  # not a POSIX system: the words in the file are all there is
    fcntl = None

LOCK = "lock"
_LONGEST = 4096  # bytes of a lock
_PATIENCE = 0.3  # seconds for somebody who only cleans up
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Lock:
    """The lock of a folder, held from its making to `release`."""

    def __init__(self, folder: Path, held_for: Path | None = None):
        self._file = folder / LOCK
        shown, end = held_for or folder, time.monotonic() + _PATIENCE
        while True:
            self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                    raise StoreError(f"{self._file} is not a regular file, so {shown} cannot be locked. Remove it, or choose another name.")
                if self._taken(shown, last=time.monotonic() >= end):
                    return
            except BaseException:
                os.close(self._handle)
                raise
            os.close(self._handle)
            time.sleep(0.02)

    def _taken(self, shown: Path, last: bool) -> bool:
        """Write down whose the file is, which was opened; False if it is to be opened again: somebody holds it, or removed it just now."""
        certain = _lock(self._handle)
        owner = read_owner(self._file)
        if certain is False and not last:
            return False
        if certain is False:
            raise StoreError(f"{shown} is being written by {said(owner)}. Wait for it to end, or choose another name.")
        if not _same_file(self._handle, self._file):
            return False
        if owner and owner.get("host") != socket.gethostname():
            raise StoreError(
                f"{shown} is being written by {said(owner)}, which cannot be reached here. If that process has ended, remove {self._file}."
            )
        if certain is None and owner and alive(owner):
            raise StoreError(f"{shown} is being written by {said(owner)}. Wait for it to end, or choose another name.")
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        write_bytes(self._handle, (json.dumps(myself()) + "\n").encode())
        os.fsync(self._handle)
        return True

    def release(self, folder: Path) -> None:
        """Give it up; the folder may have another name by now, and if it was removed and made again, the lock in it is somebody else's."""
        with contextlib.suppress(OSError):  # a disk that takes no more: whoever comes next sees that nobody holds it
            if _same_file(self._handle, folder / LOCK):
                (folder / LOCK).unlink()
        os.close(self._handle)


def myself() -> dict[str, Any]:
    return {"host": socket.gethostname(), "process": os.getpid(), "began": _began(os.getpid()), "locked": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


def read_owner(file: Path) -> dict[str, Any]:
    """What a lock says; nothing if it is not there or was cut short."""
    try:
        return parsed(read_plain(file.parent, file.name, most=_LONGEST), str(file), OWNER)
    except StoreError:
        return {}


def said(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return printable(f"process {owner['process']} on {owner['host']} since {owner.get('locked')}")


def alive(owner: dict[str, Any]) -> bool | None:
    """Whether the owner of a lock lives; None if that cannot be known from here. A process number that was given again is not the owner."""
    if owner and owner.get("host") != socket.gethostname():
        return None
    number = owner.get("process")
    if not isinstance(number, int) or number <= 0:
        return False
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's process
    return _began(number) == owner.get("began")


def _began(number: int) -> str | None:
    """Boot and clock tick in which a process began, where the system tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(f'/proc/{number}/stat').read_text().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None


def _lock(handle: int) -> bool | None:
    """Whether the lock of the operating system was free; None if there are none here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _same_file(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False
