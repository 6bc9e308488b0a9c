"""A request carried out: blocks are run by an executor and merged in their order.

The executor decides who runs a block and where; it knows nothing of mechanics, and what it gives back does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from bismut.ensembles.block import BlockResult, Control, run_block
from bismut.ensembles.observers.records import Records, record_steps
from bismut.ensembles.observers.report import Population, Report, side_by_side
from bismut.ensembles.observers.watcher import Clock
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.progress import Progress
from bismut.ensembles.request import Request
from bismut.ensembles.result import Provenance, Result, as_data
from bismut.ensembles.stopping import Stop
from bismut.ensembles.workers import Threads
from bismut.errors import SimulationError
from bismut.mechanics import State
from bismut.noise import Wiener

MINIMUM = 30  # trajectories before `until` believes an error


@runtime_checkable
class Executor(Protocol):
    """Runs jobs, several at a time if it can, and gives back what they found in the order of the jobs; it begins few of them ahead."""

    def each(self, work: Callable, jobs: Iterable) -> Iterator: ...


class Variant:
    """What was found for one combination of swept values."""

    def __init__(self):
        self.totals: tuple | None = None
        self.finals: list[State] = []
        self.failures: list[Failure] = []
        self.run = 0
        self.enough = False


class Part(NamedTuple):
    """A block that was cut short."""

    variant: int
    result: BlockResult


def carry_out(request: Request, *, progress: bool | None = None, executor: Executor | None = None) -> Result:
    """The result of a request."""
    executor = executor or Threads()
    _ = request.program, request.shared  # made once, before threads ask for them
    found = [Variant() for _ in request.settings]
    headline = next((name for name, watcher in request.watchers if isinstance(watcher, Records)), None)
    part: Part | None = None
    with Stop() as stop, Progress(progress, request.trajectories * request.variants, request.steps + request.burn_in, headline) as bar:
        control = Control(lambda: stop.asked, bar.advance)

        def work(job: tuple[int, int]):
            variant, block = job
            return job, None if stop.asked or found[variant].enough else run_block(request, variant, block, control)

        for (variant, _), result in executor.each(work, _jobs(request, found)):
            if result is None or found[variant].enough:
                continue
            if result.steps < request.steps:
                part = part or Part(variant, result)
                continue
            _take(request, found[variant], result)
    return _result(request, found, part, stop.asked)


def _jobs(request: Request, found: list[Variant]) -> Iterator[tuple[int, int]]:
    for variant in range(request.variants):
        for block in range(request.blocks):
            if found[variant].enough:
                break
            yield variant, block


def _take(request: Request, variant: Variant, result: BlockResult) -> None:
    """A block merged into the whole."""
    variant.totals = merged(request, variant.totals, result.summaries)
    variant.run += result.trajectories
    variant.failures += result.failures
    if result.final is not None:
        variant.finals.append(result.final)
    variant.enough = bool(request.until) and _good_enough(request, variant)


def merged(request: Request, a: tuple | None, b: tuple) -> tuple:
    return b if a is None else tuple(watcher.merge(x, y) for (_, watcher), x, y in zip(request.watchers, a, b, strict=True))


def _good_enough(request: Request, variant: Variant) -> bool:
    if variant.run - len(variant.failures) < MINIMUM or variant.totals is None:
        return False
    errors = {name: watcher.error(total) for (name, watcher), total in zip(request.watchers, variant.totals, strict=True) if name in request.until}
    return all(errors[name] <= target for name, target in request.until.items())


def _result(request: Request, found: list[Variant], part: Part | None, interrupted: bool) -> Result:
    steps, partial = request.steps, False
    if not any(variant.run for variant in found):
        if part is None:
            raise KeyboardInterrupt("The run was interrupted before anything was complete.")
        _take(request, found[part.variant], part.result)
        steps, partial = part.result.steps, True
    stopped = _ending(request, found, steps, interrupted, partial)
    failures = [failure._replace(at=at) for variant, at in zip(found, swept_values(request), strict=True) for failure in variant.failures]
    outcome = Outcome(sum(variant.run for variant in found), (*request.lost, *failures), stopped, interrupted, partial)
    totals = [variant.totals for variant in found]
    return assembled(request, totals, [variant.run for variant in found], steps, _final(request, found), outcome)


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
        clock = lambda n, w=watcher: Clock(request.begins, request.step, request.stride(w), steps, n)
        each = [None if total is None else watcher.report(name, total[i], clock(n)) for total, n in zip(totals, run, strict=True)]
        report = each[0] if alone else side_by_side(each, dict(request.axes))
        assert report is not None, "something was complete"
        reports[name] = report.over(population)
    return Result(times, reports, final, outcome, _provenance(request, run, steps), request, totals)


def _ending(request: Request, found: list[Variant], steps: int, interrupted: bool, partial: bool) -> str:
    run, asked = sum(variant.run for variant in found), request.trajectories * request.variants
    if partial:
        return f"interrupted after {steps} of {request.steps} steps, with {run} of {asked} trajectories"
    if interrupted:
        return f"interrupted with {run} of {asked} trajectories complete"
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
    """The last states, trajectories behind the swept axes; where values ended with different numbers of them, filled up with what is no number."""
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
    )


@cache
def versions() -> dict[str, Any]:
    return {name: version(name) for name in ("bismut", "jax", "numpy")}
