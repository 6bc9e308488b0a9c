"""Where the rows of one watcher wait until there are enough of them: they are handed over in portions whose size depends on the block alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.ensembles import written
from bismut.ensembles.observers.watcher import Seen, Watcher

PORTION = 2**20  # bytes of rows that a watcher is handed at a time: they stay in the cache


def portion_of(size: int) -> int:
    """Looks at a time, a power of two, for rows of so many bytes."""
    return 2 ** int(np.log2(min(max(PORTION / max(size, 1), 1), 4096)))


class Desk:
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
            self._hand(rows, steps)
            return
        self._rows.append(rows)
        self._steps += steps
        if len(self._steps) >= self.portion:
            rows, steps_ = self._all(), self._steps
            whole = len(steps_) // self.portion * self.portion
            for first in range(0, whole, self.portion):
                part = slice(first, first + self.portion)
                self._hand(jax.tree.map(lambda leaf, part=part: leaf[part], rows), steps_[part])
            self._rows = [jax.tree.map(lambda leaf: leaf[whole:], rows)] if whole < len(steps_) else []
            self._steps = steps_[whole:]

    def clear(self) -> None:
        """What is left goes too."""
        if self._rows:
            self._hand(self._all(), self._steps)
            self._rows, self._steps = [], []

    def _all(self) -> Any:
        return self._rows[0] if len(self._rows) == 1 else jax.tree.map(lambda *parts: np.concatenate(parts), *self._rows)

    def _hand(self, rows: Any, steps: range | list[int]) -> None:
        when = np.asarray(steps)
        counted = None if self.failed is None else self.failed >= when[:, None]
        self.tally = self.watcher.collect(self.tally, Seen(rows, when, self.trajectories, counted))

    def frozen(self) -> tuple[Any, Any]:
        """All that lies here as arrays, and their form."""
        waiting = (self._all(), np.asarray(self._steps)) if self._rows else None
        return written.write((None if self.tally is None else self.watcher.freeze(self.tally), waiting))

    def thaw(self, arrays: Any, form: Any) -> None:
        """What `frozen` gave lies here again."""
        tally, waiting = written.read(arrays, form, written.classes([self.watcher]))
        self.tally = None if tally is None else self.watcher.thaw(tally)
        self._rows, self._steps = ([], []) if waiting is None else ([waiting[0]], waiting[1].tolist())
