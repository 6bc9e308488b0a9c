"""A request run: blocks are computed by an executor and merged in their order.

The executor decides where a block is computed; it knows nothing of mechanics, and results do not depend on it.
"""

from __future__ import annotations

from contextlib import closing
from itertools import takewhile

from bismut.engines.xla_selfcheck import check_compiler
from bismut.ensembles import block_job
from bismut.ensembles.assembly import PartialBlock, assemble, trajectories_of
from bismut.ensembles.block_job import BlockCheckpoint, BlockJob, StepsDone
from bismut.ensembles.block_log import BlockLog
from bismut.ensembles.interruption import Stop, interrupt_of
from bismut.ensembles.journal import Job, Journal
from bismut.ensembles.observers.records import Records
from bismut.ensembles.ordered_merge import OrderedMerge
from bismut.ensembles.plan import check_memory
from bismut.ensembles.progress import Progress
from bismut.ensembles.request import Request
from bismut.ensembles.result import Result
from bismut.errors import BlockError
from bismut.executors import Channel, Executor, Failed, Threads

_MANY = 8  # blocks that fail before no more are begun


def run_request(
    request: Request,
    *,
    progress: bool | None = None,
    executor: Executor | None = None,
    journal: Journal | None = None,
    blocks: range | None = None,
    deadline: float | None = None,
) -> Result:
    """The result of a request; refused if it does not fit into memory.

    journal   where blocks are kept as they end, and where those are found that need not be run
    blocks    the blocks of each variant that are wanted; all of them if not given
    deadline  a time of `time.monotonic` at which the run is interrupted
    """
    check_compiler()
    check_memory(request)
    executor = executor or Threads()
    wanted = range(request.blocks)[blocks.start : blocks.stop] if blocks is not None else range(request.blocks)
    headline = next((name for name, watcher in request.watchers if isinstance(watcher, Records)), None)
    request.settle()
    if not executor.remote:
        request.compile()  # here, where Ctrl-C still ends it at once
    steps = request.steps + request.burn_in
    with Stop(deadline) as stop, Progress(progress, request.variants * trajectories_of(request, wanted), steps, headline) as bar:
        merge = OrderedMerge(request, wanted, journal, lambda result: bar.advance(steps, result.trajectories))
        partial = _run_blocks(request, executor, merge, journal, stop, bar)
    return assemble(request, merge.variants, partial, stop, wanted)


def complete_run(request: Request) -> Result:
    """All of a run that is part of a measurement. An interrupt ends the measurement: half a run would be taken for one of half the length."""
    result = run_request(request, progress=False)
    if result.outcome.interrupted:
        raise interrupt_of(result.outcome.cause)
    return result


def _run_blocks(request: Request, executor: Executor, merge: OrderedMerge, journal: Journal | None, stop: Stop, bar: Progress) -> PartialBlock | None:
    """All blocks that are still wanted, merged; the first that was cut short, if one was."""
    stored, partial = journal is not None, None
    work = BlockJob(
        request,
        keeps=stored,
        ends=stored and request.keep_final,
        time_slice=block_job.TIME_SLICE if executor.remote else None,
        wanted=merge.wants,
    )
    failed: list[tuple[Job, Failed]] = []
    save = stop.when_full(journal.checkpoint) if journal is not None else None
    take_block = stop.when_full(merge.take)
    unheard: list[Exception] = []

    def receive(message: StepsDone | BlockCheckpoint) -> None:
        try:
            if isinstance(message, StepsDone):
                bar.advance(*message)
            elif save is not None:
                save(*message)
        except Exception as problem:  # no fault of the block that is being run
            unheard.append(problem)
            raise

    log = BlockLog(several=bool(request.axes))
    many = 1 if request.until else _MANY  # behind a missing block it is unknown whether errors are small enough
    jobs = log.handed(takewhile(lambda _: len(failed) < many, merge.jobs()))
    with closing(executor.each(work, jobs, Channel(lambda: stop.asked, receive))) as results, stop.on_error():  # type: ignore[type-var]
        for job, result in results:
            log.came(job, result)
            if unheard:
                raise unheard[0]
            if isinstance(result, Failed):
                failed.append((job, result))
                if result.lost:  # whatever ends workers would end the next ones: those at work keep what they have, and the run ends
                    stop.cause = stop.cause or "workers"
                if not stored:
                    raise _block_error(request, failed, stored)  # nothing would be kept of the others
            elif result is None or not merge.wants(job.variant):
                continue
            elif result.steps < request.steps:
                partial = partial or PartialBlock(job.variant, result)
            else:
                take_block(job.variant, job.block, result)
    stop.when_full(merge.end)()
    if failed:
        raise _block_error(request, failed, stored)
    return partial


def _block_error(request: Request, failed: list[tuple[Job, Failed]], stored: bool) -> Exception:
    """The error of blocks that could not be run."""
    _, first = failed[0]
    if not stored and first.problem is not None:
        return first.problem
    names = ", ".join(f"block {job.block}{f' of variant {job.variant}' if request.axes else ''}" for job, _ in failed)
    others = "The others are kept, and `resume` tries again." if stored else "Nothing is kept of the others: give the run a store."
    times = "once" if first.attempts == 1 else f"{first.attempts} times"
    problem = BlockError(f"{names} could not be run. {others} The first was tried {times}, and ended with\n{first.why}")
    problem.__cause__ = first.problem
    return problem
