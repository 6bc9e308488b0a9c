"""Arrays read from the files of Zarr format 3, if they have the one form that `zarr_writer` writes.

Metadata is compared with what would be written there, so an unknown codec, type or format is refused before a single chunk is opened. Nothing is
executed on reading, and no codec library is used.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable
from itertools import product
from typing import Any

import google_crc32c
import numpy as np

from bismut.documents import parsed, table
from bismut.errors import StoreError
from bismut.store.zarr_writer import METADATA, NUMBERS, ORDER, TEXT, ZarrGroup, array_metadata, chunk_boxes, group_metadata, quoted_name

ReadFile = Callable[[str], bytes]
_LARGEST = 2**48  # numbers of an array


class StoredArray:
    """An array on disk, checked but not read; `read` gives the bytes of a file by its key."""

    def __init__(self, read: ReadFile, at: str, shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]):
        self._read, self._at, self._kind, self._chunks = read, at, kind, chunks
        self.shape, self.axes = shape, axes
        self.dtype = np.dtype(object if kind == TEXT else kind)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.box(tuple(slice(0, n) for n in self.shape)), dtype)

    def box(self, box: tuple[slice, ...]) -> np.ndarray:
        """A box of the array, of unit steps; only the chunks that intersect it are read."""
        ranges = [range(s.start // c, -(-s.stop // c) if s.stop > s.start else s.start // c) for s, c in zip(box, self._chunks, strict=True)]
        if all(map(len, ranges)):
            self._chunk(tuple(r.start for r in ranges))  # one exists and has its stated size, so memory for all of them is not allocated in vain
        values = np.empty([s.stop - s.start for s in box], self.dtype)
        for index in product(*ranges):
            corner = [i * c for i, c in zip(index, self._chunks, strict=True)]
            ends = [min(s.stop, a + c) for s, a, c in zip(box, corner, self._chunks, strict=True)]
            starts = [max(s.start, a) for s, a in zip(box, corner, strict=True)]
            inner = tuple(slice(a - o, b - o) for a, b, o in zip(starts, ends, corner, strict=True))
            outer = tuple(slice(a - s.start, b - s.start) for a, b, s in zip(starts, ends, box, strict=True))
            values[outer] = self._chunk(index)[inner]
        return values.astype(str) if self._kind == TEXT else values

    def _chunk(self, index: tuple[int, ...]) -> np.ndarray:
        key = self._at + "/".join(("c", *map(str, index)))
        contents = self._read(key)
        data, check = contents[:-4], contents[-4:]
        if struct.pack("<I", google_crc32c.value(data)) != check:
            raise StoreError(f"The chunk {key} is altered: its CRC-32C differs.")
        count = math.prod(self._chunks)
        if self._kind == TEXT:
            return _texts(data, count, key).reshape(self._chunks)
        if len(data) != count * self.dtype.itemsize:
            raise StoreError(f"The chunk {key} has {len(data)} bytes of numbers, but its array says {count * self.dtype.itemsize}.")
        return np.frombuffer(data, self.dtype.newbyteorder("<")).astype(self.dtype, copy=False).reshape(self._chunks)


def _texts(data: bytes, count: int, key: str) -> np.ndarray:
    if len(data) < 4 or struct.unpack("<I", data[:4]) != (count,) or 4 * count > len(data):
        raise StoreError(f"The chunk {key} does not hold {count} words.")
    texts, at = np.empty(count, object), 4
    for i in range(count):
        (length,) = struct.unpack_from("<I", data, at) if at + 4 <= len(data) else (len(data),)
        if at + 4 + length > len(data):
            raise StoreError(f"The chunk {key} ends within a word.")
        texts[i] = data[at + 4 : at + 4 + length].decode(errors="replace")
        at += 4 + length
    return texts


def unpack(data: bytes, where: str) -> dict[str, Any]:
    """The arrays of a packed block."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED or member.file_size > len(data) for member in members):
                raise StoreError("it is compressed, which bismut never does")
            return load_group(decode(archive.read, {member.filename for member in members}))
    except (StoreError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as problem:
        raise StoreError(f"{where} cannot be read: {problem}") from None


def load_group(group: ZarrGroup) -> dict[str, Any]:
    """A group as nested dictionaries of arrays in memory."""
    return {name: load_group(member) if isinstance(member, ZarrGroup) else np.asarray(member) for name, member in group.members.items()}


def decode(read: ReadFile, keys: set[str], at: str = "") -> ZarrGroup:
    """The group whose files have these keys, its arrays as `StoredArray`. Files that belong to no array are refused."""
    used: set[str] = set()
    group = _decode(read, keys, at, used)
    if keys - used:
        raise StoreError(f"The file {min(keys - used)!r} belongs to no array of this run. It is not read.")
    return group


def _decode(read: ReadFile, keys: set[str], at: str, used: set[str]) -> ZarrGroup:
    where = at + METADATA
    if where not in keys:
        raise StoreError(f"{where} is not among the files that were committed.")
    meta = parsed(read(where), where, table())
    used.add(where)
    attributes = meta.get("attributes")
    if not isinstance(attributes, dict):
        raise StoreError(f"{where}: expected attributes, got {str(attributes)[:200]}.")
    order = attributes.pop(ORDER, None)
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order) or len(set(order)) < len(order):
        raise StoreError(f"{where}: the attribute {ORDER!r} should list the names of the members.")
    _check_same(meta, group_metadata(attributes), where)
    members: dict[str, Any] = {}
    for name in order:
        below = f"{at}{quoted_name(name)}/"
        key = below + METADATA
        is_array = key in keys and parsed(read(key), key, table()).get("node_type") == "array"
        members[name] = (_decode_array if is_array else _decode)(read, keys, below, used)
    return ZarrGroup(members, attributes)


