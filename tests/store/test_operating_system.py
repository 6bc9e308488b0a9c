"""What depends on the operating system is in one file, whose ways for macOS and Windows, which tests do not run on, are tried in imitation."""

import ctypes
import errno
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

import bismut
from bismut import operating_system

SOURCE = Path(bismut.__file__).parent
ELSEWHERE = re.compile(
    r"\b(fcntl|msvcrt|windll|resource import|import resource|termios|pwd|grp)\b|signal\.SIG|/proc/"
    r"|os\.(fork|kill|killpg|getuid|geteuid|getpgid|setsid|sched_\w+|sysconf|statvfs|mkfifo|register_at_fork|fsync|name)\b"
    r"|sys\.platform|preexec_fn|start_new_session|O_(CLOEXEC|NOFOLLOW|NONBLOCK|DIRECTORY|BINARY)"
)
CHOSEN_THERE = {"engines/native/object_cache.py": {"os.name"}}  # where the cache of a user lies


def test_nothing_outside_one_file_depends_on_the_operating_system():
    found, read = {}, 0
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        code = "\n".join(line.split("  #")[0] for line in file.read_text(encoding="utf-8").splitlines())
        words = {match.group() for match in ELSEWHERE.finditer(code)} - CHOSEN_THERE.get(name, set())
        read += 1
        if words and name != "operating_system.py":
            found[name] = words
    assert not found
    assert read > 300
    assert ELSEWHERE.search((SOURCE / "operating_system.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("windows", [False, True])
def test_what_is_open_is_closed_before_it_is_removed_on_windows(windows, tmp_path, monkeypatch):
    """And elsewhere after; what another process put in its place stays in both."""
    file, order = tmp_path / "lock", []
    close, unlink = os.close, Path.unlink
    monkeypatch.setattr(operating_system, "WINDOWS", windows)
    monkeypatch.setattr(os, "close", lambda handle: order.append("close") or close(handle))
    monkeypatch.setattr(Path, "unlink", lambda path: order.append("unlink") or unlink(path))
    operating_system.close_and_remove(os.open(file, os.O_RDWR | os.O_CREAT), file)
    assert order == (["close", "unlink"] if windows else ["unlink", "close"])
    assert not file.exists()
    handle = os.open(file, os.O_RDWR | os.O_CREAT)
    file.replace(tmp_path / "moved")
    file.write_text("of another")
    order.clear()
    operating_system.close_and_remove(handle, file)
    assert order == ["close"]
    assert file.read_text() == "of another"


class Msvcrt:
    """Locks of bytes as Windows has them: of one owner each, and an error without waiting."""

    LK_NBLCK = 2

    def __init__(self):
        self.owners = {}

    def locking(self, handle, mode, count):
        assert (mode, count) == (self.LK_NBLCK, 1)
        facts, place = os.fstat(handle), os.lseek(handle, 0, os.SEEK_CUR)
        if self.owners.setdefault((facts.st_ino, place), handle) != handle:
            raise PermissionError(errno.EACCES, "locked")


def test_a_file_has_one_owner_on_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(operating_system, "fcntl", None)
    monkeypatch.setattr(operating_system, "msvcrt", Msvcrt())
    file = tmp_path / "lock"
    first, second = (os.open(file, os.O_RDWR | os.O_CREAT) for _ in range(2))
    try:
        os.write(first, b"owner")
        assert operating_system.try_lock(first) is True
        assert operating_system.try_lock(second) is False
        assert os.lseek(first, 0, os.SEEK_CUR) == 5  # where it was
        assert file.read_bytes() == b"owner"  # the byte that is locked is not one of these
    finally:
        os.close(first)
        os.close(second)


def test_where_there_are_no_locks_nobody_says_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(operating_system, "fcntl", None)
    monkeypatch.setattr(operating_system, "msvcrt", None)
    assert operating_system.try_lock(0) is None


def test_windows_syncs_files_and_leaves_folders(tmp_path, monkeypatch):
    synced, real = [], os.open
    monkeypatch.setattr(operating_system, "WINDOWS", True)
    monkeypatch.setattr(os, "open", lambda path, flags, *mode: (synced.append((Path(path).name, flags & os.O_RDWR)), real(path, flags, *mode))[1])
    (tmp_path / "a").write_bytes(b"1")
    operating_system.sync(tmp_path / "a")
    operating_system.sync(tmp_path)
    assert synced == [("a", os.O_RDWR)]


def test_macos_flushes_the_memory_of_the_drive(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(operating_system, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=lambda handle, what: asked.append(what)))
    monkeypatch.setattr(os, "fsync", lambda handle: asked.append("fsync"))
    operating_system.sync(tmp_path)
    assert asked == [51]

    def unable(handle, what):
        raise OSError(errno.ENOTSUP, "no")

    monkeypatch.setattr(operating_system, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=unable))
    operating_system.sync(tmp_path)
    assert asked == [51, "fsync"]


class Kernel:
    """Processes as Windows answers for them: 10 runs, 11 has ended and is still known, 12 is another user's, others are not there."""

    def __init__(self):
        self.codes, self.error = {10: 259, 11: 0}, 0

    def OpenProcess(self, access, inherit, number):
        self.error = 5 if number == 12 else 87
        return number if number in self.codes else 0

    def GetLastError(self):
        return self.error

    def GetExitCodeProcess(self, handle, code):
        code._obj.value = self.codes[handle]

    def CloseHandle(self, handle):
        pass

    def GlobalMemoryStatusEx(self, status):
        assert status._obj.size == 64
        status._obj.bytes[1] = 2**33
        return 1


def test_processes_and_memory_on_windows(monkeypatch):
    monkeypatch.setattr(operating_system, "WINDOWS", True)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=Kernel()), raising=False)
    assert [operating_system.process_runs(number) for number in (10, 11, 12, 13)] == [True, False, True, False]
    assert operating_system.available_memory() == 2**33


def test_signals_that_are_ignored_stay_so():
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        assert signal.SIGHUP not in operating_system.heeded()
        assert signal.SIGTERM in operating_system.heeded()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(("limit", "expected"), [(-1, None), (2**30, 2**30)])
def test_a_limit_of_address_space(monkeypatch, limit, expected):
    monkeypatch.setattr(operating_system, "resource", SimpleNamespace(RLIMIT_AS=9, RLIM_INFINITY=-1, getrlimit=lambda which: (limit, limit)))
    assert operating_system.address_space() == expected
    monkeypatch.setattr(operating_system, "resource", None)
    assert operating_system.address_space() is None
