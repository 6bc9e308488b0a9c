"""Parts of a run, computed by processes that know nothing of each other, and merged.

    RUN/parts/0-8  ∪  RUN/parts/8-16  ∪  ...   =   RUN        bit for bit

A part is a run of the complete request of which only some blocks are computed, with a manifest and a lock of its own. So parts can be computed at the
same time, on machines that share nothing but a file system, and resumed like any run. Merging commits their blocks to one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bismut.ensembles import Request
from bismut.errors import StoreError
from bismut.store.files import Checksum, remove
from bismut.store.layout import BLOCKS, CONFIGURATION, MODEL, PARTS, PROVENANCE, packed_place
from bismut.store.provenance import differences, identity, identity_of, is_software, read_provenance
from bismut.store.resume import begin_run, check_same_run, check_sound, resume_run
from bismut.store.run_reader import StoredRun, has_data, holds_run, open_run, part_names
from bismut.store.run_stored import RunJournal, StoredResult, run_and_store, seconds_of
from bismut.store.run_writer import RunWriter

VariantBlock = tuple[int, int]


def part_folder(run: Path, blocks: range) -> Path:
    return run / PARTS / f"{blocks.start}-{blocks.stop}"


def blocks_of(stored: StoredRun) -> range | None:
    """The blocks of a part; None for a complete run."""
    ends = read_provenance(stored).get("blocks")
    return range(*ends) if isinstance(ends, list) and len(ends) == 2 and all(type(end) is int for end in ends) else None


def parts_of(run: Path) -> list[StoredRun]:
    """The parts with committed data, in the order of their blocks."""
    return [stored for stored in _begun_parts(run) if has_data(stored.manifest)]


def _begun_parts(run: Path) -> list[StoredRun]:
    """The parts that have a provenance."""
    parts = [open_run(run / PARTS / name, allow_damage=True) for name in part_names(run)]
    return [stored for stored in parts if PROVENANCE in stored.committed]


def check_other_parts(run: Path, request: Request, mine: Path) -> None:
    """Refuse to compute a part beside parts of another run, before `merge` has to. Nodes of a queue may differ in software until then."""
    for other in _begun_parts(run):
        if other.folder != mine and not all(map(is_software, differences(identity_of(other), identity(request)))):
            _check_part(other, request)


def _check_part(part: StoredRun, request: Request, force: bool = False) -> list[str]:
    """Refuse a part that is not one of this run; returns what was overridden."""
    try:
        return check_same_run(part, request, force=force)
    except StoreError as problem:
        raise StoreError(f"{problem}\nOr remove {part.folder}, if this part is the wrong one.") from problem


class GatheredParts(NamedTuple):
    """The part that holds each block, the blocks that no part holds, and differences between parts that were overridden."""

    request: Request
    holders: Mapping[VariantBlock, StoredRun]
    missing: list[VariantBlock]
    overridden: list[str]


def gather(run: Path, request_of: Callable[[StoredRun], Request], force: bool = False) -> GatheredParts:
    """The blocks of all parts of a run; refused if they are not parts of one run, damaged, or still being written."""
    parts = parts_of(run)
    if not parts:
        raise StoreError(f"{run} holds no parts: `bismut run ... --blocks A:B --out {run}` makes them.")
    for part in parts:
        if part.state == "running":
            raise StoreError(f"{part.folder} is still being written by {part.writer}. Wait for it, or end its process.")
        check_sound(part.folder)
    request = request_of(parts[0])
    holders: dict[VariantBlock, StoredRun] = {}
    overridden: list[str] = []
    for part in parts:
        overridden += [f"{part.folder.name}: {sentence}" for sentence in _check_part(part, request, force)]
        for place in sorted(RunJournal(request, part).places):
            other = holders.setdefault(place, part)
            if _checksum(other, place) != _checksum(part, place):
                raise StoreError(f"Block {place[1]} of variant {place[0]} is not the same in {other.folder} and {part.folder}. Remove one of them.")
    places = [(variant, block) for variant in range(request.variants) for block in range(request.blocks)]
    return GatheredParts(request, holders, [place for place in places if place not in holders], overridden)


def _checksum(part: StoredRun, place: VariantBlock) -> Checksum:
    return part.committed[packed_place(BLOCKS, *place)].files[""]


def merge_parts(run: Path, request_of: Callable[[StoredRun], Request], *, command: str, force: bool = False) -> StoredResult:
    """One run of all parts, which are removed once they are in it. Nothing is computed."""
    request, holders, missing, overridden = gather(run, request_of, force)
    if missing:
        lacking = block_ranges({block for _, block in missing})
        raise StoreError(f"{run} lacks {lacking} of {request.blocks}. Run them (--blocks A:B --out {run}), then merge.")
    with _claim_merged(run, request, next(iter(holders.values())), command, force) as claimed:
        there = claimed.stored.blocks
        for place, part in holders.items():
            if place not in there:
                claimed.commit(*place, part.block(*place), part.blocks[place])
        fields = {"parts": sorted({part.folder.name for part in holders.values()})} | ({"overridden": overridden} if overridden else {})
        outcome = run_and_store(claimed, request, fields=fields, progress=False, certified=True)
    if not outcome.problem:
        remove(run / PARTS)
    return outcome


def _claim_merged(path: Path, request: Request, first: StoredRun, command: str, force: bool) -> RunWriter:
    """The folder of the merged run, begun or, if a merge was cut short, resumed."""
    if holds_run(path):
        return resume_run(path, request, command=command, force=force)
    provenance = {name: value for name, value in read_provenance(first).items() if name not in ("blocks", "outcome", "run")}
    provenance |= {"command": command, "seconds": sum(map(seconds_of, parts_of(path)))}
    documents = {name: first.text(name) for name in (CONFIGURATION, MODEL) if name in first.committed}
    return begin_run(path, request, provenance, documents, parts=True)


def block_ranges(blocks: Iterable[int]) -> str:
    """Blocks as ranges: 0:3, 7:8."""
    ranges: list[list[int]] = []
    for block in sorted(blocks):
        if ranges and ranges[-1][1] == block:
            ranges[-1][1] += 1
        else:
            ranges.append([block, block + 1])
    return "blocks " + ", ".join(f"{first}:{last}" for first, last in ranges)
