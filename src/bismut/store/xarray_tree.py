"""Groups of arrays as labelled trees of xarray. Numbers on disk are read when they are used, chunk by chunk, and checked then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bismut.errors import StoreError
from bismut.store.zarr_reader import StoredArray
from bismut.store.zarr_writer import ZarrGroup, quoted_name

if TYPE_CHECKING:
    import xarray

_COORDINATES = "coordinates"  # the attribute in which xarray looks for names of coordinates that are no axes


def tree_of(group: ZarrGroup) -> xarray.DataTree:
    """A group, on disk or in memory, as a tree in its order."""
    import xarray

    sets: dict[str, xarray.Dataset] = {}
    try:
        _collect(group, "/", sets)
        return xarray.DataTree.from_dict(sets)
    except (ValueError, KeyError, TypeError) as problem:  # axes of several lengths, names that contradict each other
        raise StoreError(f"The arrays of this run do not fit together: {problem}.") from problem


def _collect(group: ZarrGroup, at: str, sets: dict[str, xarray.Dataset]) -> None:
    sets[at] = _dataset(group)
    for name, member in group.members.items():
        if isinstance(member, ZarrGroup):
            label = quoted_name(name) if "/" in name or name in ("", ".", "..") else name  # xarray separates groups by slashes
            _collect(member, f"{at.rstrip('/')}/{label}", sets)


def _dataset(group: ZarrGroup) -> xarray.Dataset:
    import xarray

    members = {name: member for name, member in group.members.items() if not isinstance(member, ZarrGroup)}
    values = lambda member: _lazy(member) if isinstance(member, StoredArray) else np.asarray(member.values)
    arrays = {name: xarray.Variable(member.axes, values(member)) for name, member in members.items()}
    attributes = dict(group.attributes)
    coordinates = {name for name, array in arrays.items() if array.dims == (name,)} | set(str(attributes.pop(_COORDINATES, "")).split())
    data = {name: array for name, array in arrays.items() if name not in coordinates}
    return xarray.Dataset(data, {name: array for name, array in arrays.items() if name in coordinates}, attributes)


def _lazy(array: StoredArray) -> Any:
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class LazyArray(BackendArray):
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, key: Any) -> np.ndarray:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._basic)

        def _basic(self, key: tuple[Any, ...]) -> np.ndarray:
            """Integers and slices: the smallest box around them is read, and indexed."""
            ranges = [range(n)[k] if isinstance(k, slice) else range(k, k + 1) for k, n in zip(key, self.shape, strict=True)]
            box = tuple(slice(min(r), max(r) + 1) if len(r) else slice(0, 0) for r in ranges)
            inner = tuple(k - b.start if not isinstance(k, slice) else np.asarray(r, int) - b.start for k, r, b in zip(key, ranges, box, strict=True))
            part = array.box(box)
            for axis in reversed(range(len(inner))):
                part = part.take(inner[axis], axis) if part.shape[axis] or not np.ndim(inner[axis]) else part
            return np.asarray(part)

    return indexing.LazilyIndexedArray(LazyArray())
