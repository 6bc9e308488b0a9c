"""Claim a folder before anything is computed: it is made, locked and written to, or refused.

nothing there         it is made, in one step, so that of two processes one gets it
a run, overwrite      the new run grows beside it, and takes its place with its first commit; the old one is there until then
a run, resume         it is adopted, if its writer has ended
anything else         refused: only bismut's own folders are ever replaced

What killed processes left behind is removed by the next claim or reader: a lock without an owner, files that no line of the manifest names
(PLACE.n, PLACE.old), and a replaced run (.NAME.old) once its successor is complete. Committed files are never touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bismut.errors import DiskFullError, StoreError, WriteError
from bismut.operating_system import deferred_signals
from bismut.store.files import os_errors_as_write_errors, remove
from bismut.store.layout import PARTS, README, SCHEMA, foreign_files, is_run, remove_run, settled, sweep
from bismut.store.layout import __doc__ as LAYOUT
from bismut.store.lock import LOCK, Lock, alive, describe_owner, read_owner
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.run_reader import StoredRun, has_data, open_run, sibling
from bismut.store.run_writer import RunWriter

_MARGIN = 2**20  # bytes beyond what is asked for: documents and manifest


def claim(
    path: str | Path,
    documents: Mapping[str, str] | None = None,
    *,
    asked: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    numbered: bool = False,
    resume: bool = False,
    allow_damage: bool = False,
    parts: bool = False,
    need: int = 0,
    check: Callable[[StoredRun], Any] = lambda stored: None,
) -> RunWriter:
    """A folder to write a run to, locked until it is finished or closed.

    documents     texts to commit at the beginning, such as run.toml
    asked         counts that were asked for
    overwrite     replace an existing run
    numbered      take the first free one of name, name-2, name-3, ...
    resume        continue an existing run
    allow_damage  with resume, also one whose manifest is altered: lines from there on are given up
    parts         also a folder that holds parts, which stay there
    need          bytes that must be free
    check         with resume, raises if the run, which no other process can change any more, is not the expected one
    """
    path = Path(path)
    path = path if path.name or not resume else path.resolve()  # "." is a folder to resume
    if not path.name:
        raise StoreError(f"{str(path)!r} is not a valid name for a new folder. Choose another.")
    if numbered:
        return _claim_numbered(path, documents, asked, need)
    run: RunWriter | None = None
    try:
        with deferred_signals(), os_errors_as_write_errors(path, "claimed"):  # a half-claimed folder would be neither a run nor free
            path.parent.mkdir(parents=True, exist_ok=True)
            _restore_replaced(path)
            _check_space(path, need, resume)
            run = _open(path, overwrite, resume, allow_damage, parts, check)
            return run if run.adopted else _begin(run, documents, asked)
    except BaseException:  # also a deferred signal
        if run is not None:
            with run:
                raise
        raise


def _claim_numbered(path: Path, documents: Mapping[str, str] | None, asked: Mapping[str, Any] | None, need: int) -> RunWriter:
    number = 1
    while True:
        chosen = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            return claim(chosen, documents, asked=asked, need=need)
        except StoreError:
            if not chosen.exists():  # it is free, so it was not refused for its name
                raise
        number += 1


def _check_space(path: Path, need: int, resume: bool) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < need + _MARGIN:
        remedy = "What was committed is intact: free space there, then resume." if resume else "Free some space there, or choose another disk."
        raise DiskFullError(f"{path} needs {(need + _MARGIN) / 1e6:.1f} MB, but {free / 1e6:.1f} MB are free there. {remedy}")


def _open(path: Path, overwrite: bool, resume: bool, allow_damage: bool, parts: bool, check: Callable[[StoredRun], Any]) -> RunWriter:
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise WriteError(f"{path} exists already and is a file, so no run can be kept there. Choose another name.") from None
        if resume:
            return _adopt(path, allow_damage, check)
        if not _is_free(path, parts):
            return _replace(path, overwrite)
    return _create(path, parts)


def _is_free(path: Path, parts: bool) -> bool:
    """Whether a folder is empty (but for parts), or a run whose writer was killed before its first commit."""
    ignored = {PARTS} if parts else set()
    entries = {entry.name for entry in path.iterdir()}
    if not entries - {LOCK} - ignored:
        return True
    if MANIFEST not in entries or set(foreign_files(path)) - ignored:
        return False
    manifest = Manifest.read(path)
    return not manifest.problem and not has_data(manifest) and not settled(path)


def _create(path: Path, parts: bool) -> RunWriter:
    lock = Lock(path)
    try:
        if not _is_free(path, parts):  # another process wrote there before the lock was taken
            raise StoreError(f"{path} exists already. Choose another name.")
        for entry in [entry for entry in path.iterdir() if entry.name not in (LOCK, PARTS)]:
            remove(entry)
    except BaseException:
        lock.release(path)
        raise
    return RunWriter(path, path, lock, Manifest.create(path))


def _replace(path: Path, overwrite: bool) -> RunWriter:
    if not overwrite:
        if not is_run(path):
            raise StoreError(f"{path} exists already and is not the folder of a run. Choose another name.")
        owner = read_owner(path / LOCK)
        if owner and alive(owner) is not False:  # not a run that --overwrite could replace
            raise StoreError(f"{path} is being written by {describe_owner(owner)}. Wait for it to end, or choose another name.")
        raise StoreError(f"{path} exists already. Choose another name, or replace it with --overwrite (in Python overwrite=True).")
    if not is_run(path):
        raise StoreError(f"{path} exists and is not the folder of a run, so it is not replaced. Choose another name.")
    if other := foreign_files(path):
        raise StoreError(f"{path} is not replaced, because it also holds {', '.join(other)}, which bismut did not make. Choose another name.")
    replaced = Lock(path)
    try:
        new = sibling(path, "new")
        if new.is_dir():  # left by a killed process; we hold the lock
            if foreign_files(new):
                raise StoreError(f"{new} exists already. Remove it, or choose another name.")
            remove_run(new)
        new.mkdir()
        return RunWriter(path, new, Lock(new, held_for=path), Manifest.create(new), replaced)
    except BaseException:
        replaced.release(path)
        raise


def _adopt(path: Path, allow_damage: bool, check: Callable[[StoredRun], Any]) -> RunWriter:
    lock = Lock(path)
    try:
        stored = open_run(path, allow_damage)
        check(stored)
        manifest = stored.manifest
        manifest.problem = ""  # altered lines are cut off with the next commit
        run = RunWriter(path, path, lock, manifest, adopted=True)
        _sweep(stored)
        run.commit_documents({} if README in stored.committed else _readme(), state="running")
    except BaseException:
        lock.release(path)
        raise
    return run


def _begin(run: RunWriter, documents: Mapping[str, str] | None, asked: Mapping[str, Any] | None) -> RunWriter:
    """The first lines; that they can be written is the test that anything can."""
    run.commit_documents({}, schema=SCHEMA, state="running", asked=dict(asked or {}))
    run.commit_documents({**_readme(), **(documents or {})})
    return run


def _readme() -> dict[str, str]:
    return {README: f"A run of bismut. {(LAYOUT or '').strip()}\n"}


def clean_up(path: Path) -> None:
    """Remove leftovers if no process writes there. Where that is unknown or nothing can be removed, they stay, and reading goes on."""
    with contextlib.suppress(OSError, StoreError):
        _restore_replaced(path)
        old = sibling(path, "old")
        if not (path.is_dir() and (_has_leftovers(path) or old.is_dir())) or alive(read_owner(path / LOCK)):
            return
        lock = Lock(path)  # refused while the writer lives, or is on another host
        try:
            run = open_run(path, allow_damage=True)
            if run.folder == path and not run.manifest.problem:
                _sweep(run)
                if run.recorded_state == "complete" and old.is_dir() and not foreign_files(old):
                    remove_run(old)
        finally:
            lock.release(path)


def _sweep(run: StoredRun) -> None:
    sweep(run.folder, {place: part.number for place, part in run.committed.items()})


def _has_leftovers(path: Path) -> bool:
    return any(name == LOCK or re.search(r"\.(\d+|old)$", name) for name in os.listdir(path))


def _restore_replaced(path: Path) -> None:
    """A run whose replacement was cut short between two renames gets its name back."""
    old = sibling(path, "old")
    if not path.exists() and old.is_dir() and is_run(old):
        lock = Lock(old, held_for=path)  # refused while the other process lives and is about to rename
        try:
            old.rename(path)
        finally:
            lock.release(path if path.exists() else old)
