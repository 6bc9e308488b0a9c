"""A sample of a stream that stands for all of it, by rank (Munro & Paterson; Manku, Rajagopalan & Lindsay).

    buffers of K sorted values, each value standing for 2^l of the stream;  two of one level become one of the next: sorted together, every other kept

Which values are kept depends on their order alone, so a heavy tail costs nothing: the share of the stream that lies below a value is right to L/(2K),
L = log₂(N/4K) the number of levels (0.3 % for 10¹² values, and a tenth of that as a rule), and exact for the first 4K values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

K = 2048
_FULL = 4 * K  # values that are kept as they are


class Plain(NamedTuple):
    """A sketch as arrays, to be stored and sent."""

    waiting: np.ndarray
    levels: tuple[np.ndarray, ...]
    turns: int
    low: float
    high: float


def fits(plain: Any) -> bool:
    """Whether something stored is a sketch: rows of real numbers, how often the turn changed, and the range."""
    if type(plain) is not Plain or not isinstance(plain.levels, tuple):
        return False
    rows = all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind == "f" for part in (plain.waiting, *plain.levels))
    return rows and type(plain.turns) is int and type(plain.low) is float and type(plain.high) is float


class Sketch:
    """Values not yet sorted in, and one buffer per level, an empty one for none; level l stands for 2^(l + 2) values each."""

    def __init__(self, plain: Plain | None = None):
        self.waiting, levels, self.turns, self.low, self.high = plain or Plain(np.zeros(0), (), 0, np.inf, -np.inf)
        self.levels = list(levels)

    def plain(self) -> Plain:
        return Plain(self.waiting, tuple(self.levels), self.turns, self.low, self.high)

    def add(self, values: np.ndarray) -> None:
        if not values.size:
            return
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        waiting = np.concatenate([self.waiting, values])
        while len(waiting) >= _FULL:
            self._carry(np.sort(waiting[:_FULL])[2::4], 0)
            waiting = waiting[_FULL:]
        self.waiting = waiting.copy()

    def take(self, other: Sketch) -> None:
        """The other stream too: levels add up like binary digits."""
        self.add(other.waiting)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for level, buffer in enumerate(other.levels):
            if buffer.size:
                self._carry(buffer, level)

    def _carry(self, buffer: np.ndarray, level: int) -> None:
        while True:
            self.levels += [np.zeros(0)] * (level + 1 - len(self.levels))
            other = self.levels[level]
            if not other.size:
                self.levels[level] = buffer
                return
            self.levels[level] = np.zeros(0)
            self.turns += 1  # the odd ones and the even ones in turn, so that neither end is favoured
            buffer, level = np.sort(np.concatenate([other, buffer]))[self.turns % 2 :: 2], level + 1

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """All values that are kept, and what each stands for."""
        parts = [(self.waiting, 1.0), *((buffer, 4.0 * 2**level) for level, buffer in enumerate(self.levels))]
        return np.concatenate([values for values, _ in parts]), np.concatenate([np.full(len(values), weight) for values, weight in parts])


def quantile(sketches: list[Sketch], levels: tuple[float, ...]) -> np.ndarray:
    """The least values at or below which a share of all streams together lies."""
    values, weights = (np.concatenate(parts) for parts in zip(*(sketch.weighted() for sketch in sketches), strict=True))
    if not len(values):
        return np.full(len(levels), np.nan)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    found = values[order][np.minimum(np.searchsorted(below, np.asarray(levels) * below[-1]), len(values) - 1)]
    low, high = min(sketch.low for sketch in sketches), max(sketch.high for sketch in sketches)
    return np.where(np.asarray(levels) <= 0, low, np.where(np.asarray(levels) >= 1, high, found))
