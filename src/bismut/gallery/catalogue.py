"""All gallery systems by name: every module of this package that has an ENTRY."""

from bismut.catalogue import chosen, members
from bismut.gallery.entry import Entry


def entries() -> dict[str, Entry]:
    return members("bismut.gallery", "ENTRY")


def entry(name: str) -> Entry:
    return chosen(name, entries(), "gallery system")
