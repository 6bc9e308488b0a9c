"""Counts and lists as they stand in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """1 block, 2 blocks."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def first_of(items: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first few, and how many more there are: nobody reads a list of eighty sentences."""
    rest = len(items) - most
    return between.join((*items[:most], f"and {rest} more") if rest > 0 else items)
