"""Results put together: merged summaries of blocks become labelled reports, and consecutive parts of a run become one result.

    simulate(..., first_trajectory=0, trajectories=a)  ∪  simulate(..., first_trajectory=a, trajectories=b)  =  simulate(..., trajectories=a + b)

Trajectories are the same to the bit wherever they run; statistics over them agree to round-off, and counts exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, reduce
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.compile_cache import program_key
from bismut.ensembles.block import BlockResult
from bismut.ensembles.failure_replay import beyond_remark, not_finite_at
from bismut.ensembles.interruption import Interrupted, Stop
from bismut.ensembles.observers.report import ObserverReport, Population, side_by_side
from bismut.ensembles.observers.watcher import Clock, record_steps
from bismut.ensembles.ordered_merge import Variant, merged, take
from bismut.ensembles.request import Request
from bismut.ensembles.result import Outcome, Provenance, Result, as_data
from bismut.ensembles.starts import StartStates
from bismut.ensembles.task import numbers_of
from bismut.errors import DomainError, SimulationError
from bismut.mechanics import State
from bismut.noise import Wiener

_SAME = ("step", "steps", "every", "burn_in", "t0", "done")


class PartialBlock(NamedTuple):
    """A block that was cut short."""

    variant: int
    result: BlockResult


def trajectories_of(request: Request, blocks: range) -> int:
    """How many trajectories successive blocks hold."""
    return min(blocks.stop * request.size, request.trajectories) - min(blocks.start * request.size, request.trajectories)


def assemble(request: Request, variants: list[Variant], partial_block: PartialBlock | None, stop: Stop, blocks: range) -> Result:
    """The result of merged blocks, or of one that was cut short if no other is there."""
    steps, partial = request.steps, False
    each = trajectories_of(request, blocks)
    interrupted = stop.asked and any(variant.run < each and not variant.enough for variant in variants)
    if not any(variant.run for variant in variants):
        if partial_block is None:
            raise Interrupted(stop.cause)
        take(request, variants[partial_block.variant], partial_block.result)
        steps, partial = partial_block.result.steps, True
    stopped = _ending(request, variants, steps, interrupted, partial, blocks)
    failures = [failure._replace(at=at) for variant, at in zip(variants, swept_values(request), strict=True) for failure in variant.failures]
    cause = stop.cause if interrupted else ""
    outcome = Outcome(sum(variant.run for variant in variants), (*request.lost, *failures), stopped, interrupted, partial, cause)
    advice = _at_the_start(request, variants) or request.scheme.failure_advice or outcome.advice
    outcome = replace(outcome, advice=advice, beyond=sum(variant.beyond for variant in variants))
    totals = [variant.totals for variant in variants]
    return result_of(request, totals, [variant.run for variant in variants], steps, _final(request, variants), outcome)


def _at_the_start(request: Request, variants: list[Variant]) -> str:
    """What to do where a first step cannot be made at all."""
    for variant, start, setting in zip(variants, request.starts, request.settings, strict=True):
        first = next((failure for failure in variant.failures if failure.step == 0 and not np.isfinite(failure.residual)), None)
        if first is not None and not request.done:
            state = StartStates(start, request.batch, request.t0).one(setting.path, first.trajectory - (request.first if request.batch else 0))
            return not_finite_at(setting.scheme, state, request.t0)
    return ""


def result_of(request: Request, totals: list, run: list[int], steps: int, final: State | None, outcome: Outcome) -> Result:
    """The result of merged summaries."""
    failed = [sum(failure.at == place for failure in outcome.failures) for place in swept_values(request)]
    if outcome.failures and request.on_failure == "raise":
        raise SimulationError(str(outcome))
    times = request.begins + request.step * np.asarray(record_steps(steps, request.every))
    alone = not request.axes
    asked = request.trajectories
    population = Population(asked, run[0], failed[0]) if alone else Population([asked] * len(run), run, failed)
    reports: dict[str, ObserverReport] = {}
    for i, (name, watcher) in enumerate(request.watchers):
        before, together = request.done + request.burn_in, not request.batch
        clock = lambda n, w=watcher, b=before, one=together: Clock(request.begins, request.step, request.stride(w), steps, n, b, one)
        each = [None if total is None else watcher.report(name, total[i], clock(n)) for total, n in zip(totals, run, strict=True)]
        report = each[0] if alone else side_by_side(each, dict(request.axes))
        assert report is not None, "something was complete"
        reports[name] = report.over(population)
    provenance = _provenance(request, run, steps)
    remarks = [beyond_remark(outcome.beyond, outcome.trajectories)] if outcome.beyond else []
    remarks += [f"the mean of {name} is infinite at some of its times" for name, report in reports.items() if _infinite(report)]
    provenance = replace(provenance, remarks=(*provenance.remarks, *remarks))
    return Result(times, reports, final, outcome, provenance, request, totals)


def _infinite(report: ObserverReport) -> bool:
    """Whether a mean is infinite, of trajectories that are not."""
    return "mean" in report.variables and bool(np.isinf(np.asarray(report.variables["mean"][1], float)).any())


def _ending(request: Request, variants: list[Variant], steps: int, interrupted: bool, partial: bool, blocks: range) -> str:
    run, asked = sum(variant.run for variant in variants), request.trajectories * request.variants
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
    """The swept values of each variant, as text."""
    if not request.axes:
        return [""]
    grids = np.meshgrid(*request.axes.values(), indexing="ij")
    return [", ".join(f"{name} = {g.flat[i]:g}" for name, g in zip(request.axes, grids, strict=True)) for i in range(request.variants)]


def _final(request: Request, variants: list[Variant]) -> State | None:
    """The last states, trajectories behind the swept axes; where values ended with different numbers of them, filled up with NaN."""
    if not request.keep_final or not any(variant.finals for variant in variants):
        return None
    like = next(variant.finals[0] for variant in variants if variant.finals)
    empty = jax.tree.map(lambda leaf: leaf[:0], like)
    each = [jax.tree.map(lambda *parts: np.concatenate(parts), empty, *variant.finals) for variant in variants]
    if not request.axes:
        return each[0]
    most = max(variant.run for variant in variants)
    shape = tuple(len(values) for values in request.axes.values())

    def stacked(*leaves):
        filled = [np.concatenate([leaf, np.full((most - len(leaf), *leaf.shape[1:]), np.nan, leaf.dtype)]) for leaf in leaves]
        return np.stack(filled).reshape(*shape, *filled[0].shape)

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
        mode=request.engine_plan.engine.name,
        block=request.size,
        parameters=as_data(scheme.system.parameters),
        versions=versions(),
        machine=request.engine_plan.engine.machine,
        burn_in=request.burn_in,
        sweep={name: values.tolist() for name, values in request.axes.items()} or None,
        trajectories_run=run if request.axes else run[0],
        steps_run=steps,
        first_trajectory=request.first,
        steps_before=request.done,
        note=request.engine_plan.note,
        arithmetic=request.engine_plan.engine.arithmetic,
    )


@cache
def versions() -> dict[str, Any]:
    return {name: version(name) for name in ("bismut", "jax", "numpy")}


def merge(*results: Result) -> Result:
    """The result of the run of which these are consecutive parts, made with the same arguments except first_trajectory and trajectories."""
    if len(results) < 2 or not all(isinstance(result, Result) for result in results):
        got = ", ".join(type(result).__name__ for result in results)
        raise DomainError(f"merge needs two or more results of bm.simulate, merge(first, second, ...), got ({got}).")
    parts = sorted(results, key=lambda result: result.provenance.first_trajectory)
    for before, after in pairwise(parts):
        _check_follows(before, after)
    first = parts[0].request
    total = sum(part.request.trajectories for part in parts)
    request = replace(first, trajectories=total)
    totals = [reduce(lambda a, b: merged(first, a, b), each) for each in zip(*(part.totals for part in parts), strict=True)]
    failures = tuple(failure for part in parts for failure in part.outcome.failures)
    outcome = Outcome(total * len(totals), failures, beyond=sum(part.outcome.beyond for part in parts))
    return result_of(request, totals, [total] * len(totals), first.steps, _joined_finals(parts), outcome)


def _check_follows(before: Result, after: Result) -> None:
    a, b = before.request, after.request
    for part in (before, after):
        if part.request is None or not part.outcome.complete:
            raise DomainError(f"merge needs complete runs as returned by simulate, but one ended with: {part.outcome}.")
    other = [name for name in _SAME if getattr(a, name) != getattr(b, name)]
    other += ["sweep"] if {n: v.tolist() for n, v in a.axes.items()} != {n: v.tolist() for n, v in b.axes.items()} else []
    engines = {part.settle().engine.arithmetic for part in (a, b)}
    other += [f"arithmetic ({', '.join(sorted(engines))})"] if len(engines) > 1 else []
    other += ["scheme, observers or seed"] if not other and not _same(a, b) else []
    if other:
        raise DomainError(f"These are not parts of one run: they differ in {', '.join(other)}.")
    if a.first + a.trajectories != b.first:
        text = f"one holds trajectories {a.first} to {a.first + a.trajectories - 1}, the next begins with {b.first}"
        raise DomainError(f"Parts of a run must follow each other, but {text}.")


def _same(a: Request, b: Request) -> bool:
    """Whether two requests compute the same, in functions and in numbers."""
    if program_key(a.settings) != program_key(b.settings):
        return False
    pairs = [pair for x, y in zip(a.settings, b.settings, strict=True) for pair in zip(numbers_of(x), numbers_of(y), strict=True)]
    return all(np.array_equal(x, y) for x, y in pairs)


def _joined_finals(parts: Sequence[Result]) -> Any:
    if any(part.final is None for part in parts):
        return None
    axis = len(parts[0].request.axes)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis), *(part.final for part in parts))
