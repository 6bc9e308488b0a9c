"""The folder of a run: what stands where.

    manifest.jsonl     what is committed, line by line, with sizes and checksums
    lock               which process writes here, while one does
    run.toml           the configuration, every default written out
    provenance.json    when, with which command, versions, seed and machine it was made, and how it ended
    certificate.json   what the run proves of itself: structure, temperatures, failures; schema bismut.certificate/1
    model.txt          the text of the Python model, if the system came from one; to be read, never run
    statistics/        what was observed: a Zarr tree with a group per observer, the last states in `final`, what failed in `outcome`
    blocks/V-B.zip     what block B of variant V gave, packed
    checkpoints/V-B.zip   a block in progress
    parts/A-B/         a run of its own with blocks A to B of this one, until `bismut merge` has put them together
    README.txt         these lines

A *place* is one of these files or the folder `statistics`. What line n of the manifest commits to a place is written as PLACE.n, and takes the
place after the line is on the disk: so at any moment it is found under PLACE.n if that exists, and else under PLACE.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from bismut.store.files import remove
from bismut.store.lock import LOCK
from bismut.store.manifest import MANIFEST

SCHEMA = 2  # raised when a reader of an older folder would misread a newer one
CONFIGURATION, PROVENANCE, MODEL, README, STATISTICS = "run.toml", "provenance.json", "model.txt", "README.txt", "statistics"
CERTIFICATE = "certificate.json"
BLOCKS, CHECKPOINTS, PICTURES = "blocks", "checkpoints", "pictures"
PARTS = "parts"  # not among these: releasing a folder or replacing a run leaves parts alone
_NAMES = {MANIFEST, LOCK, CONFIGURATION, PROVENANCE, CERTIFICATE, MODEL, README, STATISTICS, BLOCKS, CHECKPOINTS, PICTURES}


def packed_place(kind: str, variant: int, block: int) -> str:
    """The place of a block or of its checkpoint."""
    return f"{kind}/{int(variant)}-{int(block)}.zip"


def staged(folder: Path, place: str, number: int) -> Path:
    """Where a place is written before it is committed."""
    return folder / f"{place}.{number}"


def location_of(folder: Path, place: str, number: int) -> str:
    """Where a place that line `number` committed is now, within the folder."""
    return f"{place}.{number}" if (folder / f"{place}.{number}").exists() else place


def settle(folder: Path, place: str, number: int) -> None:
    """Move what was committed to its place. An interruption here loses nothing."""
    new, target = staged(folder, place, number), folder / place
    if not new.exists():
        return
    if target.is_dir():
        old = new.with_suffix(".old")
        remove(old)
        target.rename(old)
        new.rename(target)
        remove(old)
    else:
        new.replace(target)


def is_run(folder: Path) -> bool:
    """Whether bismut made a folder: it has a manifest, or the three parts that runs had before there were manifests."""
    return (folder / MANIFEST).is_file() or (
        (folder / CONFIGURATION).is_file() and (folder / PROVENANCE).is_file() and (folder / STATISTICS).is_dir()
    )


def settled(folder: Path) -> bool:
    """Whether blocks or statistics are in their places, which they are only after a line has committed them."""
    return (folder / STATISTICS).is_dir() or any(folder.glob(f"{BLOCKS}/*.zip"))


def foreign_files(folder: Path) -> list[str]:
    """Names in a folder that are not bismut's."""
    return sorted(entry.name for entry in folder.iterdir() if re.sub(r"\.(\d+|old)$", "", entry.name) not in _NAMES)


def remove_run(folder: Path) -> None:
    """Remove bismut's files, the manifest last; and the folder, if nothing else is in it."""
    other = set(foreign_files(folder))
    entries = sorted((entry for entry in folder.iterdir() if entry.name not in other), key=lambda entry: entry.name in (MANIFEST, LOCK))
    for entry in entries:
        remove(entry)
    if not other:
        with contextlib.suppress(OSError):  # another process may have begun to use it
            folder.rmdir()


def sweep(folder: Path, committed: Mapping[str, int]) -> None:
    """Finish what a killed writer began: committed files move to their places, uncommitted ones are removed."""
    for place, number in committed.items():
        settle(folder, place, number)
    present = {folder / location_of(folder, place, number) for place, number in committed.items()}
    for leftover in (*folder.glob("*.*"), *folder.glob(f"{BLOCKS}/*"), *folder.glob(f"{CHECKPOINTS}/*")):
        if leftover not in present and (re.search(r"\.(\d+|old)$", leftover.name) or leftover.parent != folder):
            remove(leftover)