def _decode_array(read: ReadFile, keys: set[str], at: str, used: set[str]) -> StoredArray:
    where = at + METADATA
    meta = parsed(read(where), where, table())
    shape, chunks, kind, axes = (_lengths(meta.get("shape")), _chunk_shape(meta), meta.get("data_type"), meta.get("dimension_names"))
    if shape is None or chunks is None or len(shape) != len(chunks) or not all(c > 0 for c in chunks) or kind not in (*NUMBERS, TEXT):
        raise StoreError(f"{where}: expected an array of known type and shape, got data_type {kind!r}, shape {meta.get('shape')!r}.")
    if math.prod(max(1, n) for n in shape) > _LARGEST:
        raise StoreError(f"{where}: expected an array that a memory can hold, got shape {shape}.")
    if not isinstance(axes, list) or len(axes) != len(shape) or not all(isinstance(axis, str) for axis in axes):
        raise StoreError(f"{where}: expected a name for each axis, got {axes!r}.")
    _check_same(meta, array_metadata(shape, kind, chunks, tuple(axes)), where)
    count = math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True))
    expected = {at + key for key, _ in chunk_boxes(shape, chunks)} if count <= len(keys) else {f"{at}c"}
    if missing := expected - keys:
        raise StoreError(f"{where}: the array has {count} chunks, but {min(missing)} is not among the files that were committed.")
    used |= {where, *expected}
    return StoredArray(read, at, shape, kind, chunks, tuple(axes))


def _check_same(meta: dict[str, Any], expected: dict[str, Any], where: str) -> None:
    for key in (*expected, *meta):
        if key not in meta or key not in expected or meta[key] != expected[key] or type(meta[key]) is not type(expected[key]):
            raise StoreError(f"{where}: expected {key} = {str(expected.get(key))[:200]}, got {str(meta.get(key))[:200]}. It is not read.")


def _lengths(value: Any) -> tuple[int, ...] | None:
    good = isinstance(value, list) and all(type(n) is int and 0 <= n < 2**62 for n in value)
    return tuple(value) if good else None


def _chunk_shape(meta: dict[str, Any]) -> tuple[int, ...] | None:
    grid = meta.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) else None
    return _lengths(configuration.get("chunk_shape")) if isinstance(configuration, dict) else None
