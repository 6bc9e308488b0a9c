"""What a format is: a name, endings of files, and how it is written and, perhaps, read. One file in `formats/` each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bismut.errors import BismutError
from bismut.sharing.frames import Frames
from bismut.sharing.source import Shared


class Sheets(NamedTuple):
    """All that a run found, for formats that hold tables: the run, and the frames of kept trajectories, if it has bodies."""

    run: Shared
    moving: dict[int, Frames]


class Format(NamedTuple):
    """A format.

    name     as in `--to gsd`
    endings  of files, the first one is written
    words    what it is, and who reads it
    moving   whether a file holds one trajectory of bodies: write(frames, file); else all that was found: write(sheets, place)
    write    returns the files it wrote
    read     (file, frame) ↦ Frames with that one frame; None where states are not read from it
    folder   whether a place without an ending is a folder of files
    """

    name: str
    endings: tuple[str, ...]
    words: str
    moving: bool
    write: Callable[[Any, Path], list[Path]]
    read: Callable[[Path, int], Frames] | None = None
    folder: bool = False


def needed(package: str, what: str) -> Any:
    """A package of the extra `share`, or a sentence that says how to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as problem:
        name = package.partition(".")[0]
        raise BismutError(f"{what} needs {name}, which is not installed here: pip install 'bismut[share]', or pip install {name}.") from problem
