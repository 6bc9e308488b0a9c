"""A run folder, read: nothing is believed that its manifest does not vouch for.

Readers hold no lock. A file that is not what the manifest says is looked for again in the manifest of now: if that names another one, the run was
extended or replaced meanwhile, and whoever reads begins again (`steadily`); otherwise it is damaged.
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
from bismut.store.arrays import Group
from bismut.store.files import Seal, check_inside, read_sealed
from bismut.store.layout import BLOCKS, CHECKPOINTS, PARTS, SCHEMA, STATISTICS, found_at, packed, settled
from bismut.store.lock import LOCK, alive, read_owner, said
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.packing import unpack
from bismut.store.rules import ENTRY
from bismut.store.stored import decode
from bismut.wording import counted, first_of

_TRIES, _PAUSE = 20, 0.02  # how often a run that is changed meanwhile is read again, and seconds between

Seen = TypeVar("Seen")


class Part(NamedTuple):
    """What one line of the manifest committed to one place."""

    number: int  # of the line
    files: dict[str, Seal]
    entry: dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run on disk, partial or whole. Arrays and texts are read, and checked, when they are asked for."""

    folder: Path
    manifest: Manifest
    texts: Mapping[str, str] = field(default_factory=dict)  # documents that are known otherwise than from their files

    def told(self, texts: Mapping[str, str]) -> StoredRun:
        """The same run with other documents."""
        return StoredRun(self.folder, self.manifest, texts)

    @cached_property
    def parts(self) -> dict[str, Part]:
        """What is committed, by place: of each place the latest."""
        found: dict[str, Part] = {}
        for number, entry in enumerate(self.manifest.entries):
            for place, files in entry.get("places", {}).items():
                found[place] = Part(number, files, entry)
            for place in entry.get("drops", ()):
                found.pop(place, None)
        return found

    @property
    def recorded_state(self) -> str:
        """What the manifest says last."""
        return self._latest("state") or "running"

    @property
    def state(self) -> str:
        """running, interrupted, failed or complete; a run whose writer died is interrupted, whatever it said last."""
        latest = self.recorded_state
        if latest == "running" and alive(read_owner(self.folder / LOCK)) is False:
            return "interrupted"
        return latest

    @property
    def writer(self) -> str:
        """Who writes here, if anybody does."""
        owner = read_owner(self.folder / LOCK)
        return said(owner) if owner and alive(owner) is not False else ""

    @property
    def asked(self) -> dict[str, Any]:
        return self._latest("asked") or {}

    @property
    def done(self) -> dict[str, Any]:
        """What was said to be done; while blocks are committed, how many trajectories have how many steps: of a sweep for each variant."""
        entries = self.manifest.entries
        told = max((number for number, entry in enumerate(entries) if "done" in entry), default=-1)
        last = max((number for number, entry in enumerate(entries) if entry.get("what") == BLOCKS or entry.get("drops")), default=-1)
        if told > last or "steps" not in self.asked:
            return entries[told]["done"] if told >= 0 else {}
        each, steps = [0] * max(1, self.asked.get("variants", 1)), max((record.get("steps", 0) for record in self.blocks.values()), default=0)
        for (variant, _), record in self.blocks.items():
            if variant < len(each) and record.get("steps") == steps:
                each[variant] += record.get("trajectories", 0)
        return {"trajectories": each if "variants" in self.asked else each[0], "steps": steps}

    @property
    def record(self) -> dict[str, Any]:
        """What was said of the run when it ended last."""
        return self._latest("run_record") or {}

    def _latest(self, key: str) -> Any:
        return next((entry[key] for entry in reversed(self.manifest.entries) if key in entry), None)

    @property
    def blocks(self) -> dict[tuple[int, int], dict[str, Any]]:
        """The records of committed blocks by (variant, block), in that order."""
        return self._packed(BLOCKS)

    @property
    def checkpoints(self) -> dict[tuple[int, int], dict[str, Any]]:
        """The records of blocks in progress."""
        return self._packed(CHECKPOINTS)

    def _packed(self, kind: str) -> dict[tuple[int, int], dict[str, Any]]:
        entries = [part.entry for place, part in self.parts.items() if place.startswith(f"{kind}/")]
        return {(entry["variant"], entry["block"]): entry["record"] for entry in sorted(entries, key=lambda e: (e["variant"], e["block"]))}

    def block(self, variant: int, block: int) -> dict[str, Any]:
        """The arrays of a committed block."""
        return self.unpacked(packed(BLOCKS, variant, block))

    def checkpoint(self, variant: int, block: int) -> dict[str, Any]:
        """The arrays of the last checkpoint of a block in progress."""
        return self.unpacked(packed(CHECKPOINTS, variant, block))

    def unpacked(self, place: str) -> dict[str, Any]:
        """The arrays of a packed place."""
        return unpack(self.read(place), str(self.folder / place))

    def text(self, place: str, default: str | None = None) -> str:
        """A document such as run.toml."""
        if place in self.texts:
            return self.texts[place]
        if place not in self.parts and default is not None:
            return default
        return self.read(place).decode("utf-8", "replace")  # what it says is judged by whoever takes it for TOML or JSON

    def results(self, at_once: int = 0) -> Group:
        """The tree of statistics, its arrays not read yet; but all of them if they have no more than so many bytes."""
        part = self._part(STATISTICS)
        if sum(size for size, _ in part.files.values()) > at_once:
            return decode(lambda key: self.read(STATISTICS, key), set(part.files))
        files = {key: self.read(STATISTICS, key) for key in part.files}
        return decode(files.__getitem__, set(files))

    def read(self, place: str, key: str = "") -> bytes:
        """The bytes of a committed file."""
        part = self._part(place)
        if key not in part.files:
            raise StoreError(f"{self.folder / place / key} is not among the files that were committed.")
        where = found_at(self.folder, place, part.number)
        read = lambda: read_sealed(self.folder, f"{where}/{key}" if key else where, part.files[key])
        try:
            return read()
        except StoreError:
            before, where = where, found_at(self.folder, place, part.number)
            if where != before:  # it took its place just now, which it does once
                with contextlib.suppress(StoreError):
                    return read()
            self.check_current(place)
            raise

    def check_current(self, place: str) -> None:
        """Raise if the manifest of now names something else at a place, or cannot be read."""
        try:
            run = peek(self.folder)
            now, problem = run.parts.get(place), run.manifest.problem
        except StoreError:
            if not re.fullmatch(r"\..+\.old", self.folder.name):
                raise
            now, problem = None, ""  # it was replaced, and is being removed
        if now is None or (now.number, now.files) != (self.parts[place].number, self.parts[place].files):
            if problem:
                raise StoreError(f"{problem} {remedy(self.folder)}")
            raise ChangedError(f"{self.folder} was extended or replaced while it was being read. Read it again.")

    def absent(self, place: str, key: str = "") -> str:
        """What is wrong with a committed file that can be told without reading it: it is missing, or has another size."""
        part = self._part(place)
        where = self.folder / found_at(self.folder, place, part.number) / key if key else self.folder / found_at(self.folder, place, part.number)
        if not where.is_file():
            return f"{where} is missing."
        size = where.stat().st_size
        return "" if size == part.files[key][0] else f"{where} has {size} bytes, but {part.files[key][0]} were written: it is truncated or altered."

    def _part(self, place: str) -> Part:
        parts = self.parts
        if place not in parts:
            raise StoreError(f"{self.folder} holds no {place} yet: {self}.")
        return parts[place]

    def __str__(self) -> str:
        """State and counts in a line."""
        count = lambda value: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        words = [self.state, *(f"{count(value)} of {self.asked[name]} {name}" for name, value in self.done.items() if name in self.asked)]
        if self.state == "complete" or not (self.blocks or self.checkpoints):
            return ", ".join(words)
        begun = f", {len(self.checkpoints)} in progress" if self.checkpoints else ""
        return ", ".join([*words, f"{counted(len(self.blocks), 'block')} committed{begun}"])


