"""The formats, one file each with a FORMAT."""

from pathlib import Path

from bismut.catalogue import chosen, members
from bismut.errors import BismutError
from bismut.sharing.format import Format


def formats() -> dict[str, Format]:
    return members("bismut.sharing.formats", "FORMAT")


def format_of(file: Path, name: str | None = None) -> Format:
    """The format that is named, or that the ending of a file tells."""
    known = formats()
    if name is not None:
        return chosen(name, known, "format")
    for one in known.values():
        if file.suffix.lower() in one.endings:
            return one
    endings = ", ".join(ending for one in known.values() for ending in one.endings)
    raise BismutError(f"The extension of {file.name!r} is not that of a known format. Known: {endings}; or name one of {', '.join(known)}.")
