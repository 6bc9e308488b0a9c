"""The arrays of one block in one file: a Zarr group in a zip that compresses nothing.

A block is written every few seconds by every worker, and each file costs a sync; so it is one file, which any reader of Zarr opens as a ZipStore.
Equal arrays give equal bytes: nothing in it depends on the clock.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from bismut.errors import StoreError
from bismut.store.arrays import encode
from bismut.store.stored import decode, values_of

_DAY = (1 << 5) | 1  # 1980-01-01, the first that a zip knows


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Nested dictionaries of arrays as the bytes of a file."""
    parts, directory, at, count = [], [], 0, 0
    for key, data in encode(arrays):
        name = key.encode()
        # Version, flags (the name is UTF-8), no compression, time and day, CRC, sizes, length of the name: written by hand, which takes a fifth of
        # the time that zipfile takes for so many small parts.
        head = struct.pack("<HHHHHIIIHH", 20, 0x800, 0, 0, _DAY, zlib.crc32(data), len(data), len(data), len(name), 0)
        parts += [b"PK\3\4", head, name, data]
        directory += [b"PK\1\2", struct.pack("<H", 20), head, struct.pack("<HHHII", 0, 0, 0, 0o600 << 16, at), name]
        at, count = at + 4 + len(head) + len(name) + len(data), count + 1
    if at >= 2**32 or count >= 2**16:
        raise StoreError(
            f"A block has {count} arrays in {at} bytes, more than a file takes (65535 and 4 GB). Use smaller blocks: block=... or --block."
        )
    length = sum(map(len, directory))
    return b"".join([*parts, *directory, b"PK\5\6", struct.pack("<HHHHIIH", 0, 0, count, count, length, at, 0)])


def unpack(data: bytes, where: str) -> dict[str, Any]:
    """The arrays of such a file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            members = packed.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED or member.file_size > len(data) for member in members):
                raise StoreError("it is compressed, which bismut never does")
            return values_of(decode(packed.read, {member.filename for member in members}))
    except (StoreError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as problem:
        raise StoreError(f"{where} cannot be read: {problem}") from None
