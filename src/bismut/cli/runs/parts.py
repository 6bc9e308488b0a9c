"""A part of a run, for jobs that know nothing of each other: some of its blocks, in a folder of their own within that of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bismut.cli.runs.carrying import carry_out, claimed, command_line
from bismut.cli.runs.prepare import Prepared
from bismut.ensembles import Request
from bismut.errors import BismutError
from bismut.store import blocks_of, check_others, open_run, part_folder, parts_of, take_up, told
from bismut.store.manifest import MANIFEST
from bismut.store.run import committed


def carry_out_part(ready: Prepared, request: Request, folder: Path, blocks: range, *, overwrite: bool, deadline: float | None, **more: Any) -> None:
    """Run some blocks of a request, or go on with them, and say how far the whole has come."""
    if request.until:
        raise BismutError("--until decides in the order of blocks when there are enough, and --blocks runs them separately: omit one of them.")
    if (folder / MANIFEST).is_file():
        raise BismutError(f"{folder} is already a whole run, so no part of it is run. Choose another --out.")
    mine = range(request.blocks)[blocks.start : blocks.stop]
    if not mine:
        print(f"There are {request.blocks} blocks of {request.size} trajectories, so blocks {blocks.start}:{blocks.stop} are none.")
        return
    place = part_folder(folder, mine)
    check_others(folder, request, place)
    model = None if ready.model.text is None else ready.model.entry.name
    if not overwrite and (place / MANIFEST).is_file() and committed(open_run(place).manifest):
        if open_run(place).state == "complete":
            print(f"{place} is complete; nothing is computed.")
            return
        run = take_up(place, request, command=command_line())
    else:
        run = claimed(ready, request, place, overwrite=overwrite, numbered=False, blocks=mine)
        try:
            check_others(folder, request, place)  # which may have begun meanwhile
        except BaseException:
            run.close()
            raise
    carry_out(run, request, deadline=deadline, blocks=mine, model=model, **more)
    _tell(folder, request)


def _tell(folder: Path, request: Request) -> None:
    """How much of the whole is there."""
    there = {block for part in parts_of(folder) if part.state == "complete" for block in blocks_of(part) or ()}
    if missing := set(range(request.blocks)) - there:
        print(f"{folder} has {len(there)} of {request.blocks} blocks; not there yet: {told(missing)}")
    else:
        print(f"{folder} has all of its {request.blocks} blocks: bismut merge {folder}")
