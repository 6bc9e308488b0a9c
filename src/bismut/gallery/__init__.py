"""Systems to begin with, one per file, each with its physics and its exact facts; a file registers its system by an ENTRY."""

from bismut.gallery.entry import Entry, Fact, Measured, Trial
from bismut.registry import GALLERY

__all__ = ["Entry", "Fact", "Measured", "Trial", "entries", "entry"]


def entries() -> dict[str, Entry]:
    """All systems by name, also those that installed packages publish."""
    return dict(GALLERY.items())


def entry(name: str) -> Entry:
    return GALLERY[name]
