"""What a measurement would hold in memory, before it is made.

    Σ bytes of all values of its program  >  0.8 of what is free     ⟹     not measured, with both numbers

A measurement is evaluated equation by equation, and all values are kept until it ends (`programs.evaluation`), so the sum is what it takes: tangent
maps of many bodies carry every direction through every pair. It is known from shapes, and nothing has been allocated yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bismut.formatting import memory_size
from bismut.operating_system import available_memory
from bismut.programs.evaluation import evaluator

SHARE = 0.8  # of the memory that is free, which a measurement may fill
_LITTLE = 2**26  # bytes that are not checked for


class NotEnoughMemory(Exception):
    """A measurement that does not fit into memory, in words."""


def evaluate(function: Callable, *arguments: Any) -> Any:
    """function(*arguments), evaluated once, where there is enough memory for it."""
    return evaluator(function, check_memory)(*arguments)


def check_memory(needed: int) -> None:
    """Refuse a measurement that keeps so many bytes."""
    free = available_memory() if needed > _LITTLE else None
    if free is not None and needed > SHARE * free:
        raise NotEnoughMemory(f"needs about {memory_size(needed)} of memory, {memory_size(free)} are free. Fewer bodies of the same kind show it")
