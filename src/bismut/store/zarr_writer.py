"""Groups of arrays as the files of Zarr format 3: `zarr.json` for every group and array, and chunks beside it.

    chunk = the bytes of its numbers, little-endian, and their CRC-32C;      the fill value is NaN, or the integer farthest from use

Every chunk is written, also an empty one, so a missing chunk is damage and never a fill value. `zarr_reader` reads this form and no other.

The arrays of a block are one file, because a block is written every few seconds by every worker and each file costs a sync: a zip that compresses
nothing, which any reader of Zarr opens as a ZipStore. Equal arrays give equal bytes: nothing in it depends on the clock.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from bismut.documents import json_value
from bismut.errors import StoreError

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBERS = ("bool", *_INTEGERS, "float16", "float32", "float64", "complex64", "complex128")
TEXT = "string"
METADATA, ORDER = "zarr.json", "order"
CHUNK = 2**24  # bytes of a chunk, about: small enough to read one for a few numbers, large enough for few files
_FIRST_DAY = (1 << 5) | 1  # 1980-01-01, the first that a zip can name


class LabelledArray(NamedTuple):
    """An array with names of its axes."""

    axes: tuple[str, ...]
    values: Any


class ZarrGroup(NamedTuple):
    """Arrays and further groups by name, in their order, and attributes that JSON can hold."""

    members: Mapping[str, Any]
    attributes: Mapping[str, Any] = {}


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Nested dictionaries of arrays as the bytes of an uncompressed zip."""
    parts, directory, at, count = [], [], 0, 0
    for key, data in encode(arrays):
        name = key.encode()
        # Version, flags (the name is UTF-8), no compression, time and day, CRC, sizes, length of the name: written by hand, which takes a fifth of
        # the time that zipfile takes for so many small parts.
        head = struct.pack("<HHHHHIIIHH", 20, 0x800, 0, 0, _FIRST_DAY, zlib.crc32(data), len(data), len(data), len(name), 0)
        parts += [b"PK\3\4", head, name, data]
        directory += [b"PK\1\2", struct.pack("<H", 20), head, struct.pack("<HHHII", 0, 0, 0, 0o600 << 16, at), name]
        at, count = at + 4 + len(head) + len(name) + len(data), count + 1
    if at >= 2**32 or count >= 2**16:
        raise StoreError(
            f"A block has {count} arrays in {at} bytes, more than a file takes (65535 and 4 GB). Use smaller blocks: block=... or --block."
        )
    length = sum(map(len, directory))
    return b"".join([*parts, *directory, b"PK\5\6", struct.pack("<HHHHIIH", 0, 0, count, count, length, at, 0)])


def encode(group: ZarrGroup | Mapping[str, Any], at: str = "") -> Iterator[tuple[str, bytes]]:
    """The files of a group, one after another; a plain dictionary is a group without attributes."""
    group = group if isinstance(group, ZarrGroup) else ZarrGroup(group)
    yield at + METADATA, _json(group_metadata({**group.attributes, ORDER: list(group.members)}))
    for name, member in group.members.items():
        below = f"{at}{quoted_name(name)}/"
        if isinstance(member, ZarrGroup | Mapping):
            yield from encode(member, below)
        else:
            array = member if isinstance(member, LabelledArray) else LabelledArray(tuple(f"{name}_{axis}" for axis in range(np.ndim(member))), member)
            yield from _encode_array(array, below)


def _encode_array(array: LabelledArray, at: str) -> Iterator[tuple[str, bytes]]:
    values = np.asarray(array.values)
    kind = TEXT if values.dtype.kind == "U" else values.dtype.name
    if kind not in (*NUMBERS, TEXT):
        raise StoreError(f"{at[:-1]} is an array of {values.dtype}; numbers, truth values and text can be stored.")
    chunks = _chunks(values.shape, max(1, values.dtype.itemsize))
    yield at + METADATA, _array_json(values.shape, kind, chunks, tuple(array.axes))
    for key, box in chunk_boxes(values.shape, chunks):
        part = np.asarray(values[box])
        if part.shape != chunks:  # the last chunk of an axis is as long as the others
            padded = np.full(chunks, _fill_value(kind), values.dtype)
            padded[tuple(slice(n) for n in part.shape)] = part
            part = padded
        data = _text_bytes(part) if kind == TEXT else np.ascontiguousarray(part, part.dtype.newbyteorder("<")).tobytes()
        yield at + key, data + struct.pack("<I", google_crc32c.value(data))


def _chunks(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Axes are cut from the first on until a chunk is small enough."""
    chunks = [max(1, n) for n in shape]
    for axis in range(len(chunks)):
        if math.prod(chunks) * width <= CHUNK:
            break
        chunks[axis] = max(1, CHUNK // (math.prod(chunks[axis + 1 :]) * width))
    return tuple(chunks)


def chunk_boxes(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[str, tuple[slice, ...]]]:
    """Keys of chunks, and where in the array each lies."""
    for index in product(*(range(-(-n // c)) for n, c in zip(shape, chunks, strict=True))):
        yield "/".join(("c", *map(str, index))), tuple(slice(i * c, min(n, (i + 1) * c)) for i, c, n in zip(index, chunks, shape, strict=True))


@lru_cache(4096)
def _array_json(shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]) -> bytes:
    """The same for every block of a run, so it is made once."""
    return _json(array_metadata(shape, kind, chunks, axes))


def array_metadata(shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]) -> dict[str, Any]:
    """The metadata of an array."""
    numbers = {"name": "bytes", "configuration": {"endian": "little"}} if kind not in ("bool", "int8", "uint8") else {"name": "bytes"}
    fill = _fill_value(kind)
    if kind.startswith("complex"):
        fill = [fill, fill]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": json_value(fill),
        "codecs": [{"name": "vlen-utf8"} if kind == TEXT else numbers, {"name": "crc32c"}],
        "attributes": {},
        "dimension_names": list(axes),
        "storage_transformers": [],
    }


def group_metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": json_value(dict(attributes))}


def _fill_value(kind: str) -> Any:
    """What a reader that ignores checksums returns where a chunk is missing."""
    if kind in ("bool", TEXT):
        return False if kind == "bool" else ""
    if kind.startswith("uint"):
        return int(np.iinfo(kind).max)
    return int(np.iinfo(kind).min) if kind.startswith("int") else float("nan")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _text_bytes(part: np.ndarray) -> bytes:
    texts = [str(text).encode("utf-8", "backslashreplace") for text in part.ravel()]
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(text)) + text for text in texts)


def quoted_name(name: str) -> str:
    """A name as a folder: characters with a meaning to file systems or Zarr are written %XX, and the end of a long name as a hash."""
    quoted = re.sub(r'[%/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]|^[._]|[. ]$', lambda m: f"%{ord(m[0]):02X}", name) or "%"
    quoted = quoted.replace(METADATA, "zarr%2Ejson")
    if len(quoted.encode()) <= 120:
        return quoted
    return quoted.encode()[:80].decode(errors="ignore") + "%" + hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:16]
