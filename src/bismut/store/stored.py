"""Arrays read from the files of Zarr format 3, if they have the one form that `arrays.py` writes.

Metadata is compared with what would be written there, so a codec, a type or a format that is not known is refused before a single chunk is opened.
Nothing is executed on reading, and no library of codecs is asked.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import product
from typing import Any

import google_crc32c
import numpy as np

from bismut.documents import parsed, table
from bismut.errors import StoreError
from bismut.store.arrays import METADATA, NUMBERS, ORDER, TEXT, Group, boxes, describe, describe_group, safe

Get = Callable[[str], bytes]
_LARGEST = 2**48  # numbers of an array


class Stored:
    """An array on disk, checked but not read; `get` gives the bytes of a file by its key."""

    def __init__(self, get: Get, at: str, shape: tuple[int, ...], kind: str, chunks: tuple[int, ...], axes: tuple[str, ...]):
        self._get, self._at, self._kind, self._chunks = get, at, kind, chunks
        self.shape, self.axes = shape, axes
        self.dtype = np.dtype(object if kind == TEXT else kind)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.part(tuple(slice(0, n) for n in self.shape)), dtype)

    def part(self, wanted: tuple[slice, ...]) -> np.ndarray:
        """A box of the array, of steps one; only the chunks that it meets are read."""
        ranges = [range(s.start // c, -(-s.stop // c) if s.stop > s.start else s.start // c) for s, c in zip(wanted, self._chunks, strict=True)]
        if all(map(len, ranges)):
            self._chunk(tuple(r.start for r in ranges))  # one is there, and as large as is said: so memory for all of them is not asked for in vain
        found = np.empty([s.stop - s.start for s in wanted], self.dtype)
        for index in product(*ranges):
            corner = [i * c for i, c in zip(index, self._chunks, strict=True)]
            ends = [min(s.stop, a + c) for s, a, c in zip(wanted, corner, self._chunks, strict=True)]
            starts = [max(s.start, a) for s, a in zip(wanted, corner, strict=True)]
            inner = tuple(slice(a - o, b - o) for a, b, o in zip(starts, ends, corner, strict=True))
            outer = tuple(slice(a - s.start, b - s.start) for a, b, s in zip(starts, ends, wanted, strict=True))
            found[outer] = self._chunk(index)[inner]
        return found.astype(str) if self._kind == TEXT else found

    def _chunk(self, index: tuple[int, ...]) -> np.ndarray:
        key = self._at + "/".join(("c", *map(str, index)))
        whole = self._get(key)
        data, check = whole[:-4], whole[-4:]
        if struct.pack("<I", google_crc32c.value(data)) != check:
            raise StoreError(f"The chunk {key} is altered: its CRC-32C differs.")
        count = math.prod(self._chunks)
        if self._kind == TEXT:
            return _text(data, count, key).reshape(self._chunks)
        if len(data) != count * self.dtype.itemsize:
            raise StoreError(f"The chunk {key} has {len(data)} bytes of numbers, but its array says {count * self.dtype.itemsize}.")
        return np.frombuffer(data, self.dtype.newbyteorder("<")).astype(self.dtype, copy=False).reshape(self._chunks)


def _text(data: bytes, count: int, key: str) -> np.ndarray:
    if len(data) < 4 or struct.unpack("<I", data[:4]) != (count,) or 4 * count > len(data):
        raise StoreError(f"The chunk {key} does not hold {count} words.")
    found, at = np.empty(count, object), 4
    for i in range(count):
        (length,) = struct.unpack_from("<I", data, at) if at + 4 <= len(data) else (len(data),)
        if at + 4 + length > len(data):
            raise StoreError(f"The chunk {key} ends within a word.")
        found[i] = data[at + 4 : at + 4 + length].decode(errors="replace")
        at += 4 + length
    return found


def decode(get: Get, keys: set[str], at: str = "") -> Group:
    """The group whose files have these keys, its arrays as `Stored`. Files that belong to nothing are refused."""
    used: set[str] = set()
    group = _decode(get, keys, at, used)
    if keys - used:
        raise StoreError(f"The file {min(keys - used)!r} belongs to no array of this run. It is not read.")
    return group


def _decode(get: Get, keys: set[str], at: str, used: set[str]) -> Group:
    where = at + METADATA
    if where not in keys:
        raise StoreError(f"{where} is not among the files that were committed.")
    meta = _parsed(get(where), where)
    used.add(where)
    attributes = meta.get("attributes")
    if not isinstance(attributes, dict):
        raise StoreError(f"{where}: expected attributes, got {str(attributes)[:200]}.")
    order = attributes.pop(ORDER, None)
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order) or len(set(order)) < len(order):
        raise StoreError(f"{where}: the attribute {ORDER!r} should list the names of the members.")
    _same(meta, describe_group(attributes), where)
    members: dict[str, Any] = {}
    for name in order:
        below = f"{at}{safe(name)}/"
        kind = _parsed(get(below + METADATA), below + METADATA).get("node_type") if below + METADATA in keys else None
        members[name] = _decode_array(get, keys, below, used) if kind == "array" else _decode(get, keys, below, used)
    return Group(members, attributes)


def _decode_array(get: Get, keys: set[str], at: str, used: set[str]) -> Stored:
    where = at + METADATA
    meta = _parsed(get(where), where)
    shape, chunks, kind, axes = (_list(meta.get("shape")), _chunk_shape(meta), meta.get("data_type"), meta.get("dimension_names"))
    if shape is None or chunks is None or len(shape) != len(chunks) or not all(c > 0 for c in chunks) or kind not in (*NUMBERS, TEXT):
        raise StoreError(f"{where}: expected an array of known type and shape, got data_type {kind!r}, shape {meta.get('shape')!r}.")
    if math.prod(max(1, n) for n in shape) > _LARGEST:
        raise StoreError(f"{where}: expected an array that a memory can hold, got shape {shape}.")
    if not isinstance(axes, list) or len(axes) != len(shape) or not all(isinstance(axis, str) for axis in axes):
        raise StoreError(f"{where}: expected a name for each axis, got {axes!r}.")
    _same(meta, describe(shape, kind, chunks, tuple(axes)), where)
    count = math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True))
    wanted = {at + key for key, _ in boxes(shape, chunks)} if count <= len(keys) else {f"{at}c"}
    if missing := wanted - keys:
        raise StoreError(f"{where}: the array has {count} chunks, but {min(missing)} is not among the files that were committed.")
    used |= {where, *wanted}
    return Stored(get, at, shape, kind, chunks, tuple(axes))


def _parsed(data: bytes, where: str) -> dict[str, Any]:
    return parsed(data, where, table())


def _same(meta: dict[str, Any], wanted: dict[str, Any], where: str) -> None:
    for key in (*wanted, *meta):
        if key not in meta or key not in wanted or meta[key] != wanted[key] or type(meta[key]) is not type(wanted[key]):
            raise StoreError(f"{where}: expected {key} = {str(wanted.get(key))[:200]}, got {str(meta.get(key))[:200]}. It is not read.")


def _list(value: Any) -> tuple[int, ...] | None:
    good = isinstance(value, list) and all(type(n) is int and 0 <= n < 2**62 for n in value)
    return tuple(value) if good else None


def _chunk_shape(meta: dict[str, Any]) -> tuple[int, ...] | None:
    grid = meta.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) else None
    return _list(configuration.get("chunk_shape")) if isinstance(configuration, dict) else None


def values_of(group: Group) -> dict[str, Any]:
    """A group read: nested dictionaries of arrays."""
    return {name: values_of(member) if isinstance(member, Group) else np.asarray(member) for name, member in group.members.items()}
