"""The arrays of one block in one file: a Zarr group in a zip that compresses nothing.

A block is written every few seconds by every worker, and each file costs a sync; so it is one file, which any reader of Zarr opens as a ZipStore.
Equal arrays give equal bytes: nothing in it depends on the clock.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from bismut.errors import StoreError
from bismut.store.arrays import encode
from bismut.store.stored import decode, values_of

_DAY = (1980, 1, 1, 0, 0, 0)  # the first that a zip knows


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Nested dictionaries of arrays as the bytes of a file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
        for key, data in encode(arrays):
            packed.writestr(zipfile.ZipInfo(key, _DAY), data)
    return file.getvalue()


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
