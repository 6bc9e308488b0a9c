"""Stored runs of the command line: restored as requests, resumed and extended.

The request comes from run.toml, or from the Python model that the command names: a file in a folder never says which code is run, and the text of a
model is compared with the stored one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from bismut.cli import began
from bismut.cli.runs.execute import chosen_executor, command_line, configuration, execute, print_stored, without_place
from bismut.cli.runs.model import from_file
from bismut.cli.runs.prepare import Prepared, prepare
from bismut.cli.runs.toml import parsed
from bismut.ensembles import Request
from bismut.ensembles.interruption import deadline_after
from bismut.errors import BismutError, StoreError
from bismut.store import StoredRun, blocks_of, open_run, parts_of, read_provenance, resume_run, source_hash
from bismut.store.claim import clean_up
from bismut.store.layout import CONFIGURATION, MODEL, PROVENANCE


@dataclass(frozen=True)
class RestoredRun:
    """A stored run, ready to be resumed; `documents` are to be written into its folder if it changes."""

    ready: Prepared
    request: Request
    documents: dict[str, str]


def restore(stored: StoredRun, model: str | None, force: bool, more: Mapping[str, int] | None = None) -> RestoredRun:
    """The request of a stored run; `more` steps and trajectories are added."""
    if not stored.text(CONFIGURATION, ""):
        raise StoreError(f"{stored.folder} was not made by `bismut run`: call simulate(..., store={str(stored.folder)!r}) as it was called then.")
    provenance = read_provenance(stored)
    where = str(stored.folder / CONFIGURATION)
    document = parsed(stored.text(CONFIGURATION), where)
    given = {name: document.get(name, 0) + count for name, count in (more or {}).items() if count}
    block = {"block": provenance["identity"]["block"]} if isinstance(provenance.get("identity"), dict) else {}
    known = _model(stored, provenance.get("model"), model, force)
    if known is not None:
        document["system"] = {"name": known.entry.name, "parameters": provenance["model"].get("parameters", {})}
    ready = prepare({**document, **given, **block}, {}, where, known)
    documents = {} if known is None or known.text == stored.text(MODEL, "") else {MODEL: known.text or ""}
    if given:
        documents[CONFIGURATION] = configuration(without_place(ready))  # with blocks of the size that it has, not of the one it would be given now
    return RestoredRun(ready, ready.request(), documents)


def _model(stored: StoredRun, recorded: Mapping[str, Any] | None, named: str | None, force: bool) -> Any:
    if recorded is None:
        if named is not None:
            raise StoreError(f"{stored.folder} is a run of a system of the gallery; omit --model.")
        return None
    if named is None:
        raise StoreError(
            f"{stored.folder} is a run of the Python model {recorded.get('place')}, and a folder never says which code is run. "
            f"Name it: --model {recorded.get('place')}"
        )
    model = from_file(named)
    if source_hash(model.text or "") != recorded.get("sha256") and not force:
        raise StoreError(
            f"{named} is not the model of {stored.folder}: its text has changed. What it was is in {stored.folder / MODEL}. "
            "If what it computes is the same, --force resumes the run and records the change."
        )
    return model


def resume_stored(
    run: Path,
    more: Mapping[str, int],
    *,
    model: str | None,
    force: bool,
    max_time: float | None,
    workers: int | None,
    cluster: str | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Resume a stored run, with so many more steps and trajectories; without more, a complete one is left alone."""
    clean_up(run)
    stored = open_run(run)
    blocks = blocks_of(stored)
    if stored.state == "running" and not stored.text(PROVENANCE, ""):
        raise BismutError(f"{run} is just being started by {stored.writer or 'another process'}. Wait for it to end.")
    if parts_of(run):
        raise BismutError(f"{run} holds parts that are not merged yet: `bismut merge {quote(str(run))}` merges them.")
    if more and blocks is not None:
        raise BismutError(f"{run} is a part of a run: `bismut merge` the run first, then extend it.")
    if not more and stored.state == "complete":
        print_stored(stored, as_json)
        return
    restored = restore(stored, model, force, more)
    with chosen_executor(workers, cluster, insecure) as executor:
        claimed = resume_run(stored.folder, restored.request, command=command_line(), documents=restored.documents, extend=bool(more), force=force)
        deadline = deadline_after(max_time, began())
        execute(claimed, restored.request, deadline=deadline, as_json=as_json, model=model, blocks=blocks, executor=executor)
