"""Where an entry lies in memory: one place for all lanes, or one for each.

int, or a value of the code   the same for all
Span                          base + step · lane: lanes lie along an axis
Scattered                     each lane has its own
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

LONG = ir.IntType(64)

Index = Any  # a whole number: an int where it is known, else a value of the code (64 bits); or a Span or Scattered


class Span:
    """base + step · lane."""

    __slots__ = ("base", "step")

    def __init__(self, base: Any, step: int = 1):
        self.base, self.step = base, step

    def of(self, builder: ir.IRBuilder, lane: int) -> Any:
        return plus(builder, self.base, self.step * lane)


class Scattered:
    """A place for each lane."""

    __slots__ = ("places",)

    def __init__(self, places: list):
        self.places = places

    def of(self, builder: ir.IRBuilder, lane: int) -> Any:
        return self.places[lane]


def spread(i: Index) -> bool:
    """Whether lanes have places of their own."""
    return isinstance(i, Span | Scattered)


def times(builder: ir.IRBuilder, i: Index, n: int) -> Index:
    if isinstance(i, int):
        return i * n
    if n == 0:
        return 0
    if isinstance(i, Span):
        return Span(times(builder, i.base, n), i.step * n)
    if isinstance(i, Scattered):
        return Scattered([times(builder, place, n) for place in i.places])
    return i if n == 1 else builder.mul(i, LONG(n))


def plus(builder: ir.IRBuilder, i: Index, j: Index) -> Index:
    if isinstance(i, int) and isinstance(j, int):
        return i + j
    if isinstance(i, int) or (spread(j) and not spread(i)):
        i, j = j, i
    if isinstance(j, int) and j == 0:
        return i
    if isinstance(i, Span) and not isinstance(j, Scattered):
        return Span(plus(builder, i.base, j.base), i.step + j.step) if isinstance(j, Span) else Span(plus(builder, i.base, j), i.step)
    if isinstance(i, Span):
        i, j = j, i
    if isinstance(i, Scattered):
        return Scattered([plus(builder, place, j.of(builder, k) if isinstance(j, Span | Scattered) else j) for k, place in enumerate(i.places)])
    return builder.add(i, LONG(j) if isinstance(j, int) else j)
