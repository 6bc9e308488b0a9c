"""Going on with a run of the command line: to its end, or beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from bismut.cli import began
from bismut.cli.runs.again import again
from bismut.cli.runs.carrying import carry_out, command_line, tell_stored
from bismut.cli.runs.executors import chosen_executor
from bismut.errors import BismutError
from bismut.store import blocks_of, deadline_after, open_run, parts_of, take_up
from bismut.store.layout import PROVENANCE
from bismut.store.leftovers import clean_up


def go_on(
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
    """Carry a stored run on, with so many more steps and trajectories; without more, one that is complete is left alone."""
    clean_up(run)
    stored = open_run(run)
    blocks = blocks_of(stored)
    if stored.state == "running" and not stored.text(PROVENANCE, ""):
        raise BismutError(f"{run} is just being started by {stored.writer or 'another process'}. Wait for it to end.")
    if parts_of(run):
        raise BismutError(f"{run} holds parts that are not merged yet: `bismut merge {quote(str(run))}` merges them.")
    if more and blocks is not None:
        raise BismutError(f"{run} is a part of a run: `bismut merge` the whole run first, then extend it.")
    if not more and stored.state == "complete":
        tell_stored(stored, as_json)
        return
    found = again(stored, model, force, more)
    with chosen_executor(workers, cluster, insecure) as executor:
        claimed = take_up(stored.folder, found.request, command=command_line(), documents=found.documents, extend=bool(more), force=force)
        deadline = deadline_after(max_time, began())
        carry_out(claimed, found.request, deadline=deadline, as_json=as_json, model=model, blocks=blocks, executor=executor)
