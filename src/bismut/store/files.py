"""Files that are on the disk when they are said to be, and that are read only if they are what was written.

A file is written under a name nobody else has, synced, and known from then on by its size and its SHA-256.
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

Seal = list  # [size in bytes, SHA-256 in hexadecimal], as JSON has it
Contents = Iterable[tuple[str, bytes]]  # (path within a folder, what the file holds); the path "" is a single file

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_LONGEST_NAME, _DEEPEST = 255, 32  # bytes that a file system takes for one name, and folders within folders
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def folder_of(path: Any, what: str) -> Path:
    """The folder that somebody names."""
    if not isinstance(path, str | os.PathLike):
        raise DomainError(f"{what} must be the name of a folder, got {path!r}.")
    return Path(path)


def write_all(place: Path, contents: Contents) -> dict[str, Seal]:
    """Write files to a place that does not exist yet, and sync them and their folders."""
    seals, files, folders = {}, [], {place.parent}
    if not place.parent.is_dir():
        place.parent.mkdir()
        folders.add(place.parent.parent)
    for key, data in contents:
        file = place / key if key else place
        if key:
            file.parent.mkdir(parents=True, exist_ok=True)
            folders.update(parent for parent in file.parents if parent.is_relative_to(place))
        _write(file, data)
        files.append(file)
        seals[key] = seal_of(data)
    for written in (*files, *folders):  # after all are written: half the time of syncing one after another
        sync(written)
    return seals


def _write(file: Path, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)
    try:
        write_bytes(handle, data)
    finally:
        os.close(handle)


def write_bytes(handle: int, data: bytes) -> None:
    """All of it; a system call may take a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def sync(written: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(written, os.O_RDONLY | _FLAGS)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def seal_of(data: bytes) -> Seal:
    return [len(data), hashlib.sha256(data).hexdigest()]


def read_sealed(root: Path, relative: str, seal: Seal) -> bytes:
    """The bytes of a file below root if they are those that were written; links are not followed."""
    size, digest = seal
    data = read_plain(root, relative, size)
    if seal_of(data)[1] != digest:
        raise StoreError(f"{root / relative} is altered: its SHA-256 is not the one in the manifest.")
    return data


def read_plain(root: Path, relative: str, size: int | None = None, most: int | None = None) -> bytes:
    """The bytes of a regular file below root, of a known size if one is given, or of no more than `most`."""
    check_inside(root, relative)
    where = root / relative
    try:
        handle = os.open(where, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _FLAGS)
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
    """Refuse a path that leaves its folder, by its words or by a link on the way."""
    parts = relative.split("/")
    wrong = lambda part: part in ("", ".", "..") or set(part) & {"\\", "\0", ":"} or len(part.encode("utf-8", "replace")) > _LONGEST_NAME
    if len(parts) > _DEEPEST or any(map(wrong, parts)):
        raise StoreError(f"The manifest of {root} names the file {relative[:200]!r}, which is not a path within the folder. It is not read.")
    for depth in range(1, len(parts) + 1):
        step = root.joinpath(*parts[:depth])
        if step.is_symlink():
            raise StoreError(f"{step} is a link. Links in a run are not followed, because they may lead out of it.")


def remove(place: Path) -> None:
    """Remove a file or a folder if it is there; a link is removed, not followed."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)


@contextmanager
def told(where: Path, doing: str) -> Iterator[None]:
    """Errors of the operating system as sentences."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a name that no file system has
        reason = str(problem)
        if isinstance(problem, OSError) and problem.strerror:
            named = problem.filename
            other = isinstance(named, str | bytes | os.PathLike) and Path(os.fsdecode(named)) != where
            reason = problem.strerror + (f" ({os.fsdecode(named)})" if other else "")
        kind = DiskFullError if isinstance(problem, OSError) and problem.errno in _FULL else WriteError
        raise kind(f"{where} cannot be {doing}: {reason}.") from problem
