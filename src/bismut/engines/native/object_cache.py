"""Machine code on disk, shared by all processes of a user.

Of the processor time to a first result LLVM takes from 8 % (a pendulum) to 40 % (patchy disks); imports, tracing and writing the code take the rest.

    name     SHA-256 of LLVM's version, the processor with its features, how far code is optimised, and the text of the module
    content  SHA-256 of the name and the code, then the code

A file whose content does not fit its checksum, damaged or under the name of another module, is compiled again and replaced, never run. Files appear
whole, by a rename, so processes need no lock. The folder is BISMUT_PROGRAMS, or bismut/programs in the user's cache folder; it must belong to the
user and be writable by no other, because what lies there is run. BISMUT_PROGRAMS=off keeps nothing. The least recently used files go when there are
more than 256 MB.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from bismut.operating_system import is_private

log = logging.getLogger(__name__)

LIMIT = 256 * 2**20  # bytes
_KEPT = 0.75  # of the limit, after the least recently used are gone
_CHECKSUM = 32  # bytes of a checksum


def machine_code(identity: str, text: str, compile_code: Callable[[], bytes]) -> bytes:
    """The code of a module: read, or compiled and kept. What goes wrong with the folder costs time, and nothing else."""
    folder = cache_folder()
    if folder is None:
        return compile_code()
    name = hashlib.sha256(f"{identity}\0{text}".encode()).hexdigest()
    code = _read(folder / name)
    if code is None:
        code = compile_code()
        _write(folder, name, code)
    return code


def cache_folder() -> Path | None:
    """Where code is kept; None if nowhere."""
    chosen = os.environ.get("BISMUT_PROGRAMS")
    return None if chosen in ("", "off") else _usable(Path(chosen).expanduser() if chosen else _default())


def _default() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return Path(base or Path("~/.cache").expanduser()) / "bismut" / "programs"


@cache
def _usable(folder: Path) -> Path | None:
    """The folder, created if need be, if no other user can write there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except (OSError, RuntimeError) as problem:
        log.info("machine code is not kept: %s", problem)
        return None
    if not is_private(facts):
        log.info("machine code is not kept: %s belongs to another user, or others can write there", folder)
        return None
    return folder


def _checksum(name: str, code: bytes) -> bytes:
    """Of code and of what it is the code of: a file that was copied or renamed is another module's."""
    return hashlib.sha256(name.encode() + b"\0" + code).digest()


def _read(file: Path) -> bytes | None:
    """The code in a file; None if there is none, or if it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    checksum, code = content[:_CHECKSUM], content[_CHECKSUM:]
    if _checksum(file.name, code) != checksum:
        log.info("%s is damaged, or another's, and compiled again", file)
        return None
    try:
        os.utime(file)  # used now
    except OSError:
        log.debug("%s cannot be marked as used", file)
    return code


def _write(folder: Path, name: str, code: bytes) -> None:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
            temporary = Path(file.name)
            file.write(_checksum(name, code) + code)
        temporary.replace(folder / name)
        _evict(folder)
    except OSError as problem:
        log.info("machine code is not kept: %s", problem)


def _evict(folder: Path) -> None:
    """Remove the least recently used files beyond the limit; leftovers of killed processes are files like others."""
    files = []
    for file in folder.iterdir():
        try:
            files.append((file.stat().st_mtime, file.stat().st_size, file))
        except OSError:  # another process was faster
            continue
    total = sum(size for _, size, _ in files)
    if total <= LIMIT:
        return
    for _, size, file in sorted(files, key=lambda one: one[0]):
        file.unlink(missing_ok=True)
        total -= size
        if total <= _KEPT * LIMIT:
            return
