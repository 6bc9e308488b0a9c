"""A run of the command line: its folder is claimed or taken up, the request is run and stored, and its outcome is printed.

With --blocks a process runs some of the blocks, in a folder of its own within that of the run, independently of the other processes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from bismut.cli.group import FAILED, INTERRUPTED, print_json
from bismut.cli.runs.json_summary import observed, observed_in
from bismut.cli.runs.prepare import Prepared
from bismut.cli.runs.toml import write
from bismut.ensembles import Request
from bismut.ensembles.interruption import Interrupted
from bismut.errors import BismutError
from bismut.executors import Dask, Processes
from bismut.findings import Report
from bismut.operating_system import TERMINATING
from bismut.store import (
    RunWriter,
    StoredResult,
    StoredRun,
    begin_run,
    block_ranges,
    blocks_of,
    check_other_parts,
    open_run,
    part_folder,
    parts_of,
    read_run,
    resume_run,
    run_and_store,
    run_provenance,
    source_hash,
)
from bismut.store.layout import CONFIGURATION, MODEL
from bismut.store.manifest import MANIFEST
from bismut.store.run_reader import holds_run

TIME_IS_UP = 75  # what sysexits.h calls a temporary failure: try again later
CODES = {signal.name: 128 + signal for signal in TERMINATING} | {"time": TIME_IS_UP, "disk": FAILED}


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


def claimed(ready: Prepared, request: Request, folder: Path, *, overwrite: bool, numbered: bool, blocks: range | None = None) -> RunWriter:
    """The folder of a new run, with what is known of it before it is computed; of a part, which blocks it has."""
    model = None
    if ready.model.text is not None:
        parameters = ready.document.get("system", {}).get("parameters", {})
        model = {"place": ready.model.entry.name, "sha256": source_hash(ready.model.text), "parameters": parameters}
    documents = {CONFIGURATION: configuration(without_place(ready))}
    documents |= {} if ready.model.text is None else {MODEL: ready.model.text}
    provenance = run_provenance(request, command_line(), model) | {"labels": ready.labels}
    return begin_run(folder, request, provenance, documents, blocks=blocks, overwrite=overwrite, numbered=numbered)


def execute(run: RunWriter, request: Request, *, deadline: float | None, as_json: bool, model: str | None = None, **more: Any) -> None:
    """Run a claimed run and print its outcome; `model` names the Python model in the command that resumes it."""
    folder = run.path
    try:
        with run:
            stored = run_and_store(run, request, deadline=deadline, certified=True, **more)
    except Interrupted as stopped:
        print(f"bismut: {_interrupted(folder, stopped.cause, model)}", file=sys.stderr)
        raise typer.Exit(CODES.get(stopped.cause, INTERRUPTED)) from None
    print_outcome(stored, as_json)
    exit_with_code(stored, folder, model)


def exit_with_code(stored: StoredResult, folder: Path, model: str | None = None) -> None:
    """Print what went wrong, and end with the exit code for it."""
    outcome = stored.result.outcome
    if stored.problem:
        place = f"The result is in {stored.folder}." if stored.folder else "No other place took it."
        print(f"bismut: {stored.problem} {place}", file=sys.stderr)
    if outcome.interrupted:
        print(f"bismut: {_interrupted(folder, outcome.cause, model)}", file=sys.stderr)
        raise typer.Exit(CODES.get(outcome.cause, INTERRUPTED))
    if not outcome.ok or stored.problem:
        raise typer.Exit(FAILED)


def print_stored(stored: StoredRun, as_json: bool) -> None:
    """The outcome of a complete run, printed as when it ended: it is read, and nothing is computed."""
    reader = read_run(stored.folder)
    outcome = reader.full_provenance["outcome"]
    failed = len(outcome.get("failed", ()))
    if as_json:
        numbers = observed_in(reader.stored.results())
        print_json(_document(stored.folder, outcome["words"], failed, "", 0.0, 0, reader.certificate, numbers))
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
    reason = {"time": "the time is up", "disk": "the disk is full"}.get(cause, "interrupted")
    if not folder.exists():
        return f"{reason}, before anything was committed: there is nothing to resume, so give the same command again."
    named = f" --model {shlex.quote(model)}" if model else ""
    return f"{reason}; what is done is in {folder}. bismut resume {shlex.quote(str(folder))}{named} goes on."


def print_outcome(stored: StoredResult, as_json: bool) -> None:
    """The results, as text or as JSON."""
    result, outcome = stored.result, stored.result.outcome
    if as_json:
        ended = stored.folder, str(outcome), len(outcome.failures), outcome.cause
        print_json(_document(*ended, stored.seconds, stored.computed, result.certificate, observed(result.observables)))
        return
    print(result)
    if result.certificate is not None:
        verdict, counts, _ = result.certificate.short()
        print(f"{verdict},{counts[1:]}")
    if stored.folder is not None:
        shown = shlex.quote(str(stored.folder))
        print(f"\nkept in {stored.folder} ({stored.seconds:.1f} s).  bismut info {shown}   bismut plot {shown}")


@contextmanager
def chosen_executor(workers: int | None, cluster: str | None, insecure: bool) -> Iterator[Any]:
    """The executor of --workers 2, --cluster tls://host:8786 or --cluster local:2, until it is no longer needed; None for threads."""
    if workers is not None and cluster is not None:
        raise BismutError("Give --workers or --cluster, not both. --cluster local:2 is a cluster on this machine.")
    if insecure and cluster is None:
        raise BismutError("--insecure needs --cluster, which was not given.")
    if cluster is not None:
        with Dask(cluster, insecure=insecure) as executor:
            yield executor
    elif workers is not None:
        with Processes(workers) as executor:
            yield executor
    else:
        yield None


def execute_part(ready: Prepared, request: Request, folder: Path, blocks: range, *, overwrite: bool, deadline: float | None, **more: Any) -> None:
    """Run some blocks of a request, or resume them, and print how many blocks of the run there are."""
    if request.until:
        raise BismutError("--until decides in the order of blocks when there are enough, and --blocks runs them separately: omit one of them.")
    if (folder / MANIFEST).is_file():
        raise BismutError(f"{folder} is already a complete run, so no part of it is run. Choose another --out.")
    mine = range(request.blocks)[blocks.start : blocks.stop]
    if not mine:
        print(f"There are {request.blocks} blocks of {request.size} trajectories, so blocks {blocks.start}:{blocks.stop} are none.")
        return
    place = part_folder(folder, mine)
    check_other_parts(folder, request, place)
    model = None if ready.model.text is None else ready.model.entry.name
    if not overwrite and holds_run(place):
        if open_run(place).state == "complete":
            print(f"{place} is complete; nothing is computed.")
            return
        run = resume_run(place, request, command=command_line())
    else:
        run = claimed(ready, request, place, overwrite=overwrite, numbered=False, blocks=mine)
        try:
            check_other_parts(folder, request, place)  # which may have begun meanwhile
        except BaseException:
            run.close()
            raise
    execute(run, request, deadline=deadline, blocks=mine, model=model, **more)
    _print_parts(folder, request)


def _print_parts(folder: Path, request: Request) -> None:
    """How many blocks of the run there are."""
    there = {block for part in parts_of(folder) if part.state == "complete" for block in blocks_of(part) or ()}
    if missing := set(range(request.blocks)) - there:
        print(f"{folder} has {len(there)} of {request.blocks} blocks; not there yet: {block_ranges(missing)}")
    else:
        print(f"{folder} has all of its {request.blocks} blocks: bismut merge {folder}")
