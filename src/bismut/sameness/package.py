"""Which code of bismut computes: a hash of the Python files of this package.

    SHA-256( path, text, path, text, ... )      in the order of paths, line ends as "\\n"

A version stays the same over hundreds of commits, and an installed package knows of no commit; its files are always there. Comments and docstrings
count: to leave them out, all files would have to be parsed, 0.9 s instead of 20 ms.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def package_hash() -> str:
    """The hash of the code of bismut; "unknown" where it is installed without its text. Read once in a process."""
    return hash_of(Path(__file__).resolve().parents[1])


def hash_of(root: Path) -> str:
    """The first 64 bits of the above."""
    files = sorted((file.relative_to(root).as_posix(), file) for file in root.rglob("*.py"))
    total = hashlib.sha256()
    for name, file in files:
        text = file.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{name}\0{len(text)}\0".encode() + text)
    return total.hexdigest()[:16] if files else "unknown"
