"""A gallery system: a name, a paragraph of physics and a builder with parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from bismut.mechanics import System


@dataclass(frozen=True)
class Entry:
    """`build(**parameters)` gives the system, whose signature lists the parameters and their defaults."""

    name: str
    module_docstring: str | None
    build: Callable[..., System]

    @property
    def physics(self) -> str:
        """The docstring of the entry's file: what it is, its equations, what is known of it."""
        return (self.module_docstring or "").strip()
