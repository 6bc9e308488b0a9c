"""A stored run as a request again: from its run.toml, or with the Python model that it came from, if somebody names it.

A file in a folder never says which code is run: a model is named on the command line, and its text compared with what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bismut.cli.runs.carrying import configuration, without_place
from bismut.cli.runs.model import from_file
from bismut.cli.runs.prepare import Prepared, prepare
from bismut.cli.runs.toml import parsed
from bismut.ensembles import Request
from bismut.errors import StoreError
from bismut.store import StoredRun, origin_of, source_hash
from bismut.store.layout import CONFIGURATION, MODEL


@dataclass(frozen=True)
class Again:
    """A stored run, ready to be gone on with; `documents` are what its folder is to hold if it is changed."""

    ready: Prepared
    request: Request
    documents: dict[str, str]


def again(stored: StoredRun, model: str | None, force: bool, more: Mapping[str, int] | None = None) -> Again:
    """The request of a stored run; `more` steps and trajectories are added."""
    if not stored.text(CONFIGURATION, ""):
        raise StoreError(f"{stored.folder} was not made by `bismut run`: call simulate(..., store={str(stored.folder)!r}) as it was called then.")
    made = origin_of(stored)
    where = str(stored.folder / CONFIGURATION)
    document = parsed(stored.text(CONFIGURATION), where)
    given = {name: document.get(name, 0) + count for name, count in (more or {}).items() if count}
    block = {"block": made["identity"]["block"]} if isinstance(made.get("identity"), dict) else {}
    known = _model(stored, made.get("model"), model, force)
    if known is not None:
        document["system"] = {"name": known.entry.name, "parameters": made["model"].get("parameters", {})}
    ready = prepare({**document, **given, **block}, {}, where, known)
    documents = {} if known is None or known.text == stored.text(MODEL, "") else {MODEL: known.text or ""}
    if given:
        documents[CONFIGURATION] = configuration(without_place(ready))  # with blocks of the size that it has, not of the one it would be given now
    return Again(ready, ready.request(), documents)


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
