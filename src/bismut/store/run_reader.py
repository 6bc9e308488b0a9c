"""A run folder, read: only what its manifest names, with the checksums that it states.

Readers hold no lock. If a file is not what the manifest says, the manifest is read again: if it now names another file, the run was extended or
replaced meanwhile, and reading starts over (`read_stable`); otherwise the file is damaged.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, TypeVar

from bismut.documents import check
from bismut.errors import ChangedError, StoreError
from bismut.formatting import counted, first_of
from bismut.store.files import Checksum, check_inside, read_checked
from bismut.store.layout import BLOCKS, CHECKPOINTS, PARTS, SCHEMA, STATISTICS, location_of, packed_place, settled
from bismut.store.lock import LOCK, alive, describe_owner, read_owner
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.rules import ENTRY
from bismut.store.zarr_reader import decode, unpack
from bismut.store.zarr_writer import ZarrGroup

_AGAIN = 100  # how often a run that changes while it is read is read again, with others that write without pause on a busy machine
_TRIES, _PAUSE = 20, 0.02  # how often a run that is being replaced is looked for, and seconds between

T = TypeVar("T")


class CommittedFiles(NamedTuple):
    """The files that one line of the manifest committed to one place."""

    number: int  # of the line
    files: dict[str, Checksum]
    entry: dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run on disk, partial or complete. Arrays and texts are read, and checked, when they are asked for."""

    folder: Path
    manifest: Manifest
    texts: Mapping[str, str] = field(default_factory=dict)  # documents that replace those in the folder

    def with_texts(self, texts: Mapping[str, str]) -> StoredRun:
        """The same run with other documents."""
        return StoredRun(self.folder, self.manifest, texts)

    @cached_property
    def committed(self) -> dict[str, CommittedFiles]:
        """The latest commit to each place."""
        latest: dict[str, CommittedFiles] = {}
        for number, entry in enumerate(self.manifest.entries):
            for place, files in entry.get("places", {}).items():
                latest[place] = CommittedFiles(number, files, entry)
            for place in entry.get("drops", ()):
                latest.pop(place, None)
        return latest

    @property
    def recorded_state(self) -> str:
        """The last state that the manifest records."""
        return self._latest("state") or "running"

    @property
    def state(self) -> str:
        """running, interrupted, failed or complete; a run whose writer died is interrupted, whatever it recorded last."""
        latest = self.recorded_state
        if latest == "running" and alive(read_owner(self.folder / LOCK)) is False:
            return "interrupted"
        return latest

    @property
    def writer(self) -> str:
        """The process that writes here, if there is one."""
        owner = read_owner(self.folder / LOCK)
        return describe_owner(owner) if owner and alive(owner) is not False else ""

    @property
    def asked(self) -> dict[str, Any]:
        return self._latest("asked") or {}

    @property
    def done(self) -> dict[str, Any]:
        """Trajectories and steps that are done, as recorded or, since then, as blocks were committed; of a sweep for each variant."""
        entries = self.manifest.entries
        recorded = max((number for number, entry in enumerate(entries) if "done" in entry), default=-1)
        last = max((number for number, entry in enumerate(entries) if entry.get("what") == BLOCKS or entry.get("drops")), default=-1)
        if recorded > last or "steps" not in self.asked:
            return entries[recorded]["done"] if recorded >= 0 else {}
        each, steps = [0] * max(1, self.asked.get("variants", 1)), max((record.get("steps", 0) for record in self.blocks.values()), default=0)
        for (variant, _), record in self.blocks.items():
            if variant < len(each) and record.get("steps") == steps:
                each[variant] += record.get("trajectories", 0)
        return {"trajectories": each if "variants" in self.asked else each[0], "steps": steps}

    @property
    def record(self) -> dict[str, Any]:
        """The record of the run when it ended last."""
        return self._latest("run_record") or {}

    def _latest(self, key: str) -> Any:
        return next((entry[key] for entry in reversed(self.manifest.entries) if key in entry), None)

    @property
    def blocks(self) -> dict[tuple[int, int], dict[str, Any]]:
        """The records of committed blocks by (variant, block), in that order."""
        return self._records(BLOCKS)

    @property
    def checkpoints(self) -> dict[tuple[int, int], dict[str, Any]]:
        """The records of blocks in progress."""
        return self._records(CHECKPOINTS)

    def _records(self, kind: str) -> dict[tuple[int, int], dict[str, Any]]:
        entries = [part.entry for place, part in self.committed.items() if place.startswith(f"{kind}/")]
        return {(entry["variant"], entry["block"]): entry["record"] for entry in sorted(entries, key=lambda e: (e["variant"], e["block"]))}

    def block(self, variant: int, block: int) -> dict[str, Any]:
        """The arrays of a committed block."""
        return self.unpacked(packed_place(BLOCKS, variant, block))

    def checkpoint(self, variant: int, block: int) -> dict[str, Any]:
        """The arrays of the last checkpoint of a block in progress."""
        return self.unpacked(packed_place(CHECKPOINTS, variant, block))

    def unpacked(self, place: str) -> dict[str, Any]:
        """The arrays of a packed place."""
        return unpack(self.read(place), str(self.folder / place))

    def text(self, place: str, default: str | None = None) -> str:
        """A document such as run.toml."""
        if place in self.texts:
            return self.texts[place]
        if place not in self.committed and default is not None:
            return default
        return self.read(place).decode("utf-8", "replace")  # its contents are checked where it is parsed

    def results(self, in_memory: int = 0) -> ZarrGroup:
        """The tree of statistics, its arrays not read yet; but in memory if they have no more than that many bytes."""
        part = self._part(STATISTICS)
        if sum(size for size, _ in part.files.values()) > in_memory:
            return decode(lambda key: self.read(STATISTICS, key), set(part.files))
        files = {key: self.read(STATISTICS, key) for key in part.files}
        return decode(files.__getitem__, set(files))

    def read(self, place: str, key: str = "") -> bytes:
        """The bytes of a committed file."""
        part = self._part(place)
        if key not in part.files:
            raise StoreError(f"{self.folder / place / key} is not among the files that were committed.")
        where = location_of(self.folder, place, part.number)
        read = lambda: read_checked(self.folder, f"{where}/{key}" if key else where, part.files[key])
        try:
            return read()
        except StoreError:
            before, where = where, location_of(self.folder, place, part.number)
            if where != before:  # it was moved to its place just now, which happens once
                with contextlib.suppress(StoreError):
                    return read()
            self.check_current(place)
            raise

    def check_current(self, place: str) -> None:
        """Raise if the manifest by now names other files at a place, or cannot be read."""
        try:
            run = open_run(self.folder, allow_damage=True)
            now, problem = run.committed.get(place), run.manifest.problem
            if run.folder != self.folder:  # set aside just now, the new one not in its place yet
                now = None
        except StoreError:
            if not re.fullmatch(r"\..+\.old", self.folder.name):
                raise
            now, problem = None, ""  # replaced, and being removed
        if now is None or (now.number, now.files) != (self.committed[place].number, self.committed[place].files):
            if problem:
                raise StoreError(f"{problem} {remedy(self.folder)}")
            raise ChangedError(f"{self.folder} was extended or replaced while it was being read. Read it again.")

    def size_problem(self, place: str, key: str = "") -> str:
        """What is wrong with a committed file as far as that shows without reading it: it is missing, or has another size."""
        part = self._part(place)
        where = self.folder / location_of(self.folder, place, part.number)
        where = where / key if key else where
        if not where.is_file():
            return f"{where} is missing."
        size = where.stat().st_size
        return "" if size == part.files[key][0] else f"{where} has {size} bytes, but {part.files[key][0]} were written: it is truncated or altered."

    def _part(self, place: str) -> CommittedFiles:
        if place not in self.committed:
            raise StoreError(f"{self.folder} holds no {place} yet: {self}.")
        return self.committed[place]

    def __str__(self) -> str:
        """State and counts in a line."""
        count = lambda value: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        phrases = [self.state, *(f"{count(value)} of {self.asked[name]} {name}" for name, value in self.done.items() if name in self.asked)]
        if self.state == "complete" or not (self.blocks or self.checkpoints):
            return ", ".join(phrases)
        begun = f", {len(self.checkpoints)} in progress" if self.checkpoints else ""
        return ", ".join([*phrases, f"{counted(len(self.blocks), 'block')} committed{begun}"])


