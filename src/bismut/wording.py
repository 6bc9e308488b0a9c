"""Counts and lists as they stand in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Control characters but line ends and tabs, marks that turn the direction of writing, and halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def counted(number: int, thing: str) -> str:
    """1 block, 2 blocks."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def first_of(items: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first few, and how many more there are: nobody reads a list of eighty sentences."""
    rest = len(items) - most
    return between.join((*items[:most], f"and {rest} more") if rest > 0 else items)


def printable(text: str) -> str:
    """A text as a terminal may have it: what would move its cursor, colour it or turn it round is spelled, \\x1b."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
