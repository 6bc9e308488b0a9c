"""The manifest: what is committed, line by line.

    {"check":"<32 hexadecimal digits>","entry":{...}}       check = SHA-256(check of the line before, entry) cut to 128 bits

A line with its newline and its check is a commit; nothing else is. Lines are only ever appended. What a dying process leaves at the end without a
newline is ignored, and cut off by the next writer. As every check depends on all lines before it, a line that is altered, left out or moved is
detected.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from bismut.documents import plain_json
from bismut.errors import StoreError
from bismut.operating_system import NO_FOLLOW, sync_handle, write_bytes
from bismut.store.files import read_regular

MANIFEST = "manifest.jsonl"
_OPENING, _MIDDLE, _CLOSING, _DIGITS = b'{"check":"', b'","entry":', b"}", 32
_LARGEST = 2**30  # bytes
_HEAD = len(_OPENING) + _DIGITS + len(_MIDDLE)


class Manifest:
    """The entries of a manifest, in order; `torn` says that half a line follows them, `problem` that what follows them is altered."""

    def __init__(self, folder: Path, entries: list[dict[str, Any]], length: int, check: bytes, torn: bool = False, problem: str = ""):
        self.folder, self.entries, self.torn, self.problem = folder, entries, torn, problem
        self._length, self._check = length, check

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The entries up to the first line that is torn or altered."""
        entries, length, check = [], 0, b""
        text = read_regular(folder, MANIFEST, most=_LARGEST)
        for number, line in enumerate(text.split(b"\n")[:-1], 1):
            body = line[_HEAD : -len(_CLOSING)]
            stated = line[len(_OPENING) : len(_OPENING) + _DIGITS]
            entry = _entry(body)
            if line != _line(stated, body) or stated != _chained(check, body) or entry is None:
                problem = f"{folder / MANIFEST}, line {number} is altered; what was committed there and later cannot be trusted."
                return cls(folder, entries, length, check, problem=problem)
            entries.append(entry)
            check, length = stated, length + len(line) + 1
        return cls(folder, entries, length, check, torn=length < len(text))

    @classmethod
    def create(cls, folder: Path) -> Manifest:
        return cls(folder, [], 0, b"")

    def append(self, entry: dict[str, Any]) -> None:
        """Commit: one line, synced. When it fails, the manifest ends as before."""
        if self.problem:
            raise StoreError(f"{self.problem} Nothing is added to it.")
        body = plain_json(entry).encode()
        check = _chained(self._check, body)
        line = _line(check, body) + b"\n"
        handle = os.open(self.folder / MANIFEST, os.O_WRONLY | os.O_CREAT | NO_FOLLOW, 0o644)
        try:
            os.ftruncate(handle, self._length)
            os.lseek(handle, self._length, os.SEEK_SET)
            try:
                write_bytes(handle, line)
                sync_handle(handle)
            except BaseException:
                os.ftruncate(handle, self._length)
                raise
        finally:
            os.close(handle)
        self.entries.append(json.loads(body))
        self._check, self._length, self.torn = check, self._length + len(line), False


def _line(check: bytes, body: bytes) -> bytes:
    return _OPENING + check + _MIDDLE + body + _CLOSING


def _chained(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).hexdigest()[:_DIGITS].encode()


def _entry(body: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