def has_data(manifest: Manifest) -> bool:
    """Whether anything that was computed is committed."""
    return any(entry.get("what") in (BLOCKS, CHECKPOINTS, "results") for entry in manifest.entries)


def holds_run(path: Path) -> bool:
    """Whether a folder holds a run with committed data."""
    return (path / MANIFEST).is_file() and has_data(open_run(path).manifest)


def sibling(path: Path, what: str) -> Path:
    """A hidden folder beside a run: `old`, the run that is being replaced, or `new`, the one that replaces it."""
    return path.with_name(f".{path.name}.{what}")


def _location(path: Path) -> Path:
    """Where the run of a path is: beside it, while it is being replaced and the new one is not in its place yet."""
    return path if path.exists() or not sibling(path, "old").is_dir() else sibling(path, "old")


def part_names(folder: Path) -> list[str]:
    """Separately computed parts of a run, A-B for blocks A to B, in the order of their blocks."""
    names = [place.parent.name for place in folder.glob(f"{PARTS}/*/{MANIFEST}") if re.fullmatch(r"\d+-\d+", place.parent.name)]
    return sorted(names, key=lambda name: int(name.partition("-")[0]))


def remedy(folder: Path) -> str:
    """What to do about damage."""
    return f"`bismut repair {quote(str(folder))}` recomputes what is lost."


