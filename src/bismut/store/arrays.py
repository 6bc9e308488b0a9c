"""Groups of arrays as the files of Zarr format 3: `zarr.json` for every group and array, and chunks beside it.

    chunk = the bytes of its numbers, little-endian, and their CRC-32C;      missing numbers are NaN, or the integer farthest from use

Every chunk is written, also an empty one, so one that is not there is damage and never filling. `stored.py` reads this form and no other.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from bismut.errors import StoreError
from bismut.store.manifest import plain

WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBERS = ("bool", *WHOLE, "float16", "float32", "float64", "complex64", "complex128")
TEXT = "string"
METADATA, ORDER = "zarr.json", "order"
CHUNK = 2**24  # bytes of a chunk, about: small enough to read one for a few numbers, large enough for few files


class Labelled(NamedTuple):
    """An array with names of its axes."""

    axes: tuple[str, ...]
    values: Any


class Group(NamedTuple):
    """Arrays and further groups by name, in their order, and attributes that JSON can hold."""

    members: Mapping[str, Any]
    attributes: Mapping[str, Any] = {}


def encode(group: Group | Mapping[str, Any], at: str = "") -> Iterator[tuple[str, bytes]]:
    """The files of a group, one after another; a plain dictionary is a group without attributes."""
    group = group if isinstance(group, Group) else Group(group)
    yield at + METADATA, _json(describe_group({**group.attributes, ORDER: list(group.members)}))
    for name, member in group.members.items():
        below = f"{at}{safe(name)}/"
        if isinstance(member, Group | Mapping):
            yield from encode(member, below)
        else:
            array = member if isinstance(member, Labelled) else Labelled(tuple(f"{name}_{axis}" for axis in range(np.ndim(member))), member)
            yield from _encode_array(array, below)


def _encode_array(array: Labelled, at: str) -> Iterator[tuple[str, bytes]]:
    values = np.asarray(array.values)
    kind = TEXT if values.dtype.kind == "U" else values.dtype.name
    if kind not in (*NUMBERS, TEXT):
        raise StoreError(f"{at[:-1]} is an array of {values.dtype}; numbers, truth values and text can be stored.")
    chunks = _chunks(values.shape, max(1, values.dtype.itemsize))
    yield at + METADATA, _described(values.shape, kind, chunks, tuple(array.axes))
    for key, box in boxes(values.shape, chunks):
        part = np.asarray(values[box])
        if part.shape != chunks:  # the last chunk of an axis is as long as the others
            padded = np.full(chunks, _blank(kind), values.dtype)
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


def boxes(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[str, tuple[slice, ...]]]:
    """Keys of chunks, and where in the array each lies."""
    for index in product(*(range(-(-n // c)) for n, c in zip(shape, chunks, strict=True))):
        yield "/".join(("c", *map(str, index))), tuple(slice(i * c, min(n, (i + 1) * c)) for i, c, n in zip(index, chunks, shape, strict=True))


@lru_cache(4096)
def _described(shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]) -> bytes:
    """The same for every block of a run."""
    return _json(describe(shape, kind, chunks, axes))


def describe(shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]) -> dict[str, Any]:
    """The metadata of an array."""
    numbers = {"name": "bytes", "configuration": {"endian": "little"}} if kind not in ("bool", "int8", "uint8") else {"name": "bytes"}
    blank = _blank(kind)
    if kind.startswith("complex"):
        blank = [blank, blank]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": plain(blank),
        "codecs": [{"name": "vlen-utf8"} if kind == TEXT else numbers, {"name": "crc32c"}],
        "attributes": {},
        "dimension_names": list(axes),
        "storage_transformers": [],
    }


def describe_group(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": plain(dict(attributes))}


def _blank(kind: str) -> Any:
    """What a reader that does not know of checksums finds where a chunk is missing."""
    if kind in ("bool", TEXT):
        return False if kind == "bool" else ""
    if kind.startswith("uint"):
        return int(np.iinfo(kind).max)
    return int(np.iinfo(kind).min) if kind.startswith("int") else float("nan")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _text_bytes(part: np.ndarray) -> bytes:
    words = [str(word).encode("utf-8", "backslashreplace") for word in part.ravel()]
    return struct.pack("<I", len(words)) + b"".join(struct.pack("<I", len(word)) + word for word in words)


def safe(name: str) -> str:
    """A name as a folder: what a file system or Zarr could take for something else is written %XX, and the end of a long one as a number."""
    quoted = re.sub(r'[%/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]|^[._]|[. ]$', lambda m: f"%{ord(m[0]):02X}", name) or "%"
    quoted = quoted.replace(METADATA, "zarr%2Ejson")
    if len(quoted.encode()) <= 120:
        return quoted
    return quoted.encode()[:80].decode(errors="ignore") + "%" + hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:16]
