"""How the trajectories of a batch lie in memory, one array for each leaf.

ColumnBatch   (entries, n), trajectories side by side, n a multiple of the width: lanes are trajectories
RowBatch     (n, entries), one trajectory after the other: lanes are bodies
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

LINE = 64  # bytes of the cache that come together


def room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that begins where a line of the cache does, so that a vector lies in one line."""
    dtype = np.dtype(dtype)
    raw = np.empty(prod(shape) * dtype.itemsize + LINE, np.uint8)
    return np.ndarray(shape, dtype, raw, -raw.ctypes.data % LINE)


def copy(x: np.ndarray) -> np.ndarray:
    new = room(x.shape, x.dtype)
    new[...] = x
    return new


class ColumnBatch:
    """Places past the last trajectory repeat it."""

    def __init__(self, width: int):
        self._width = width

    def places(self, count: int) -> int:
        return -(-count // self._width) * self._width

    def groups(self, n: int) -> int:
        """How many times around the loop over trajectories."""
        return n // self._width

    def empty(self, avals, n: int, *looks: int) -> list[np.ndarray]:
        return [room((*looks, aval.size, n), aval.dtype) for aval in avals]

    def memory(self, avals, n: int) -> list[np.ndarray]:
        """For what watches remember, (groups, entries, W): what belongs to a group lies together."""
        return [room((n // self._width, aval.size, self._width), aval.dtype) for aval in avals]

    def recalled(self, x: np.ndarray, aval: Any, count: int) -> np.ndarray:
        return np.moveaxis(x, 1, 2).reshape(-1, *aval.shape)[:count]

    def filled(self, leaf: np.ndarray, aval: Any, n: int) -> np.ndarray:
        """From an array with trajectories first, or one for all."""
        count, new = len(leaf), room((aval.size, n), aval.dtype)
        flat = leaf.reshape(count, aval.size).T
        new[:, :count] = flat
        new[:, count:] = flat[:, -1:]
        return new

    def shaped(self, x: np.ndarray, aval: Any, count: int) -> np.ndarray:
        """To one with trajectories first, after leading axes of looks."""
        lead, own = x.ndim - 2, x.ndim - 2 + len(aval.shape)
        order = *range(lead), own, *range(lead, own)
        return x[..., :count].reshape(*x.shape[:lead], *aval.shape, count).transpose(order)


class RowBatch:
    """Nothing is filled up."""

    def __init__(self, width: int):
        del width

    def places(self, count: int) -> int:
        return count

    def groups(self, n: int) -> int:
        return n

    def empty(self, avals, n: int, *looks: int) -> list[np.ndarray]:
        return [room((*looks, n, aval.size), aval.dtype) for aval in avals]

    def memory(self, avals, n: int) -> list[np.ndarray]:
        return self.empty(avals, n)

    def recalled(self, x: np.ndarray, aval: Any, count: int) -> np.ndarray:
        return self.shaped(x, aval, count)

    def filled(self, leaf: np.ndarray, aval: Any, n: int) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(leaf.reshape(len(leaf), aval.size), (n, aval.size)), aval.dtype)

    def shaped(self, x: np.ndarray, aval: Any, count: int) -> np.ndarray:
        return x.reshape(*x.shape[:-2], count, *aval.shape)
