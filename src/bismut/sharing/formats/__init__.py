"""Formats, one file each with a FORMAT: a name, extensions of files, and how it is written and, perhaps, read."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bismut.errors import BismutError
from bismut.registry import FORMATS
from bismut.sharing.frames import Frames
from bismut.sharing.source import ExportSource


class TableSource(NamedTuple):
    """Everything observed in a run, for formats that hold tables; and the frames of recorded trajectories, if it has bodies."""

    run: ExportSource
    moving: dict[int, Frames]


class Format(NamedTuple):
    """A format.

    name     as in `--to gsd`
    endings  of files; the first one is written
    words    what it is, and which programs read it
    moving   whether a file holds one trajectory of bodies: write(frames, file); else everything observed: write(source, place)
    write    returns the files it wrote
    read     (file, frame) ↦ Frames with that one frame; None where states are not read from it
    folder   whether a path without an ending is a folder of files
    units    of length, mass and time that its numbers have, where it is told those of the run
    """

    name: str
    endings: tuple[str, ...]
    words: str
    moving: bool
    write: Callable[[Any, Path], list[Path]]
    read: Callable[[Path, int], Frames] | None = None
    folder: bool = False
    units: tuple[str, str, str] | None = None


def require(package: str, what: str) -> Any:
    """A package of the extra `share`, or a sentence that says how to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as problem:
        name = package.partition(".")[0]
        raise BismutError(f"{what} needs {name}, which is not installed here: pip install 'bismut[share]', or pip install {name}.") from problem


def formats() -> dict[str, Format]:
    return dict(FORMATS.items())


def format_of(file: Path, name: str | None = None) -> Format:
    """The format of that name, or of the ending of a file."""
    if name is not None:
        return FORMATS[name]
    known = formats()
    for one in known.values():
        if file.suffix.lower() in one.endings:
            return one
    endings = ", ".join(ending for one in known.values() for ending in one.endings)
    raise BismutError(f"The extension of {file.name!r} is not that of a known format. Known: {endings}; or name one of {', '.join(known)}.")
