"""Claim a folder before anything is computed: it is made, locked and written to, or refused.

nothing there         it is made, in one step, so that of two who ask one gets it
a run, overwrite      the new run grows beside it, and takes its place with its first commit; the old one is there until then
a run, resume         it is adopted, if its writer has ended
anything else         refused: only what bismut made is ever replaced
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bismut.errors import DiskFullError, StoreError, WriteError
from bismut.store.files import remove, told
from bismut.store.layout import PARTS, README, SCHEMA, is_run, remove_run, settled, strangers, sweep
from bismut.store.layout import __doc__ as LAYOUT
from bismut.store.leftovers import bring_back
from bismut.store.lock import LOCK, Lock
from bismut.store.manifest import MANIFEST, Manifest
from bismut.store.reading import StoredRun, aside, open_run, peek
from bismut.store.run import Run, committed
from bismut.store.signals import held

MARGIN = 2**20  # bytes beyond what is asked for: documents and manifest


def claim(
    path: str | Path,
    documents: Mapping[str, str] | None = None,
    *,
    asked: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    mend: bool = False,
    parts: bool = False,
    need: int = 0,
    check: Callable[[StoredRun], Any] = lambda stored: None,
) -> Run:
    """A folder to write a run to, locked until it is finished or closed.

    documents   texts to keep from the beginning, such as run.toml
    asked       counts that were asked for
    overwrite   replace a run that is there
    resume      go on with a run that is there
    mend        with resume, also with one whose manifest is altered: lines from there on are given up
    parts       also a folder that holds parts, which stay there
    need        bytes that must be free
    check       with resume, raises if the run, which from now on nobody else can change, is not the one to go on with
    """
    path = Path(path)
    path = path if path.name or not resume else path.resolve()  # "." is a folder to go on with
    if not path.name:
        raise StoreError(f"{str(path)!r} is not a valid name for a new folder. Choose another.")
    run: Run | None = None
    try:
        with held(), told(path, "claimed"):  # a folder that is half claimed would be neither a run nor free
            path.parent.mkdir(parents=True, exist_ok=True)
            bring_back(path)
            _check_room(path, need, resume)
            run = _taken(path, overwrite, resume, mend, parts, check)
            return run if run.adopted else _begun(run, documents, asked)
    except BaseException:  # also a signal that waited
        if run is not None:
            with run:
                raise
        raise


def _check_room(path: Path, need: int, resume: bool) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < need + MARGIN:
        remedy = "What was committed is intact: free space there, then resume." if resume else "Free some space there, or choose another disk."
        raise DiskFullError(f"{path} needs {(need + MARGIN) / 1e6:.1f} MB, but {free / 1e6:.1f} MB are free there. {remedy}")


def _taken(path: Path, overwrite: bool, resume: bool, mend: bool, parts: bool, check: Callable[[StoredRun], Any]) -> Run:
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise WriteError(f"{path} exists already and is a file, so no run can be kept there. Choose another name.") from None
        if resume:
            return _adopted(path, mend, check)
        if not _free(path, parts):
            return _instead_of(path, overwrite)
    return _fresh(path, parts)


def claim_numbered(path: str | Path, documents: Mapping[str, str] | None = None, *, asked: Mapping[str, Any] | None = None, need: int = 0) -> Run:
    """The folder itself if nothing is there, else the first of name-2, name-3, ... that can be had."""
    path, number = Path(path), 1
    while True:
        chosen = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            return claim(chosen, documents, asked=asked, need=need)
        except StoreError:
            if not chosen.exists():  # nobody has it, so it is not for its name that it was refused
                raise
        number += 1


def _free(path: Path, parts: bool) -> bool:
    """Whether a folder holds nothing (but parts): no files, or a run whose writer was killed before its first commit."""
    ignored = {PARTS} if parts else set()
    entries = {entry.name for entry in path.iterdir()}
    if not entries - {LOCK} - ignored:
        return True
    if MANIFEST not in entries or set(strangers(path)) - ignored:
        return False
    manifest = Manifest.read(path)
    return not manifest.problem and not committed(manifest) and not settled(path)


def _fresh(path: Path, parts: bool) -> Run:
    lock = Lock(path)
    try:
        if not _free(path, parts):  # somebody else was here between the look and the lock
            raise StoreError(f"{path} exists already. Choose another name.")
        for entry in [entry for entry in path.iterdir() if entry.name not in (LOCK, PARTS)]:
            remove(entry)
    except BaseException:
        lock.release(path)
        raise
    return Run(path, path, lock, Manifest.create(path))


def _instead_of(path: Path, overwrite: bool) -> Run:
    if not overwrite:
        if not is_run(path):
            raise StoreError(f"{path} exists already and is not the folder of a run. Choose another name.")
        raise StoreError(f"{path} exists already. Choose another name, or replace it with --overwrite (in Python overwrite=True).")
    if not is_run(path):
        raise StoreError(f"{path} exists and is not the folder of a run, so it is not replaced. Choose another name.")
    if other := strangers(path):
        raise StoreError(f"{path} is not replaced, because it also holds {', '.join(other)}, which bismut did not make. Choose another name.")
    replaced = Lock(path)
    try:
        new = aside(path, "new")
        if new.is_dir():  # of somebody who was killed: while the lock is ours, nobody writes there
            if strangers(new):
                raise StoreError(f"{new} exists already. Remove it, or choose another name.")
            remove_run(new)
        new.mkdir()
        return Run(path, new, Lock(new, held_for=path), Manifest.create(new), replaced)
    except BaseException:
        replaced.release(path)
        raise


def _adopted(path: Path, mend: bool, check: Callable[[StoredRun], Any]) -> Run:
    lock = Lock(path)
    try:
        stored = (peek if mend else open_run)(path)
        check(stored)
        manifest = stored.manifest
        manifest.problem = ""  # what follows is cut off with the next line
        run = Run(path, path, lock, manifest, adopted=True)
        sweep(path, {place: part.number for place, part in run.stored.parts.items()})
        run.keep({} if README in run.stored.parts else _readme(), state="running")
    except BaseException:
        lock.release(path)
        raise
    return run


def _begun(run: Run, documents: Mapping[str, str] | None, asked: Mapping[str, Any] | None) -> Run:
    """The first lines; that they can be written is the test that anything can."""
    run.keep({}, schema=SCHEMA, state="running", asked=dict(asked or {}))
    run.keep({**_readme(), **(documents or {})})
    return run


def _readme() -> dict[str, str]:
    return {README: f"A run of bismut. {(LAYOUT or '').strip()}\n"}
