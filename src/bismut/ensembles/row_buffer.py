"""Row buffer: rows of a watcher are handed over in portions whose size depends on the block alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.ensembles import tree_codec
from bismut.ensembles.observers.watcher import Looks, Watcher

PORTION = 2**20  # bytes of rows that a watcher is handed at a time: they stay in the cache


def portion_of(size: int) -> int:
    """Looks at a time, a power of two, for rows of so many bytes."""
    return 2 ** int(np.log2(min(max(PORTION / max(size, 1), 1), 4096)))


class RowBuffer:
    """The rows of one watcher until there are enough of them for a portion."""

    def __init__(self, watcher: Watcher, trajectories: np.ndarray, portion: int):
        self.watcher, self.trajectories, self.portion = watcher, trajectories, portion
        self.tally: Any = None
        self._rows: list = []
        self._steps: list[int] = []
        self.failed: np.ndarray | None = None

    def take(self, rows: Any, steps: range, failed: np.ndarray | None) -> None:
        self.failed = failed
        if not jax.tree.leaves(rows):
            return
        if not self._rows and len(steps) == self.portion:
            self._hand_over(rows, steps)
            return
        self._rows.append(rows)
        self._steps += steps
        if len(self._steps) >= self.portion:
            rows, steps_ = self._all(), self._steps
            full = len(steps_) // self.portion * self.portion
            for first in range(0, full, self.portion):
                part = slice(first, first + self.portion)
                self._hand_over(jax.tree.map(lambda leaf, part=part: leaf[part], rows), steps_[part])
            self._rows = [jax.tree.map(lambda leaf: leaf[full:], rows)] if full < len(steps_) else []
            self._steps = steps_[full:]

    def flush(self) -> None:
        """Hand over the remainder."""
        if self._rows:
            self._hand_over(self._all(), self._steps)
            self._rows, self._steps = [], []

    def _all(self) -> Any:
        return self._rows[0] if len(self._rows) == 1 else jax.tree.map(lambda *parts: np.concatenate(parts), *self._rows)

    def _hand_over(self, rows: Any, steps: range | list[int]) -> None:
        when = np.asarray(steps)
        counted = None if self.failed is None else self.failed >= when[:, None]
        self.tally = self.watcher.collect(self.tally, Looks(rows, when, self.trajectories, counted))

    def frozen(self) -> tuple[Any, Any]:
        """Tally and waiting rows as arrays, and their form."""
        waiting = (self._all(), np.asarray(self._steps)) if self._rows else None
        return tree_codec.write((None if self.tally is None else self.watcher.freeze(self.tally), waiting))

    def thaw(self, arrays: Any, form: Any) -> None:
        """Restore what `frozen` gave."""
        tally, waiting = tree_codec.read(arrays, form, tree_codec.classes([self.watcher]))
        self.tally = None if tally is None else self.watcher.thaw(tally)
        self._rows, self._steps = ([], []) if waiting is None else ([waiting[0]], waiting[1].tolist())
