"""Stored groups as labelled trees of xarray. Numbers are read when they are asked for, chunk by chunk, and checked then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bismut.errors import StoreError
from bismut.store.arrays import Group, safe
from bismut.store.stored import Stored

if TYPE_CHECKING:
    import xarray

_COORDINATES = "coordinates"  # the attribute in which xarray looks for names of coordinates that are no axes


def tree_of(group: Group) -> xarray.DataTree:
    """A group as a tree, lazily and in its order."""
    import xarray

    found: dict[str, xarray.Dataset] = {}
    try:
        _collect(group, "/", found)
        return xarray.DataTree.from_dict(found)
    except (ValueError, KeyError, TypeError) as problem:  # axes of several lengths, names that contradict each other
        raise StoreError(f"The arrays of this run do not fit together: {problem}.") from problem


def _collect(group: Group, at: str, found: dict[str, Any]) -> None:
    found[at] = _dataset(group)
    for name, member in group.members.items():
        if isinstance(member, Group):
            label = safe(name) if "/" in name or name in ("", ".", "..") else name  # xarray separates groups by slashes
            _collect(member, f"{at.rstrip('/')}/{label}", found)


def _dataset(group: Group) -> xarray.Dataset:
    import xarray

    arrays = {name: xarray.Variable(member.axes, _lazy(member)) for name, member in group.members.items() if isinstance(member, Stored)}
    axes = {axis for array in arrays.values() for axis in array.dims}
    attributes = dict(group.attributes)
    coordinates = {name for name in arrays if name in axes and arrays[name].dims == (name,)} | set(str(attributes.pop(_COORDINATES, "")).split())
    data = {name: array for name, array in arrays.items() if name not in coordinates}
    return xarray.Dataset(data, {name: array for name, array in arrays.items() if name in coordinates}, attributes)


def _lazy(array: Stored) -> Any:
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Lazy(BackendArray):
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, key: Any) -> np.ndarray:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._part)

        def _part(self, key: tuple[Any, ...]) -> np.ndarray:
            """Integers and slices: the smallest box around them, and from it what was asked for."""
            ranges = [range(n)[k] if isinstance(k, slice) else range(k, k + 1) for k, n in zip(key, self.shape, strict=True)]
            box = tuple(slice(min(r), max(r) + 1) if len(r) else slice(0, 0) for r in ranges)
            inner = tuple(k - b.start if not isinstance(k, slice) else np.asarray(r, int) - b.start for k, r, b in zip(key, ranges, box, strict=True))
            part = array.part(box)
            for axis in reversed(range(len(inner))):
                part = part.take(inner[axis], axis) if part.shape[axis] or not np.ndim(inner[axis]) else part
            return np.asarray(part)

    return indexing.LazilyIndexedArray(Lazy())
