"""All that depends on the operating system: flags of `open`, syncing, locks of files, other processes, signals, memory.

Linux is what tests run on. The ways of macOS and Windows are written beside it and tested by imitation (tests/store/test_operating_system.py); what
a system has no way for is left out.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None
try:
    import resource
except ImportError:  # Windows
    resource = None

WINDOWS = os.name == "nt"

CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | CLOSE_ON_EXEC  # a link is an error, and a pipe does not block
# Ctrl-C, the end of a queue's time, a closed terminal; Windows has no SIGHUP.
TERMINATING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
INTERRUPT = signal.SIGINT
_LOCKED_BYTE = 2**30  # of a file that Windows locks: beyond what is read, because a locked byte is unreadable to others
_STILL_ACTIVE, _QUERY, _DENIED = 259, 0x1000, 5  # STILL_ACTIVE, PROCESS_QUERY_LIMITED_INFORMATION, ERROR_ACCESS_DENIED


def write_bytes(handle: int, data: bytes | memoryview) -> None:
    """All of it; one system call may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk. Windows cannot open a folder, and keeps names in a journal of its own."""
    if WINDOWS and path.is_dir():
        return
    # Windows syncs only what may be written.
    handle = os.open(path, (os.O_RDWR if WINDOWS else os.O_RDONLY) | CLOSE_ON_EXEC)
    try:
        sync_handle(handle)
    finally:
        os.close(handle)


def sync_handle(handle: int) -> None:
    """Flush an open file to the disk; `fsync` of macOS leaves it in the memory of the drive."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if fcntl is not None and full_sync is not None:
        with contextlib.suppress(OSError):  # a file system without it
            fcntl.fcntl(handle, full_sync)
            return
    os.fsync(handle)


def try_lock(handle: int) -> bool | None:
    """Take the exclusive advisory lock of a file, without waiting: False if another process has it, None if the file system has no locks."""
    if fcntl is None:
        return None if msvcrt is None else _try_lock_byte(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _try_lock_byte(handle: int) -> bool:
    """The lock of one byte, as Windows has it; it too ends with its owner."""
    before = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[union-attr]
    except OSError:
        return False
    finally:
        os.lseek(handle, before, os.SEEK_SET)
    return True


def same_file(handle: int, file: Path) -> bool:
    """Whether a path still names the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def close_and_remove(handle: int, file: Path) -> None:
    """Close a file and remove it, if the path still names it.

    It is removed while it is open, so that nobody takes a lock of a file that is about to go. Windows refuses to remove what is open anywhere: there
    it is closed first, and stays if somebody else opened it in between.
    """
    try:
        ours = same_file(handle, file)
        if ours and not WINDOWS:
            file.unlink()
    finally:
        os.close(handle)
    if ours and WINDOWS:
        file.unlink()


def process_runs(number: int) -> bool:
    """Whether a process with that number exists on this host."""
    if WINDOWS:
        return _process_runs_on_windows(number)
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's process
    return True


def _process_runs_on_windows(number: int) -> bool:
    """There `os.kill(number, 0)` would send Ctrl-C."""
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(_QUERY, False, number)
    if not handle:
        return kernel.GetLastError() == _DENIED  # another user's process
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == _STILL_ACTIVE


def process_start(number: int) -> str | None:
    """Boot and clock tick in which a process began, where the system says so: process numbers are reused."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(f'/proc/{number}/stat').read_text().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Within, signals that end a process are only noted; the first is delivered at the end. Python delivers signals to its main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before, within = {}, True

    def note(number: int, _: Any) -> None:
        if within:
            noted.append(number)
        else:  # another signal interrupted the restoring of handlers below
            signal.signal(number, before[number])
            signal.raise_signal(number)

    try:
        for number in heeded():
            before[number] = signal.signal(number, note)
        yield
    finally:
        within = False
        for number, handler in before.items():
            signal.signal(number, handler)
        if noted:
            signal.raise_signal(noted[0])


def heeded() -> list[int]:
    """Signals that end a process and are not ignored: nohup ignores SIGHUP, and that stays so."""
    return [number for number in TERMINATING if signal.getsignal(number) not in (None, signal.SIG_IGN)]


def ignore_signals() -> None:
    for number in TERMINATING:
        signal.signal(number, signal.SIG_IGN)


def interrupt_later(seconds: float) -> None:
    """Ctrl-C for this process, a moment later; raised here, because Windows would send it to every process of the console."""
    threading.Timer(seconds, signal.raise_signal if WINDOWS else _kill_self, (INTERRUPT,)).start()


def _kill_self(number: int) -> None:
    os.kill(os.getpid(), number)  # to the main thread, wherever it waits


def at_fork(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Functions called before a fork, in the parent, and after it, in the child; Windows has no fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_child=after)


def is_private(facts: os.stat_result) -> bool:
    """Whether a file is ours and no other user can write it. Windows decides that by the folder of the user."""
    return WINDOWS or (facts.st_uid == os.getuid() and not facts.st_mode & 0o022)


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def yielding() -> int:
    """The address of a function () ↦ int that lets another thread have the core; 0 if there is none."""
    library = ctypes.windll.kernel32 if WINDOWS else ctypes.CDLL(None)  # type: ignore[attr-defined]
    function = getattr(library, "SwitchToThread" if WINDOWS else "sched_yield", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def address_space() -> int | None:
    """Bytes of address space that this process may use, where there is a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if resource is not None and hasattr(resource, "RLIMIT_AS") else -1
    return limit if limit >= 0 and (resource is None or limit != resource.RLIM_INFINITY) else None


def available_memory() -> int | None:
    """Bytes that can be had without swapping, where the system says so."""
    if WINDOWS:
        return _available_on_windows()
    with contextlib.suppress(OSError), open("/proc/meminfo") as info:
        for line in info:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # macOS
        return None


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX: its size, a percentage, and seven counts of bytes, of which the second is what is available."""

    _fields_ = [("size", ctypes.c_uint32), ("load", ctypes.c_uint32), ("bytes", ctypes.c_uint64 * 7)]


def _available_on_windows() -> int | None:
    status = _MemoryStatus(size=ctypes.sizeof(_MemoryStatus))
    done = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.bytes[1]) if done else None
