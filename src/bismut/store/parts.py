"""Parts of a run, made by processes that know nothing of each other, and put together.

    RUN/parts/0-8  ∪  RUN/parts/8-16  ∪  ...   =   RUN        bit for bit

A part is a run of the whole request of which only some blocks are computed, with a manifest and a lock of its own. So parts can be made at the same
time, on machines that share nothing but a file system, and taken up like any run. To merge them is to commit their blocks to one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bismut.ensembles import Request, plan
from bismut.errors import StoreError
from bismut.store.claim import claim
from bismut.store.files import remove
from bismut.store.going_on import asked_of_request, check_sound, compare, computed_by, identity_of, note_taking_up
from bismut.store.identity import differences, identity
from bismut.store.journal import RunJournal
from bismut.store.keeping import KeptRun, carry_out_kept, seconds_of
from bismut.store.layout import BLOCKS, CONFIGURATION, MODEL, PARTS, PROVENANCE, packed
from bismut.store.manifest import MANIFEST, plain_json
from bismut.store.reading import StoredRun, open_run, part_names, peek
from bismut.store.run import Run, committed
from bismut.store.runs import origin_of

Place = tuple[int, int]


def part_folder(run: Path, blocks: range) -> Path:
    """Where a part is."""
    return run / PARTS / f"{blocks.start}-{blocks.stop}"


def blocks_of(stored: StoredRun) -> range | None:
    """The blocks that a part is made of; None for a whole run."""
    found = origin_of(stored).get("blocks")
    return range(*found) if isinstance(found, list) and len(found) == 2 and all(type(end) is int for end in found) else None


def parts_of(run: Path) -> list[StoredRun]:
    """The parts of which something is committed, in the order of their blocks."""
    return [stored for stored in _begun(run) if committed(stored.manifest)]


def _begun(run: Path) -> list[StoredRun]:
    """The parts that say what they are."""
    found = [peek(run / PARTS / name) for name in part_names(run)]
    return [stored for stored in found if PROVENANCE in stored.parts]


def check_others(run: Path, request: Request, mine: Path) -> None:
    """Refuse to make a part where parts of another run are, so that it is not `merge` that notices. That nodes of a queue differ is left to it."""
    for other in _begun(run):
        if other.folder != mine and not all(map(computed_by, differences(identity_of(other), identity(request)))):
            check_same(other, request)


def check_same(part: StoredRun, request: Request, force: bool = False) -> list[str]:
    """Refuse a part that is not one of this run; returns what was overridden."""
    try:
        return compare(part, request, force=force)
    except StoreError as problem:
        raise StoreError(f"{problem}\nOr remove {part.folder}, if this part is the wrong one.") from problem


class Gathered(NamedTuple):
    """The blocks that parts hold, each with the part that holds it, those that nobody does, and what differs between parts, if that was forced."""

    request: Request
    holders: Mapping[Place, StoredRun]
    missing: list[Place]
    overridden: list[str]


def gather(run: Path, request_of: Callable[[StoredRun], Request], force: bool = False) -> Gathered:
    """What the parts of a run hold; refused if they are not parts of one run, damaged, or still being written."""
    parts = parts_of(run)
    if not parts:
        raise StoreError(f"{run} holds no parts: `bismut run ... --blocks A:B --out {run}` makes them.")
    for part in parts:
        if part.state == "running":
            raise StoreError(f"{part.folder} is still being written by {part.writer}. Wait for it, or end its process.")
        check_sound(part.folder)
    request = request_of(parts[0])
    holders: dict[Place, StoredRun] = {}
    overridden: list[str] = []
    for part in parts:
        overridden += [f"{part.folder.name}: {words}" for words in check_same(part, request, force)]
        for place in sorted(RunJournal(request, part).places):
            other = holders.setdefault(place, part)
            if _seal(other, place) != _seal(part, place):
                raise StoreError(f"Block {place[1]} of variant {place[0]} is not the same in {other.folder} and {part.folder}. Remove one of them.")
    wanted = [(variant, block) for variant in range(request.variants) for block in range(request.blocks)]
    return Gathered(request, holders, [place for place in wanted if place not in holders], overridden)


def _seal(part: StoredRun, place: Place) -> list:
    return part.parts[packed(BLOCKS, *place)].files[""]


def merge_parts(run: Path, request_of: Callable[[StoredRun], Request], *, command: str, force: bool = False) -> KeptRun:
    """One run of all parts, which are removed when they are in it. Nothing is computed."""
    request, holders, missing, overridden = gather(run, request_of, force)
    if missing:
        raise StoreError(f"{run} lacks {told({block for _, block in missing})} of {request.blocks}. Run them (--blocks A:B --out {run}), then merge.")
    with _claimed(run, request, next(iter(holders.values())), command, force) as claimed:
        there = claimed.stored.blocks
        for place, part in holders.items():
            if place not in there:
                claimed.commit(*place, part.block(*place), part.blocks[place])
        said = {"parts": sorted({part.folder.name for part in holders.values()})} | ({"overridden": overridden} if overridden else {})
        kept = carry_out_kept(claimed, request, said=said, progress=False, certified=True)
    if not kept.problem:
        remove(run / PARTS)
    return kept


def _claimed(path: Path, request: Request, first: StoredRun, command: str, force: bool) -> Run:
    """The folder of the whole, begun or, if a merge was cut short, taken up."""
    if (path / MANIFEST).is_file() and committed(open_run(path).manifest):
        overridden = compare(open_run(path), request, force=force)
        run = claim(path, resume=True)
        try:
            note_taking_up(run, request, command, overridden)
        except BaseException:
            run.close()
            raise
        return run
    made = {name: value for name, value in origin_of(first).items() if name not in ("blocks", "outcome", "run")}
    made |= {"command": command, "seconds": sum(map(seconds_of, parts_of(path)))}
    documents = {name: first.text(name) for name in (CONFIGURATION, MODEL) if name in first.parts}
    documents[PROVENANCE] = plain_json(made, indent=1) + "\n"
    return claim(path, documents, asked=asked_of_request(request), parts=True, need=plan(request).disk)


def told(blocks: Iterable[int]) -> str:
    """Blocks as ranges: 0:3, 7:8."""
    ranges: list[list[int]] = []
    for block in sorted(blocks):
        if ranges and ranges[-1][1] == block:
            ranges[-1][1] += 1
        else:
            ranges.append([block, block + 1])
    return "blocks " + ", ".join(f"{first}:{last}" for first, last in ranges)
