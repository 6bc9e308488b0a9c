"""Memory for lists of neighbours: it grows when a list is full, and never is a pair left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.errors import BismutError
from bismut.programs.codegen.neighbours import DONE, FULL, WRONG, ListFacts

_FIRST = 64  # neighbours of a body for which there is room at first, where nobody knows how dense they are
_MOST = 2**31 - 1  # entries of a list: their places are 32-bit numbers


class ListMemory:
    """How much room the list of a function wants, as far as is known."""

    def __init__(self, facts: ListFacts):
        self._facts = facts
        self._size = facts.bodies * (_FIRST + 2 * facts.width) + 1024

    def arguments(self, check: bool) -> list[Any]:
        """Arguments of the list routine: two buffers, capacity, report, check flag."""
        try:
            lists = [np.empty(self._size, np.int32) for _ in range(2)]
        except MemoryError:
            raise BismutError(
                f"{self._facts.bodies} bodies ({self._facts.description}) have {self._size:.3g} neighbours: too many for the free memory. "
                "Use a shorter cutoff, or place the bodies further apart."
            ) from None
        return [*lists, self._size, np.zeros(3, np.int64), int(check)]

    def settle(self, arguments: list[Any]) -> bool:
        """Whether the list fitted; if not, there will be more room."""
        report = arguments[3]
        if report[WRONG]:
            raise BismutError(f'A list of neighbours of {self._facts.bodies} bodies misses interacting pairs. mode="xla" needs no list.')
        if report[FULL]:
            self._size = max(self._size, min(_MOST, max(int(report[FULL]), 2 * arguments[2])))
            if self._size == arguments[2]:
                raise BismutError(f"{self._facts.bodies} bodies have more than {_MOST:.3g} neighbours. Use a shorter cutoff.")
        return not report[FULL]


def was_checked(arguments: list[Any]) -> bool:
    return bool(arguments[3][DONE])