def location(path: Path) -> Path:
    """Where the run of a path is: beside it, while it is being replaced and the new one has not taken its place."""
    return path if path.exists() or not aside(path, "old").is_dir() else aside(path, "old")


def part_names(folder: Path) -> list[str]:
    """The parts of a run that are made apart, A-B for blocks A to B, in the order of their blocks."""
    found = [place.parent.name for place in folder.glob(f"{PARTS}/*/{MANIFEST}") if re.fullmatch(r"\d+-\d+", place.parent.name)]
    return sorted(found, key=lambda name: int(name.partition("-")[0]))


def aside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}")


def open_run(path: str | Path) -> StoredRun:
    """Read the manifest of a run folder, and refuse one that is altered or was not written by this schema."""
    run = peek(path)
    if run.manifest.problem:
        raise StoreError(f"{run.manifest.problem} {remedy(run.folder)}")
    return run


def remedy(folder: Path) -> str:
    """What to do about damage."""
    return f"`bismut repair {quote(str(folder))}` recomputes what is lost."


def steadily(path: str | Path, act: Callable[[StoredRun], Seen]) -> Seen:
    """What somebody makes of a run: begun again if it is changed meanwhile."""
    for _ in range(_TRIES):
        try:
            return act(open_run(path))
        except ChangedError:
            time.sleep(_PAUSE)
    return act(open_run(path))


def peek(path: str | Path) -> StoredRun:
    """Like open_run; but a manifest that is altered is read as far as it can be trusted."""
    for _ in range(_TRIES):
        folder = location(Path(path))
        try:
            return _peek(path, folder)
        except StoreError:
            if folder == location(Path(path)) and not aside(Path(path), "new").exists():
                raise
            time.sleep(_PAUSE)  # it is being replaced, between two renames
    return _peek(path, location(Path(path)))


def _peek(path: str | Path, folder: Path) -> StoredRun:
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
    named = {place.partition("/")[0] for entry in manifest.entries for place in entry.get("places", {})}
    if not manifest.problem and settled(folder) and not named & {BLOCKS, STATISTICS}:
        manifest.problem = f"{folder / MANIFEST} is empty or cut short: it names none of the blocks or statistics that are there."
    return StoredRun(folder, manifest)


def _check_entries(folder: Path, manifest: Manifest) -> None:
    """Places, files and numbers are what they should be, and stay within the folder."""
    for number, entry in enumerate(manifest.entries, 1):
        places, wrong = entry.get("places", {}), f"{folder / MANIFEST}, line {number}"
        check(entry, wrong, ENTRY)
        for place, files in places.items():
            for key in files:
                check_inside(folder, f"{place}/{key}" if key else place)
            kind, variant, block = place.partition("/")[0], entry.get("variant"), entry.get("block")
            if kind in (BLOCKS, CHECKPOINTS) and not (
                type(variant) is int and type(block) is int and place == packed(kind, variant, block) and set(files) == {""} and "record" in entry
            ):
                raise StoreError(f"{wrong}: {place!r} is not the place of variant {variant!r}, block {block!r}.")
