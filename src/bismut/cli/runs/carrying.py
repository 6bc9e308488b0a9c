"""A run of the command line on its way: a folder claimed or taken up, the request carried out and kept, and what is said at the end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from bismut.cli.group import FAILED, INTERRUPTED, print_json
from bismut.cli.runs.observed import observed, observed_in
from bismut.cli.runs.prepare import Prepared
from bismut.cli.runs.toml import write
from bismut.ensembles import Request, plan
from bismut.ensembles.stopping import HEARD, Interrupted
from bismut.findings import Report
from bismut.store import KeptRun, Run, StoredRun, asked_of_request, carry_out_kept, claim_run, origin, read_run, source_hash
from bismut.store.layout import CONFIGURATION, MODEL, PROVENANCE
from bismut.store.manifest import plain_json

TIME_IS_UP = 75  # what sysexits.h calls a temporary failure: try again later
CODES = {signal.name: 128 + signal for signal in HEARD} | {"time": TIME_IS_UP, "disk": FAILED}


def command_line() -> str:
    return shlex.join(["bismut", *sys.argv[1:]])


def configuration(ready: Prepared) -> str:
    """The run as a run file; of a Python model, all but the system."""
    document, model = {key: value for key, value in ready.document.items() if value != {}}, ready.model
    if model.text is None:
        head = (
            f"A run of bismut: {model.entry.title}\nScheme: {ready.scheme.title}. `bismut check FILE` looks at this file, `bismut run FILE` runs it."
        )
        return write(document, head)
    parameters = document.pop("system").get("parameters", {})
    head = f"The system is {model.entry.name}, a Python model, which a run file cannot name. Its parameters: {parameters}"
    return write(document, f"{head}\nScheme: {ready.scheme.title}. provenance.json has the command that repeats this run.")


def without_place(ready: Prepared) -> Prepared:
    """The run without the folder it goes to, so that the file in the folder can be run again as it is."""
    output = ready.document.get("output", {})
    return replace(ready, document={**ready.document, "output": {key: value for key, value in output.items() if key == "final"}})


def claimed(ready: Prepared, request: Request, folder: Path, *, overwrite: bool, numbered: bool, blocks: range | None = None) -> Run:
    """The folder of a new run, with what is known of it before it is computed; of a part, which blocks it has."""
    model = None
    if ready.model.text is not None:
        parameters = ready.document.get("system", {}).get("parameters", {})
        model = {"place": ready.model.entry.name, "sha256": source_hash(ready.model.text), "parameters": parameters}
    documents = {CONFIGURATION: configuration(without_place(ready))}
    documents |= {} if ready.model.text is None else {MODEL: ready.model.text}
    part = {} if blocks is None else {"blocks": [blocks.start, blocks.stop]}
    documents[PROVENANCE] = plain_json(origin(request, command_line(), model) | part | {"labels": ready.labels}, indent=1) + "\n"
    need = plan(request).disk if blocks is None else plan(request).disk * len(blocks) // request.blocks
    return claim_run(folder, documents=documents, asked=asked_of_request(request), overwrite=overwrite, numbered=numbered, need=need)


def carry_out(run: Run, request: Request, *, deadline: float | None, as_json: bool, model: str | None = None, **more: Any) -> None:
    """Carry a claimed run out, and say what came of it; `model` is how a Python model is named when it is gone on with."""
    folder = run.path
    try:
        with run:
            kept = carry_out_kept(run, request, deadline=deadline, certified=True, **more)
    except Interrupted as stopped:
        print(f"bismut: {_interrupted(folder, stopped.cause, model)}", file=sys.stderr)
        raise typer.Exit(CODES.get(stopped.cause, INTERRUPTED)) from None
    tell(kept, as_json)
    end(kept, folder, model)


def end(kept: KeptRun, folder: Path, model: str | None = None) -> None:
    """Say what went wrong, and end with the code that tells it."""
    outcome = kept.result.outcome
    if kept.problem:
        place = f"The result is in {kept.folder}." if kept.folder else "No other place took it."
        print(f"bismut: {kept.problem} {place}", file=sys.stderr)
    if outcome.interrupted:
        print(f"bismut: {_interrupted(folder, outcome.cause, model)}", file=sys.stderr)
        raise typer.Exit(CODES.get(outcome.cause, INTERRUPTED))
    if not outcome.ok or kept.problem:
        raise typer.Exit(FAILED)


def tell_stored(stored: StoredRun, as_json: bool) -> None:
    """What a run that is complete came to, as `tell` and `end` say it when it ends: it is read, and nothing is computed."""
    found = read_run(stored.folder)
    outcome = found.made["outcome"]
    failed = len(outcome.get("failed", ()))
    if as_json:
        numbers = observed_in(found.stored.results())
        print_json(_document(stored.folder, outcome["words"], failed, "", 0.0, 0, found.certificate, numbers))
    else:
        print(f"{stored.folder} is {stored}. Nothing is computed; `bismut extend {shlex.quote(str(stored.folder))}` adds steps or trajectories.")
    if failed:
        raise typer.Exit(FAILED)


def _document(
    folder: Path | None, outcome: str, failed: int, cause: str, seconds: float, computed: int, certificate: Report | None, numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """What --json prints of a run."""
    return {
        "folder": folder,
        "ok": not failed,
        "outcome": outcome,
        "failed": failed,
        "interrupted": cause,
        "seconds": seconds,
        "computed": computed,
        "certificate": None if certificate is None else certificate.verdict.value,
        "observed": numbers,
    }


def _interrupted(folder: Path, cause: str, model: str | None) -> str:
    why = {"time": "the time is up", "disk": "the disk is full"}.get(cause, "interrupted")
    if not folder.exists():
        return f"{why}, before anything was committed: there is nothing to resume, so give the same command again."
    return f"{why}; what is done is in {folder}. bismut resume {shlex.quote(str(folder))}{f' --model {shlex.quote(model)}' if model else ''} goes on."


def tell(kept: KeptRun, as_json: bool) -> None:
    """What was found, as text or as JSON."""
    result, outcome = kept.result, kept.result.outcome
    if as_json:
        made = kept.folder, str(outcome), len(outcome.failures), outcome.cause
        print_json(_document(*made, kept.seconds, kept.computed, result.certificate, observed(result.observables)))
        return
    print(result)
    if result.certificate is not None:
        verdict, counts, _ = result.certificate.short()
        print(f"{verdict},{counts[1:]}")
    if kept.folder is not None:
        shown = shlex.quote(str(kept.folder))
        print(f"\nkept in {kept.folder} ({kept.seconds:.1f} s).  bismut info {shown}   bismut plot {shown}")
