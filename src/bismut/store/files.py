"""Files that are on the disk once they are called written, and that are read only if they hold what was written.

A file is written under a name of its own, synced, and known from then on by its size and its SHA-256.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bismut.errors import DiskFullError, DomainError, StoreError, WriteError
from bismut.operating_system import CLOSE_ON_EXEC, NO_FOLLOW, sync, write_bytes

Checksum = list  # [size in bytes, SHA-256 in hexadecimal], as JSON has it
Contents = Iterable[tuple[str, bytes]]  # (path within a folder, bytes of the file); the path "" is a single file

_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_LONGEST_NAME, _DEEPEST = 255, 32  # bytes that a file system takes for one name, and nesting of folders


def folder_of(path: Any, name: str) -> Path:
    """The folder that an argument names."""
    if not isinstance(path, str | os.PathLike):
        raise DomainError(f"{name} must be the name of a folder, got {path!r}.")
    return Path(path)


def write_files(place: Path, contents: Contents) -> dict[str, Checksum]:
    """Write files to a place that does not exist yet, and sync them and their folders; returns their checksums."""
    checksums, files, folders = {}, [], {place.parent}
    if not place.parent.is_dir():
        place.parent.mkdir()
        folders.add(place.parent.parent)
    for key, data in contents:
        file = place / key if key else place
        if key:
            file.parent.mkdir(parents=True, exist_ok=True)
            folders.update(parent for parent in file.parents if parent.is_relative_to(place))
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSE_ON_EXEC, 0o644)
        try:
            write_bytes(handle, data)
        finally:
            os.close(handle)
        files.append(file)
        checksums[key] = checksum_of(data)
    for path in (*files, *folders):  # after all are written: half the time of syncing each after its write
        sync(path)
    return checksums


def checksum_of(data: bytes) -> Checksum:
    return [len(data), hashlib.sha256(data).hexdigest()]


def read_checked(root: Path, relative: str, checksum: Checksum) -> bytes:
    """The bytes of a file below root if they are those that were written; links are not followed."""
    size, digest = checksum
    data = read_regular(root, relative, size)
    if checksum_of(data)[1] != digest:
        raise StoreError(f"{root / relative} is altered: its SHA-256 is not the one in the manifest.")
    return data


def read_regular(root: Path, relative: str, size: int | None = None, most: int | None = None) -> bytes:
    """The bytes of a regular file below root, of exactly `size` if that is known, or of no more than `most`."""
    check_inside(root, relative)
    where = root / relative
    try:
        handle = os.open(where, os.O_RDONLY | NO_FOLLOW)
    except FileNotFoundError:
        raise StoreError(f"{where} is missing.") from None
    except OSError as problem:
        raise StoreError(f"{where} cannot be read: {problem.strerror}.") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{where} is not a regular file.")
        if size is not None and status.st_size != size:
            raise StoreError(f"{where} has {status.st_size} bytes, but {size} were written: it is truncated or altered.")
        if most is not None and status.st_size > most:
            raise StoreError(f"{where} has {status.st_size} bytes; no more than {most} are expected there.")
        return file.read()


def check_inside(root: Path, relative: str) -> None:
    """Refuse a path that leaves its folder, by its parts or by a link on the way."""
    parts = relative.split("/")
    wrong = lambda part: part in ("", ".", "..") or set(part) & {"\\", "\0", ":"} or len(part.encode("utf-8", "replace")) > _LONGEST_NAME
    if len(parts) > _DEEPEST or any(map(wrong, parts)):
        raise StoreError(f"The manifest of {root} names the file {relative[:200]!r}, which is not a path within the folder. It is not read.")
    for depth in range(1, len(parts) + 1):
        step = root.joinpath(*parts[:depth])
        if step.is_symlink():
            raise StoreError(f"{step} is a link. Links in a run are not followed, because they may lead out of it.")


def remove(place: Path) -> None:
    """Remove a file or a folder if it exists; a link is removed, not followed."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)


@contextmanager
def os_errors_as_write_errors(where: Path, action: str) -> Iterator[None]:
    """Errors of the operating system become a WriteError or DiskFullError that names the folder and the cause."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a name that no file system takes
        reason = str(problem)
        if isinstance(problem, OSError) and problem.strerror:
            named = problem.filename
            other = isinstance(named, str | bytes | os.PathLike) and Path(os.fsdecode(named)) != where
            reason = problem.strerror + (f" ({os.fsdecode(named)})" if other else "")
        kind = DiskFullError if isinstance(problem, OSError) and problem.errno in _DISK_FULL else WriteError
        raise kind(f"{where} cannot be {action}: {reason}.") from problem
