"""Repair: what is damaged is recomputed, and nothing else.

documents   from the manifest, which holds their text             blocks       recomputed: a block is a function of its number
statistics  merged again from blocks                              checkpoints  dropped; their blocks start over, or at their last end
manifest    cut before the first altered line; what was committed later is recomputed

Whether a run was extended in lines that are lost is read off run.toml and provenance.json, if these agree with each other and with what remains.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bismut.ensembles import Request, run_request
from bismut.ensembles.block_job import BlockJob
from bismut.ensembles.interruption import Interrupted, Stop
from bismut.ensembles.journal import Job
from bismut.errors import BlockError, StoreError
from bismut.executors import Channel, Executor, Failed, Threads
from bismut.store.claim import claim
from bismut.store.files import read_regular
from bismut.store.layout import BLOCKS, CERTIFICATE, CHECKPOINTS, CONFIGURATION, MODEL, PROVENANCE, STATISTICS
from bismut.store.manifest import MANIFEST
from bismut.store.parts import blocks_of
from bismut.store.provenance import differences, forceable, growth, identity_of, read_provenance
from bismut.store.resume import check_same_run, record_resumption
from bismut.store.run_reader import StoredRun, open_run
from bismut.store.run_stored import RunJournal, StoredResult, run_and_store
from bismut.store.run_writer import RunWriter
from bismut.store.save_load import commit_result
from bismut.store.verify_data import verify_data


class Repaired(NamedTuple):
    """What was repaired.

    damaged   problems by place
    computed  how many blocks were recomputed
    others    blocks whose bytes are not what they were, as where another program was forced to compute them
    extended  whether the run is longer than the manifest recorded
    outcome   of the run, if it was brought to its end
    """

    damaged: dict[str, tuple[str, ...]]
    computed: int
    others: tuple[str, ...] = ()
    extended: bool = False
    outcome: StoredResult | None = None


def repair(
    path: str | Path,
    request_of: Callable[[StoredRun], Request],
    *,
    command: str,
    force: bool = False,
    progress: bool | None = None,
    executor: Any = None,
) -> Repaired:
    """Repair a run folder; `request_of` gives the request of a run whose documents are sound."""
    path = Path(path)
    damaged = verify_data(path).corrupt
    if not damaged:
        return Repaired({}, 0)
    before = open_run(path, allow_damage=True)
    if PROVENANCE not in before.committed:
        raise StoreError(
            f"{path}: {MANIFEST} is damaged before the entry that describes the run, so nothing in the folder can be trusted; nothing was changed. "
            "run.toml and provenance.json there record how it was made: run it again in another folder."
        )
    state, texts = before.state, _texts(before, [place for place in damaged if "/" not in place and place not in (STATISTICS, MANIFEST)])
    longer = _longer(before, request_of)
    if not longer and set(damaged) == set(texts):
        with claim(path, resume=True) as run:
            run.commit_documents(texts, state=state)
        return Repaired(damaged, 0)
    mended = before.with_texts(texts | longer)
    request = request_of(mended)
    overridden = check_same_run(mended, request, force=force)
    with claim(path, resume=True, allow_damage=True) as run:
        run.commit_documents(texts | longer, state=state)
        lost = [place for place in damaged if place.startswith((f"{BLOCKS}/", f"{CHECKPOINTS}/"))]
        record_resumption(run, request, command, overridden, drops=lost, new_identity=False)
        if state == "complete" or MANIFEST in damaged or longer:  # the contents of lost lines are unknown: the run is brought to its end
            certified = (path / CERTIFICATE).is_file() and CERTIFICATE not in run.stored.committed
            blocks = blocks_of(run.stored)
            outcome = run_and_store(run, request, progress=progress, executor=executor, blocks=blocks, certified=certified)
            return Repaired(damaged, outcome.computed, _others(before, open_run(path, allow_damage=True), lost), bool(longer), outcome)
        jobs = [Job(entry["variant"], entry["block"]) for place in lost if (entry := before.committed[place].entry)["what"] == BLOCKS]
        _recompute(run, request, jobs, executor or Threads())
        _finish_partial(run, request, STATISTICS in before.committed)
    return Repaired(damaged, len(jobs), _others(before, open_run(path, allow_damage=True), lost))


def _longer(before: StoredRun, request_of: Callable[[StoredRun], Request]) -> dict[str, str]:
    """The documents on disk of a run that was extended in lines which are lost. They count if the request that they make is the one that the
    provenance among them was written for, and differs from what the manifest records by more steps or trajectories, or by what can be forced."""
    folder = before.folder
    try:
        documents = {name: read_regular(folder, name).decode() for name in (CONFIGURATION, PROVENANCE, MODEL) if (folder / name).is_file()}
        extended = before.with_texts(documents)
        known, there = identity_of(before.with_texts(_texts(before, [PROVENANCE]))), identity_of(extended)
        more = growth(known, there)
        if not more or not all(name in more or forceable(name, known, there) for name in differences(known, there)):
            return {}
        check_same_run(extended, request_of(extended))
        return documents
    except (ValueError, KeyError, TypeError):  # they cannot be read, or contradict each other
        return {}


def _others(before: StoredRun, after: StoredRun, places: list[str]) -> tuple[str, ...]:
    """Blocks of as many steps as before, but with another checksum."""
    steps = lambda part: part.entry["record"].get("steps")
    blocks = [place for place in places if place.startswith(f"{BLOCKS}/") and place in after.committed]
    pairs = [(place, before.committed[place], after.committed[place]) for place in blocks]
    return tuple(place for place, old, new in pairs if steps(old) == steps(new) and old.files != new.files)


def _texts(stored: StoredRun, names: Iterable[str]) -> dict[str, str]:
    """Documents as the manifest holds them."""
    texts: dict[str, str] = {}
    for entry in stored.manifest.entries:
        texts |= entry.get("texts", {})
    if missing := [name for name in names if name not in texts]:
        raise StoreError(f"{stored.folder}: {', '.join(missing)} cannot be repaired, because the manifest does not hold its text. Run it again.")
    return {name: texts[name] for name in names}


def _recompute(run: RunWriter, request: Request, jobs: list[Job], executor: Executor) -> None:
    journal, work, left = RunJournal(request, run), BlockJob(request, keeps=False, ends=request.keep_final), len(jobs)
    with Stop() as stop, closing(executor.each(work, iter(sorted(jobs)), Channel(lambda: stop.asked))) as results, stop.on_error():  # type: ignore[type-var]
        for job, result in results:
            if isinstance(result, Failed):
                raise BlockError(f"Block {job.block} of variant {job.variant} could not be recomputed:\n{result.why}")
            if result is not None and result.steps == request.steps:
                journal.commit(job.variant, job.block, result)
                left -= 1
    if left:
        raise Interrupted(stop.cause)


def _finish_partial(run: RunWriter, request: Request, with_results: bool) -> None:
    """Finish the repair of an incomplete run: its statistics are those of its blocks."""
    journal = RunJournal(request, run)
    if not with_results or not journal.places:
        run.finish("interrupted")
        return
    result = run_request(request, progress=False, journal=journal, executor=_Idle(), deadline=0.0)
    commit_result(run, result, read_provenance(run.stored))


class _Idle:
    """An executor that runs nothing."""

    remote = False

    def each(self, work: Any, jobs: Any, channel: Any) -> Generator:
        del work, jobs, channel
        yield from ()
