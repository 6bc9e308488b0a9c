"""Repair: what is damaged is recomputed, and nothing else.

documents   from the manifest, which holds their text             blocks       computed again: a block is a function of its number
statistics  merged again from blocks                              checkpoints  given up; their blocks begin again, or at their last end
manifest    cut before the first line that is altered; what was committed later is computed again

Whether a run was extended in lines that are lost is read off run.toml and provenance.json, if these agree with each other and with what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bismut.ensembles import Request, perform
from bismut.ensembles.journal import Job
from bismut.ensembles.stopping import Interrupted, Stop
from bismut.ensembles.working import Work
from bismut.errors import BlockError, StoreError
from bismut.executors import Executor, Failed, Line, Threads
from bismut.store.claim import claim
from bismut.store.files import read_plain
from bismut.store.going_on import compare, forceable, identity_of, note_taking_up
from bismut.store.identity import differences, growth
from bismut.store.journal import RunJournal
from bismut.store.keeping import KeptRun, carry_out_kept
from bismut.store.layout import BLOCKS, CERTIFICATE, CHECKPOINTS, CONFIGURATION, MODEL, PROVENANCE, STATISTICS
from bismut.store.manifest import MANIFEST
from bismut.store.parts import blocks_of
from bismut.store.reading import StoredRun, peek
from bismut.store.results import keep_result
from bismut.store.run import Run
from bismut.store.runs import origin_of
from bismut.store.verifying import verify_data


class Repaired(NamedTuple):
    """What was damaged, by place, with what was wrong; how many blocks were computed; which of them are not what they were, to the byte, as where
    another program was forced to compute them; whether the run is longer than the manifest knew; and the run, if it was brought to its end."""

    damaged: dict[str, tuple[str, ...]]
    computed: int
    others: tuple[str, ...] = ()
    extended: bool = False
    kept: KeptRun | None = None


def repair(
    path: str | Path,
    request_of: Callable[[StoredRun], Request],
    *,
    command: str,
    force: bool = False,
    progress: bool | None = None,
    executor: Any = None,
) -> Repaired:
    """Mend a run folder; `request_of` gives the request of a run whose documents are sound."""
    path = Path(path)
    damaged = verify_data(path).corrupt
    if not damaged:
        return Repaired({}, 0)
    before = peek(path)
    if PROVENANCE not in before.parts:
        raise StoreError(
            f"{path}: {MANIFEST} is damaged before the entry that describes the run, so nothing in the folder can be trusted; nothing was changed. "
            "run.toml and provenance.json there record how it was made: run it again in another folder."
        )
    state, texts = before.state, _texts(before, [place for place in damaged if "/" not in place and place not in (STATISTICS, MANIFEST)])
    longer = _longer(before, request_of)
    if not longer and set(damaged) == set(texts):
        with claim(path, resume=True) as run:
            run.keep(texts, state=state)
        return Repaired(damaged, 0)
    as_told = before.told(texts | longer)
    request = request_of(as_told)
    overridden = compare(as_told, request, force=force)
    with claim(path, resume=True, mend=True) as run:
        run.keep(texts | longer, state=state)
        lost = [place for place in damaged if place.startswith((f"{BLOCKS}/", f"{CHECKPOINTS}/"))]
        note_taking_up(run, request, command, overridden, drops=lost, renewed=False)
        if state == "complete" or MANIFEST in damaged or longer:  # what lost lines said is not known: the run is brought to its end
            certified = (path / CERTIFICATE).is_file() and CERTIFICATE not in run.stored.parts
            blocks = blocks_of(run.stored)
            kept = carry_out_kept(run, request, progress=progress, executor=executor, blocks=blocks, certified=certified)
            return Repaired(damaged, kept.computed, _others(before, peek(path), lost), bool(longer), kept)
        jobs = [Job(entry["variant"], entry["block"]) for place in lost if (entry := before.parts[place].entry)["what"] == BLOCKS]
        _compute(run, request, jobs, executor or Threads())
        _tell_how_far(run, request, STATISTICS in before.parts)
    return Repaired(damaged, len(jobs), _others(before, peek(path), lost))


def _longer(before: StoredRun, request_of: Callable[[StoredRun], Request]) -> dict[str, str]:
    """The documents of a run that was extended in lines which are lost, as they are on the disk. They count if the request that they make is the one
    that the provenance among them was written for, and differs from what the manifest vouches for by more steps or trajectories, or by what can be
    forced."""
    folder = before.folder
    try:
        found = {name: read_plain(folder, name).decode() for name in (CONFIGURATION, PROVENANCE, MODEL) if (folder / name).is_file()}
        as_found = before.told(found)
        known, there = identity_of(before.told(_texts(before, [PROVENANCE]))), identity_of(as_found)
        more = growth(known, there)
        if not more or not all(name in more or forceable(name, known, there) for name in differences(known, there)):
            return {}
        compare(as_found, request_of(as_found))
        return found
    except (ValueError, KeyError, TypeError):  # they say nothing, or not the same
        return {}


def _others(before: StoredRun, after: StoredRun, places: list[str]) -> tuple[str, ...]:
    """Blocks of as many steps as before whose checksum is another."""
    steps = lambda part: part.entry["record"].get("steps")
    pairs = {place: (before.parts[place], after.parts[place]) for place in places if place.startswith(f"{BLOCKS}/") and place in after.parts}
    return tuple(place for place, (old, new) in pairs.items() if steps(old) == steps(new) and old.files != new.files)


def _texts(stored: StoredRun, names: Iterable[str]) -> dict[str, str]:
    """Documents as the manifest has them."""
    found: dict[str, str] = {}
    for entry in stored.manifest.entries:
        found |= entry.get("texts", {})
    if missing := [name for name in names if name not in found]:
        raise StoreError(f"{stored.folder}: {', '.join(missing)} cannot be repaired, because the manifest does not hold its text. Run it again.")
    return {name: found[name] for name in names}


def _compute(run: Run, request: Request, jobs: list[Job], executor: Executor) -> None:
    journal, work, left = RunJournal(request, run), Work(request, keeps=False, ends=request.keep_final), len(jobs)
    with Stop() as stop, closing(executor.each(work, iter(sorted(jobs)), Line(lambda: stop.asked))) as found, stop.on_error():  # type: ignore[type-var]
        for job, result in found:
            if isinstance(result, Failed):
                raise BlockError(f"Block {job.block} of variant {job.variant} could not be recomputed:\n{result.why}")
            if result is not None and result.steps == request.steps:
                journal.commit(job.variant, job.block, result)
                left -= 1
    if left:
        raise Interrupted(stop.cause)


def _tell_how_far(run: Run, request: Request, with_results: bool) -> None:
    """The end of a repair of a run that is not complete: its statistics are those of the blocks that are there."""
    journal = RunJournal(request, run)
    if not with_results or not journal.places:
        run.finish("interrupted")
        return
    result = perform(request, progress=False, journal=journal, executor=_Nobody(), deadline=0.0)
    keep_result(run, result, origin_of(run.stored))


class _Nobody:
    """An executor that runs nothing."""

    elsewhere = False

    def each(self, work: Any, jobs: Any, line: Any) -> Generator:
        del work, jobs, line
        yield from ()
