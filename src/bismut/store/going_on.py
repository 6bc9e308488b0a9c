"""Going on with a run that is there: whether it is the same, what is damaged, and taking it up.

A run is gone on with if everything that decides its bits is as it was (`identity.py`). It can be given more steps and more trajectories. Where only
software or machine differ, or functions whose sameness nobody can tell, it can be forced, and that is written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bismut.ensembles import Request
from bismut.errors import StoreError
from bismut.store.claim import claim
from bismut.store.identity import CODE, differences, growth, identity
from bismut.store.layout import MODEL, PROVENANCE
from bismut.store.manifest import plain_json
from bismut.store.origin import now, source_hash
from bismut.store.reading import StoredRun, open_run
from bismut.store.run import Run
from bismut.store.runs import origin_of
from bismut.store.verifying import damage, verify_data

# These, software and machine may differ if somebody insists: numbers then come from two programs, which agree to round-off. Nothing else is mixed.
_FUNCTIONS = ("scheme", "noise", "start")


def asked_of_request(request: Request) -> dict[str, Any]:
    """The counts that a request asks for."""
    return {"trajectories": request.trajectories, "steps": request.steps} | ({"variants": request.variants} if request.axes else {})


def identity_of(stored: StoredRun) -> dict[str, Any]:
    """What a stored run was made of."""
    recorded = origin_of(stored).get("identity")
    if not isinstance(recorded, dict):
        raise StoreError(f"{stored.folder} does not record what it was made from, so it cannot be resumed. Choose another folder.")
    return recorded


def compare(stored: StoredRun, request: Request, *, extend: bool = False, force: bool = False) -> list[str]:
    """Refuse a stored run that is not that of a request, with what differs; returns what was overridden."""
    recorded, here = identity_of(stored), identity(request)
    found = differences(recorded, here)
    if extend:
        found = {name: words for name, words in found.items() if name not in growth(recorded, here)}
    firm = [words for name, words in found.items() if not forceable(name, recorded, here)]
    if not found or (force and not firm):
        return list(found.values())
    grows = not extend and set(found) == set(growth(recorded, here))
    remedy = (
        "`bismut extend` adds to a run (in Python extend=True)."
        if grows
        else "These cannot be mixed: choose another folder."
        if firm
        else "To continue anyway, with a record of the difference: --force (in Python force=True)."
    )
    raise StoreError("\n".join([f"{stored.folder} holds another run:", *(f"  {words}" for words in found.values()), remedy]))


def forceable(name: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether something may differ if somebody insists."""
    return computed_by(name) or name in _FUNCTIONS or (name.startswith("observe.") and name in there and name in here)


def computed_by(name: str) -> bool:
    """Whether something says who computed, and not what."""
    return name in ("python", "machine", CODE) or name.startswith("version.")


def check_sound(path: Path) -> None:
    """Refuse a run in which something is damaged."""
    report = verify_data(path)
    if not report.ok:
        raise StoreError(damage(path, report.problems))


def take_up(
    path: Path,
    request: Request,
    *,
    command: str,
    documents: Mapping[str, str] | None = None,
    extend: bool = False,
    force: bool = False,
) -> Run:
    """Claim a run that is there, in order to go on with it; `documents` replace those that it has."""
    same = partial(compare, request=request, extend=extend, force=force)
    overridden = same(open_run(path))
    check_sound(path)
    run = claim(path, resume=True, check=same)  # again: reading all of it takes a while, in which somebody else may have gone on with it
    try:
        note_taking_up(run, request, command, overridden, documents)
    except BaseException:
        run.close()
        raise
    return run


def note_taking_up(
    run: Run,
    request: Request,
    command: str,
    overridden: list[str],
    documents: Mapping[str, str] | None = None,
    drops: Sequence[str] = (),
    renewed: bool = True,
) -> None:
    """Write down who goes on, and with what: in the provenance, and in a line of the manifest, in which places may be given up.

    If `renewed`, the run is from here on that of the request; a repair leaves it the one it was.
    """
    before = origin_of(run.stored)
    taken = {"time": now(), "command": command, "overridden": overridden}
    made = before | ({"identity": identity(request)} if renewed else {}) | {"taken_up": [*before.get("taken_up", ()), taken]}
    if documents and MODEL in documents:  # of what comes, this is the model; what it was before stands in the manifest
        made["model"] = dict(before.get("model") or {}) | {"sha256": source_hash(documents[MODEL])}
    said: dict[str, Any] = {"overridden": overridden} if overridden else {}
    texts = {**(documents or {}), PROVENANCE: plain_json(made, indent=1) + "\n"}
    run.keep(texts, state="running", asked=asked_of_request(request), drops=list(drops), **said)
