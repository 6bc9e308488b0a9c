"""Begin a run in a new folder, or resume one: whether it is the same run, whether it is sound, and recording that it goes on.

A run is resumed if everything that decides its bits is as it was (`provenance.identity`). It can be given more steps and trajectories. Where only
software or arithmetic differ, or functions that cannot be compared, resuming can be forced, and that is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bismut.documents import plain_json
from bismut.ensembles import Request, plan
from bismut.errors import StoreError
from bismut.store.claim import claim
from bismut.store.layout import MODEL, PROVENANCE
from bismut.store.provenance import differences, forceable, growth, identity, identity_of, now, read_provenance, sentences_of, source_hash
from bismut.store.run_reader import StoredRun, open_run
from bismut.store.run_writer import RunWriter
from bismut.store.verify_data import damage_message, verify_data


def asked_counts(request: Request) -> dict[str, Any]:
    """Trajectories, steps and variants that a request asks for, as the manifest records them."""
    return {"trajectories": request.trajectories, "steps": request.steps} | ({"variants": request.variants} if request.axes else {})


def begin_run(
    path: Path,
    request: Request,
    provenance: Mapping[str, Any],
    documents: Mapping[str, str] | None = None,
    *,
    blocks: range | None = None,
    overwrite: bool = False,
    numbered: bool = False,
    parts: bool = False,
) -> RunWriter:
    """Claim a folder for the run of a request, or for some of its `blocks`. The rest is as for `claim`."""
    part, need = {}, plan(request).disk
    if blocks is not None:
        part, need = {"blocks": [blocks.start, blocks.stop]}, need * len(blocks) // request.blocks
    texts = {**(documents or {}), PROVENANCE: plain_json({**provenance, **part}, indent=1) + "\n"}
    return claim(path, texts, asked=asked_counts(request), overwrite=overwrite, numbered=numbered, parts=parts, need=need)


def resume_run(
    path: Path,
    request: Request,
    *,
    command: str,
    documents: Mapping[str, str] | None = None,
    extend: bool = False,
    force: bool = False,
) -> RunWriter:
    """Claim an existing run in order to continue it; `documents` replace those that it has."""
    check = partial(check_same_run, request=request, extend=extend, force=force)
    overridden = check(open_run(path))
    check_sound(path)
    run = claim(path, resume=True, check=check)  # again: reading all of it takes a while, in which another process may have continued it
    try:
        record_resumption(run, request, command, overridden, documents)
    except BaseException:
        run.close()
        raise
    return run


def record_resumption(
    run: RunWriter,
    request: Request,
    command: str,
    overridden: list[str],
    documents: Mapping[str, str] | None = None,
    drops: Sequence[str] = (),
    new_identity: bool = True,
) -> None:
    """Record which command continues a run: in the provenance, and in a line of the manifest, which may drop places.

    With `new_identity` the run is from here on that of the request; a repair leaves it the one it was.
    """
    before = read_provenance(run.stored)
    resumption = {"time": now(), "command": command, "overridden": overridden}
    after = before | ({"identity": identity(request)} if new_identity else {}) | {"taken_up": [*before.get("taken_up", ()), resumption]}
    if documents and MODEL in documents:  # the model of what follows; the one before stands in the manifest
        after["model"] = dict(before.get("model") or {}) | {"sha256": source_hash(documents[MODEL])}
    fields: dict[str, Any] = {"overridden": overridden} if overridden else {}
    texts = {**(documents or {}), PROVENANCE: plain_json(after, indent=1) + "\n"}
    run.commit_documents(texts, state="running", asked=asked_counts(request), drops=list(drops), **fields)


def check_same_run(stored: StoredRun, request: Request, *, extend: bool = False, force: bool = False) -> list[str]:
    """Refuse a stored run that is not that of a request, naming what differs; returns what was overridden."""
    there, here = identity_of(stored), identity(request)
    differing, grown = differences(there, here), growth(there, here)
    if extend:
        differing = {name: sentence for name, sentence in differing.items() if name not in grown}
    firm = [name for name in differing if not forceable(name, there, here)]
    if not differing or (force and not firm):
        return sentences_of(differing)
    if not extend and set(differing) == set(grown):
        remedy = "`bismut extend` adds to a run (in Python extend=True)."
    elif firm:
        remedy = "These cannot be mixed: choose another folder."
    else:
        remedy = "To continue anyway, with a record of the difference: --force (in Python force=True)."
    raise StoreError("\n".join([f"{stored.folder} holds another run:", *(f"  {sentence}" for sentence in sentences_of(differing)), remedy]))


def check_sound(path: Path) -> None:
    """Refuse a damaged run."""
    report = verify_data(path)
    if not report.ok:
        raise StoreError(damage_message(path, report.problems))
