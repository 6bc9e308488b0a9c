"""A request carried out: blocks are run by an executor and merged in their order.

The executor decides who runs a block and where; it knows nothing of mechanics, and what it gives back does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import takewhile
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.ensembles import working
from bismut.ensembles.block import BlockResult
from bismut.ensembles.events import Blocks
from bismut.ensembles.failing import not_finite_at, told_beyond
from bismut.ensembles.inorder import InOrder, Variant, take
from bismut.ensembles.journal import Job, Journal
from bismut.ensembles.observers.records import Records, record_steps
from bismut.ensembles.observers.report import Population, Report, side_by_side
from bismut.ensembles.observers.watcher import Clock
from bismut.ensembles.outcome import Outcome
from bismut.ensembles.progress import Progress
from bismut.ensembles.request import Request
from bismut.ensembles.result import Provenance, Result, as_data
from bismut.ensembles.starts import one_start
from bismut.ensembles.stopping import Interrupted, Stop
from bismut.ensembles.working import Kept, Note, Work
from bismut.errors import BlockError, SimulationError
from bismut.executors import Executor, Failed, Line, Threads
from bismut.mechanics import State
from bismut.noise import Wiener

_MANY = 8  # blocks that fail before no more are begun


class Part(NamedTuple):
    """A block that was cut short."""

    variant: int
    result: BlockResult


def carry_out(
    request: Request,
    *,
    progress: bool | None = None,
    executor: Executor | None = None,
    journal: Journal | None = None,
    blocks: range | None = None,
    deadline: float | None = None,
) -> Result:
    """The result of a request.

    journal   where blocks are kept as they end, and where those are found that need not be run
    blocks    the blocks of each variant that are wanted; all of them if not given
    deadline  a time of `time.monotonic` at which the run is interrupted
    """
    executor = executor or Threads()
    wanted = range(request.blocks)[blocks.start : blocks.stop] if blocks is not None else range(request.blocks)
    headline = next((name for name, watcher in request.watchers if isinstance(watcher, Records)), None)
    part: Part | None = None
    request.settle()
    if not executor.elsewhere:
        _ = request.program, request.shared, request.starting  # here, where Ctrl-C still ends it at once
    steps = request.steps + request.burn_in
    with Stop(deadline) as stop, Progress(progress, request.variants * _trajectories(request, wanted), steps, headline) as bar:
        order = InOrder(request, wanted, journal, lambda result: bar.advance(steps, result.trajectories))
        keeps, turn = journal is not None, working.TURN if executor.elsewhere else None
        work = Work(request, keeps=keeps, ends=keeps and request.keep_final, turn=turn, wanted=order.wants)
        failed: list[tuple[Job, Failed]] = []
        keep = stop.when_full(journal.checkpoint) if journal is not None else None
        unheard: list[Exception] = []

        def hear(message: Note | Kept) -> None:
            try:
                if isinstance(message, Note):
                    bar.advance(*message)
                elif keep is not None:
                    keep(*message)
            except Exception as problem:  # no fault of the block that is being run
                unheard.append(problem)
                raise

        take_block = stop.when_full(order.take)
        events = Blocks(several=bool(request.axes))
        many = 1 if request.until else _MANY  # behind a block that is missing nobody can tell whether errors are small enough
        jobs = events.handed(_until(order.jobs(), lambda: len(failed) >= many))
        coming = executor.each(work, jobs, Line(lambda: stop.asked, hear))
        with closing(coming) as found, stop.on_error():  # type: ignore[type-var]
            for job, result in found:
                events.came(job, result)
                if unheard:
                    raise unheard[0]
                if isinstance(result, Failed):
                    failed.append((job, result))
                    if result.lost:  # whatever ends workers would end the next ones: those at work keep what they have, and the run ends
                        stop.cause = stop.cause or "workers"
                    if journal is None:
                        raise _told(request, failed, kept=False)  # nothing would be kept of the others
                elif result is None or not order.wants(job.variant):
                    continue
                elif result.steps < request.steps:
                    part = part or Part(job.variant, result)
                else:
                    take_block(job.variant, job.block, result)
        stop.when_full(order.end)()
        if failed:
            raise _told(request, failed, kept=True)
    return _result(request, order.found, part, stop, wanted)


def _until(jobs: Iterator[Job], enough: Callable[[], bool]) -> Iterator[Job]:
    return takewhile(lambda _: not enough(), jobs)


def _told(request: Request, failed: list[tuple[Job, Failed]], kept: bool) -> Exception:
    """What is said of blocks that cannot be run."""
    _, first = failed[0]
    if not kept and first.problem is not None:
        return first.problem
    names = ", ".join(f"block {job.block}{f' of variant {job.variant}' if request.axes else ''}" for job, _ in failed)
    others = "The others are kept, and `resume` tries again." if kept else "Nothing is kept of the others: give the run a store."
    times = "once" if first.attempts == 1 else f"{first.attempts} times"
    problem = BlockError(f"{names} could not be run. {others} The first was tried {times}, and ended with\n{first.why}")
    problem.__cause__ = first.problem
    return problem


def _trajectories(request: Request, blocks: range) -> int:
    """How many trajectories successive blocks hold."""
    return min(blocks.stop * request.size, request.trajectories) - min(blocks.start * request.size, request.trajectories)


def _result(request: Request, found: list[Variant], part: Part | None, stop: Stop, blocks: range) -> Result:
    steps, partial = request.steps, False
    each = _trajectories(request, blocks)
    interrupted = stop.asked and any(variant.run < each and not variant.enough for variant in found)
    if not any(variant.run for variant in found):
        if part is None:
            raise Interrupted(stop.cause)
        take(request, found[part.variant], part.result)
        steps, partial = part.result.steps, True
    stopped = _ending(request, found, steps, interrupted, partial, blocks)
    failures = [failure._replace(at=at) for variant, at in zip(found, swept_values(request), strict=True) for failure in variant.failures]
    cause = stop.cause if interrupted else ""
    outcome = Outcome(sum(variant.run for variant in found), (*request.lost, *failures), stopped, interrupted, partial, cause)
    outcome = replace(outcome, advice=_at_the_start(request, found) or outcome.advice, beyond=sum(variant.beyond for variant in found))
    totals = [variant.totals for variant in found]
    return assembled(request, totals, [variant.run for variant in found], steps, _final(request, found), outcome)


def _at_the_start(request: Request, found: list[Variant]) -> str:
    """What to do where a first step cannot be made at all."""
    for variant, start, setting in zip(found, request.starts, request.settings, strict=True):
        first = next((failure for failure in variant.failures if failure.step == 0 and not np.isfinite(failure.residual)), None)
        if first is not None and not request.done:
            state = one_start(start, setting.path, first.trajectory - (request.first if request.batch else 0), request.batch, request.t0)
            return not_finite_at(setting.scheme, state, request.t0)
    return ""


def assembled(request: Request, totals: list, run: list[int], steps: int, final: State | None, outcome: Outcome) -> Result:
    """The result of merged summaries."""
    failed = [sum(failure.at == place for failure in outcome.failures) for place in swept_values(request)]
    if outcome.failures and request.on_failure == "raise":
        raise SimulationError(str(outcome))
    times = request.begins + request.step * np.asarray(record_steps(steps, request.every))
    alone = not request.axes
    asked = request.trajectories
    population = Population(asked, run[0], failed[0]) if alone else Population([asked] * len(run), run, failed)
    reports: dict[str, Report] = {}
    for i, (name, watcher) in enumerate(request.watchers):
        clock = lambda n, w=watcher: Clock(request.begins, request.step, request.stride(w), steps, n, request.done + request.burn_in)
        each = [None if total is None else watcher.report(name, total[i], clock(n)) for total, n in zip(totals, run, strict=True)]
        report = each[0] if alone else side_by_side(each, dict(request.axes))
        assert report is not None, "something was complete"
        reports[name] = report.over(population)
    provenance = _provenance(request, run, steps)
    remarks = [told_beyond(outcome.beyond, outcome.trajectories)] if outcome.beyond else []
    remarks += [f"the mean of {name} is infinite at some of its times" for name, report in reports.items() if _infinite(report)]
    provenance = replace(provenance, remarks=(*provenance.remarks, *remarks))
    return Result(times, reports, final, outcome, provenance, request, totals)


def _infinite(report: Report) -> bool:
    """Whether a mean is infinite, of trajectories that are not."""
    return "mean" in report.variables and bool(np.isinf(np.asarray(report.variables["mean"][1], float)).any())


def _ending(request: Request, found: list[Variant], steps: int, interrupted: bool, partial: bool, blocks: range) -> str:
    run, asked = sum(variant.run for variant in found), request.trajectories * request.variants
    if partial:
        return f"interrupted after {steps} of {request.steps} steps, with {run} of {asked} trajectories"
    if interrupted:
        return f"interrupted with {run} of {asked} trajectories complete"
    if run < asked and len(blocks) < request.blocks:
        return f"blocks {blocks.start}:{blocks.stop} of {request.blocks}, {run} of {asked} trajectories"
    if run < asked:
        return f"standard errors small enough after {run} of at most {asked} trajectories"
    return ""


def swept_values(request: Request) -> list[str]:
    """What each variant was swept to, in words."""
    if not request.axes:
        return [""]
    grids = np.meshgrid(*request.axes.values(), indexing="ij")
    return [", ".join(f"{name} = {g.flat[i]:g}" for name, g in zip(request.axes, grids, strict=True)) for i in range(request.variants)]


def _final(request: Request, found: list[Variant]) -> State | None:
    """The last states, trajectories behind the swept axes; where values ended with different numbers of them, filled up with NaN."""
    if not request.keep_final or not any(variant.finals for variant in found):
        return None
    like = next(variant.finals[0] for variant in found if variant.finals)
    empty = jax.tree.map(lambda leaf: leaf[:0], like)
    each = [jax.tree.map(lambda *parts: np.concatenate(parts), empty, *variant.finals) for variant in found]
    if not request.axes:
        return each[0]
    most = max(variant.run for variant in found)
    shape = tuple(len(values) for values in request.axes.values())

    def stacked(*leaves):
        whole = [np.concatenate([leaf, np.full((most - len(leaf), *leaf.shape[1:]), np.nan, leaf.dtype)]) for leaf in leaves]
        return np.stack(whole).reshape(*shape, *whole[0].shape)

    return jax.tree.map(stacked, *each)


def _provenance(request: Request, run: list[int], steps: int) -> Provenance:
    scheme, path = request.scheme, request.path
    return Provenance(
        scheme=scheme.title,
        space=str(scheme.space),
        precision=scheme.system.precision,
        step=request.step,
        steps=request.steps,
        every=request.every,
        trajectories=request.trajectories,
        t0=request.t0,
        seed=path.seed_number,
        substeps=path.substeps if isinstance(path, Wiener) else 1,
        shift=path.shifted_by if isinstance(path, Wiener) else 0,
        bounded=isinstance(path, Wiener) and path.bounded,
        path=repr(path),
        remarks=scheme.remarks(request.step),
        mode=request.chosen.engine.name,
        block=request.size,
        parameters=as_data(scheme.system.parameters),
        versions=versions(),
        machine=request.chosen.engine.machine,
        burn_in=request.burn_in,
        sweep={name: values.tolist() for name, values in request.axes.items()} or None,
        trajectories_run=run if request.axes else run[0],
        steps_run=steps,
        first_trajectory=request.first,
        steps_before=request.done,
        note=request.chosen.note,
    )


@cache
def versions() -> dict[str, Any]:
    return {name: version(name) for name in ("bismut", "jax", "numpy")}
