"""A run being written: commits, one line of the manifest each.

    files written and synced  →  their names synced  →  one line of the manifest, synced: that is the commit  →  files moved to their places

Until the line is there nothing has happened, and from then on it has, whenever the process is killed. Signals wait meanwhile. How blocks are
computed is not known here: a block is nested dictionaries of arrays and a record of what JSON can hold.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.errors import StoreError
from bismut.store.arrays import Group, encode
from bismut.store.files import Contents, remove, sync, told, write_all
from bismut.store.layout import BLOCKS, CHECKPOINTS, STATISTICS, packed, remove_run, settle, staged
from bismut.store.lock import Lock
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.packing import pack
from bismut.store.reading import StoredRun, aside
from bismut.store.rules import STATES
from bismut.store.signals import held

TEXT = 2**16  # bytes of a document that the manifest holds itself


class Run:
    """A claimed folder. `with claim(...) as run:` gives it up at the end; one that leaves without a commit leaves nothing behind."""

    def __init__(self, path: Path, folder: Path, lock: Lock, manifest: Manifest, replaced: Lock | None = None, adopted: bool = False):
        self.path, self.folder = path, folder
        self._lock, self._manifest, self._replaced, self.adopted = lock, manifest, replaced, adopted
        self._one = threading.RLock()
        self._open = True

    @property
    def stored(self) -> StoredRun:
        """What is committed, to be read."""
        return StoredRun(self.folder, self._manifest)

    def commit(self, variant: int, block: int, arrays: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
        """Keep a block that has ended; its checkpoint goes."""
        self._commit_packed(BLOCKS, variant, block, arrays, record, drops=[packed(CHECKPOINTS, variant, block)])

    def checkpoint(self, variant: int, block: int, arrays: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
        """Keep a block in progress, in place of its last checkpoint."""
        self._commit_packed(CHECKPOINTS, variant, block, arrays, record)

    def _commit_packed(self, kind: str, variant: int, block: int, arrays, record, **more) -> None:
        entry = {"what": kind, "variant": int(variant), "block": int(block), "record": dict(record or {}), **more}
        self._commit(entry, {packed(kind, variant, block): [("", pack(arrays))]})

    def keep(self, documents: Mapping[str, str], results: Group | None = None, **said: Any) -> None:
        """Commit documents and the tree of results in one line, with what is said of the run (state, asked, done, run_record). Short documents stand
        in the line, too, from which they can be mended."""
        written = {name: text.encode("utf-8", "backslashreplace") for name, text in documents.items()}
        places: dict[str, Contents] = {name: [("", data)] for name, data in written.items()}
        if texts := {name: data.decode() for name, data in written.items() if len(data) <= TEXT}:
            said["texts"] = texts
        if results is not None:
            places[STATISTICS] = encode(results)
        self._commit({"what": "results" if results is not None else "documents", **said}, places)

    def finish(
        self,
        state: str = "complete",
        *,
        done: Mapping[str, Any] | None = None,
        results: Group | None = None,
        documents: Mapping[str, str] | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> Path:
        """Say how the run ended, with its results if they are there, and give the folder up. Returns where it is."""
        if state not in STATES[1:]:
            raise StoreError(f"A run ends as one of {', '.join(STATES[1:])}, got {state!r}.")
        with held():
            said = {"state": state, "run_record": dict(record or {})} | ({} if done is None else {"done": dict(done)})
            self.keep(documents or {}, results, **said)
            old = aside(self.path, "old")
            if (old / MANIFEST).is_file() or self._replaced is not None:  # of this replacement, or of one whose process was killed
                with contextlib.suppress(OSError):  # the new run is whole; what is left of the old one goes with the next claim
                    remove_run(old)
            self.close()
        return self.folder

    def close(self) -> None:
        """Give the folder up; what is committed stays. A folder that was made for this run and has no commit is removed."""
        with held(), self._one:  # a thread may be in the middle of a commit
            if not self._open:
                return
            self._open = False
            if not committed(self._manifest) and not self.adopted:
                with contextlib.suppress(OSError):  # a disk that takes no more: what stays counts as nothing, and goes with the next claim
                    remove_run(self.folder)
            self._lock.release(self.folder)
            if self._replaced is not None:
                self._replaced.release(aside(self.path, "old") if self.folder == self.path else self.path)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self._open and kind is not None and committed(self._manifest):
            with contextlib.suppress(StoreError):  # the error that led here is the one to be seen
                self.keep({}, state="interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")
        self.close()

    def _commit(self, entry: dict[str, Any], places: Mapping[str, Contents]) -> None:
        """The protocol above."""
        with held(), self._one, told(self.path, "written"):
            if not self._open:
                raise StoreError(f"{self.folder} was released; claim it again to write to it.")
            number = len(self._manifest.entries)
            written = [staged(self.folder, place, number) for place in places]
            try:
                for place in written:
                    remove(place)  # of somebody who was killed in the middle
                seals = {place: write_all(staged(self.folder, place, number), contents) for place, contents in places.items()}
                self._manifest.append({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **entry, "places": seals})
                if number == 0:
                    sync(self.folder)  # the name of the manifest
            except BaseException:
                for place in written:
                    remove(place)
                raise
            self._settle(entry, places, number)
            if self.folder != self.path and committed(self._manifest):
                self._take_place()

    def _settle(self, entry: Mapping[str, Any], places: Mapping[str, Contents], number: int) -> None:
        with contextlib.suppress(OSError):  # committed already, and found where it is
            for place in places:
                settle(self.folder, place, number)
            for place in entry.get("drops", ()):
                remove(self.folder / place)

    def _take_place(self) -> None:
        """Put this run in the place of the one that it replaces, which stays beside it until this one is finished."""
        old = aside(self.path, "old")
        if self.path.exists():  # else a commit before this one came no further
            if old.exists():
                remove_run(old)
            self.path.rename(old)
        self.folder.rename(self.path)
        sync(self.path.parent)
        self.folder = self._manifest.folder = self.path


def committed(manifest: Manifest) -> bool:
    """Whether anything was computed and kept."""
    return any(entry.get("what") in (BLOCKS, CHECKPOINTS, "results") for entry in manifest.entries)