def read_stable(path: str | Path, read: Callable[[StoredRun], T]) -> T:
    """Read something of a run; again from the beginning if the run changes meanwhile."""
    for _ in range(_AGAIN):
        try:
            return read(open_run(path))
        except ChangedError:
            time.sleep(_PAUSE)
    return read(open_run(path))


def open_run(path: str | Path, allow_damage: bool = False) -> StoredRun:
    """Read the manifest of a run folder; one of another schema is refused, and so is an altered one, unless `allow_damage`: then it is read up to the
    first altered line."""
    run = _open(Path(path))
    if run.manifest.problem and not allow_damage:
        raise StoreError(f"{run.manifest.problem} {remedy(run.folder)}")
    return run


def _open(path: Path) -> StoredRun:
    still = False
    for _ in range(_TRIES):
        folder = _location(path)
        try:
            return _read(path, folder)
        except StoreError:
            before, still = still, folder == _location(path) and not sibling(path, "new").exists()
            if before and still:  # twice, since it may have been replaced between the two questions
                raise
            time.sleep(_PAUSE)  # it is being replaced, between two renames
    return _read(path, _location(path))


def _read(path: Path, folder: Path) -> StoredRun:
    if not folder.is_dir() or not (folder / MANIFEST).is_file():
        if parts := part_names(folder):
            raise StoreError(
                f"{path} holds parts of a run, {first_of(parts)} in {folder / PARTS}, each of which is a separate run to be resumed, verified or "
                f"repaired. `bismut merge {quote(str(path))}` combines them into one run."
            )
        old = " Its manifest was removed, or it is one of an earlier version, which had none." if (folder / "provenance.json").exists() else ""
        raise StoreError(f"There is no result or run at {path}: expected a folder with {MANIFEST}, as written by bismut.save and `bismut run`.{old}")
    manifest = Manifest.read(folder)
    first: Mapping[str, Any] = manifest.entries[0] if manifest.entries else {}
    if manifest.entries and first.get("schema") != SCHEMA:
        raise StoreError(f"{path} has schema {first.get('schema')}; this version of bismut reads {SCHEMA}.")
    _check_entries(folder, manifest)
    places = {place.partition("/")[0] for entry in manifest.entries for place in entry.get("places", {})}
    if not manifest.problem and settled(folder) and not places & {BLOCKS, STATISTICS}:
        manifest.problem = f"{folder / MANIFEST} is empty or cut short: it names none of the blocks or statistics that are there."
    return StoredRun(folder, manifest)


def _check_entries(folder: Path, manifest: Manifest) -> None:
    """Refuse entries with other keys, types or bounds than bismut writes, or with paths that leave the folder."""
    for number, entry in enumerate(manifest.entries, 1):
        places, wrong = entry.get("places", {}), f"{folder / MANIFEST}, line {number}"
        check(entry, wrong, ENTRY)
        for place, files in places.items():
            for key in files:
                check_inside(folder, f"{place}/{key}" if key else place)
            kind, variant, block = place.partition("/")[0], entry.get("variant"), entry.get("block")
            if kind not in (BLOCKS, CHECKPOINTS):
                continue
            expected = packed_place(kind, variant, block) if type(variant) is int and type(block) is int else None
            if place != expected or set(files) != {""} or "record" not in entry:
                raise StoreError(f"{wrong}: {place!r} is not the place of variant {variant!r}, block {block!r}.")
