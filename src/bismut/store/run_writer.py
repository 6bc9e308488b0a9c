"""A run being written: commits, one line of the manifest each.

    files written and synced  →  their names synced  →  one line of the manifest, synced: that is the commit  →  files moved to their places

Until the line is on the disk nothing has changed, and from then on everything has, whenever the process is killed. Signals are deferred meanwhile.
How blocks are computed is not known here: a block is nested dictionaries of arrays and a record that JSON can hold.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.errors import StoreError
from bismut.operating_system import deferred_signals, sync
from bismut.store.files import Contents, os_errors_as_write_errors, remove, write_files
from bismut.store.layout import BLOCKS, CHECKPOINTS, STATISTICS, packed_place, remove_run, settle, staged
from bismut.store.lock import Lock
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.rules import STATES
from bismut.store.run_reader import StoredRun, has_data, sibling
from bismut.store.zarr_writer import ZarrGroup, encode, pack

_INLINE = 2**16  # bytes up to which a document also stands in the manifest


class RunWriter:
    """A claimed folder, released at the end of `with claim(...) as run:`. Without a commit of data nothing is left behind."""

    def __init__(self, path: Path, folder: Path, lock: Lock, manifest: Manifest, replaced: Lock | None = None, adopted: bool = False):
        self.path, self.folder = path, folder
        self._lock, self._manifest, self._replaced, self.adopted = lock, manifest, replaced, adopted
        self._mutex = threading.RLock()
        self._open = True

    @property
    def stored(self) -> StoredRun:
        """The committed run, for reading."""
        return StoredRun(self.folder, self._manifest)

    def commit(self, variant: int, block: int, arrays: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
        """Commit a block that has ended; its checkpoint is dropped."""
        self._commit_block(BLOCKS, variant, block, arrays, record, drops=[packed_place(CHECKPOINTS, variant, block)])

    def checkpoint(self, variant: int, block: int, arrays: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
        """Commit a block in progress, in place of its last checkpoint."""
        self._commit_block(CHECKPOINTS, variant, block, arrays, record)

    def _commit_block(self, kind: str, variant: int, block: int, arrays, record, **more) -> None:
        entry = {"what": kind, "variant": int(variant), "block": int(block), "record": dict(record or {}), **more}
        self._commit(entry, {packed_place(kind, variant, block): [("", pack(arrays))]})

    def commit_documents(self, documents: Mapping[str, str], results: ZarrGroup | None = None, **fields: Any) -> None:
        """Commit documents and the tree of results in one line, with fields of the run (state, asked, done, run_record). Short documents also stand
        in the line, from which they can be repaired."""
        contents = {name: text.encode("utf-8", "backslashreplace") for name, text in documents.items()}
        places: dict[str, Contents] = {name: [("", data)] for name, data in contents.items()}
        if texts := {name: data.decode() for name, data in contents.items() if len(data) <= _INLINE}:
            fields["texts"] = texts
        if results is not None:
            places[STATISTICS] = encode(results)
        self._commit({"what": "results" if results is not None else "documents", **fields}, places)

    def finish(
        self,
        state: str = "complete",
        *,
        done: Mapping[str, Any] | None = None,
        results: ZarrGroup | None = None,
        documents: Mapping[str, str] | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> Path:
        """Commit how the run ended, with its results if there are any, and release the folder. Returns where it is."""
        if state not in STATES[1:]:
            raise StoreError(f"A run ends as one of {', '.join(STATES[1:])}, got {state!r}.")
        with deferred_signals():
            fields = {"state": state, "run_record": dict(record or {})} | ({} if done is None else {"done": dict(done)})
            self.commit_documents(documents or {}, results, **fields)
            old = sibling(self.path, "old")
            if (old / MANIFEST).is_file() or self._replaced is not None:  # of this replacement, or of one that was killed
                with contextlib.suppress(OSError):  # the new run is complete; the next claim removes the rest of the old one
                    remove_run(old)
            self.close()
        return self.folder

    def close(self) -> None:
        """Release the folder; what is committed stays. A folder that was made for this run and holds no data is removed."""
        with deferred_signals(), self._mutex:  # a thread may be in the middle of a commit
            if not self._open:
                return
            self._open = False
            if not has_data(self._manifest) and not self.adopted:
                with contextlib.suppress(OSError):  # a full disk: the rest counts as nothing, and the next claim removes it
                    remove_run(self.folder)
            self._lock.release(self.folder)
            if self._replaced is not None:
                self._replaced.release(sibling(self.path, "old") if self.folder == self.path else self.path)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self._open and kind is not None and has_data(self._manifest):
            with contextlib.suppress(StoreError):  # the error that led here is the one to raise
                self.commit_documents({}, state="interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")
        self.close()

    def _commit(self, entry: dict[str, Any], places: Mapping[str, Contents]) -> None:
        """The protocol above."""
        with deferred_signals(), self._mutex, os_errors_as_write_errors(self.path, "written"):
            if not self._open:
                raise StoreError(f"{self.folder} was released; claim it again to write to it.")
            number = len(self._manifest.entries)
            staging = [staged(self.folder, place, number) for place in places]
            try:
                for place in staging:
                    remove(place)  # left by a killed process
                checksums = {place: write_files(staged(self.folder, place, number), contents) for place, contents in places.items()}
                self._manifest.append({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **entry, "places": checksums})
                if number == 0:
                    sync(self.folder)  # the name of the manifest
            except BaseException:
                for place in staging:
                    remove(place)
                raise
            self._settle(entry, places, number)
            if self.folder != self.path and has_data(self._manifest):
                self._take_place()

    def _settle(self, entry: Mapping[str, Any], places: Mapping[str, Contents], number: int) -> None:
        with contextlib.suppress(OSError):  # committed already, and readable where it is
            for place in places:
                settle(self.folder, place, number)
            for place in entry.get("drops", ()):
                remove(self.folder / place)

    def _take_place(self) -> None:
        """Move this run to the place of the one that it replaces, which stays beside it until this one is finished."""
        old = sibling(self.path, "old")
        if self.path.exists():  # otherwise an earlier commit stopped between the two renames
            if old.exists():
                remove_run(old)
            self.path.rename(old)
        self.folder.rename(self.path)
        sync(self.path.parent)
        self.folder = self._manifest.folder = self.path
