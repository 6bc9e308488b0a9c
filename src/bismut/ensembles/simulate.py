"""Many trajectories, observed on the fly.

Trajectories are cut into blocks of a fixed size; a block is one compiled program that advances all its trajectories together while watchers look on,
so memory does not grow with steps. Summaries of blocks are merged in block order: a run is reproducible bit for bit, and no trajectory knows of the
others. Only the final states grow with the number of trajectories, and only if they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bismut.engines.compiler import check_compiler
from bismut.ensembles.checks import check_process
from bismut.ensembles.observable import Observable
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.plan import plan, rehearsed
from bismut.ensembles.request import Request, request
from bismut.ensembles.result import Result
from bismut.ensembles.run import carry_out
from bismut.errors import DomainError
from bismut.executors import Executor
from bismut.mechanics import Scheme
from bismut.noise import Path


def simulate(
    scheme: Scheme,
    start: Any = None,
    *,
    step: float | None = None,
    steps: int,
    trajectories: int | None = None,
    seed: int | None = None,
    observe: Mapping[str, Callable | Observable | Watcher] | None = None,
    every: int | None = None,
    burn_in: int = 0,
    until: Mapping[str, float] | None = None,
    sweep: Mapping[str, Any] | None = None,
    path: Path | None = None,
    t0: float | None = None,
    on_failure: str = "exclude",
    block: int | None = None,
    mode: str = "auto",
    devices: int | None = None,
    keep_final: bool = True,
    first_trajectory: int = 0,
    continue_from: Result | None = None,
    executor: Any = None,
    progress: bool | None = None,
    dry_run: bool = False,
) -> Any:
    """Run trajectories and observe them; returns a Result.

    start       from scheme.start(...): one state, one for each trajectory, or random momenta
    step        the time step h
    steps       how many, after the burn-in
    seed        of the noise; a run is a function of it
    observe     names, each with a function of a State, or of a State and t (`energy`, `temperature`, `momentum(name)` or your own), or an observer
                (`histogram`, `time_average`, `autocorrelation`, `section`, ... or your own `Observer`)
    every       steps between looks; about a hundred by default. Functions are also recorded at the start and at the end
    burn_in     steps made before anybody looks
    until       names and standard errors: trajectories are added, up to `trajectories`, until each named error is small enough, and at least 30
    sweep       names of parameters and their values: extra first axes of every result, all run by one program and on the same noise
    path        a path instead of a seed: a Wiener path refined, shifted or bounded, or any other Path
    t0          the time at the start, where something depends on it
    on_failure  "exclude" leaves failed trajectories out from the failing step on and reports them; "raise" raises at the end
    block       trajectories advanced together, chosen by the size of the step if not given
    mode        the engine: "native" (machine code over trajectories), "xla", or "auto": native where it can
    devices     how many local devices share the work; all of them if not given
    keep_final  whether the last states are kept
    first_trajectory  the number of the first one: a part of a run, to be put together with `merge`
    continue_from     a result to go on from, instead of start, step, trajectories, seed and t0: on the same noise, at the time it ended
    executor    who runs blocks: `Threads(2)` of this process (by default as many as there are cores), `Processes(2)`, or a cluster, `Dask(...)`; the
                result is the same to the bit
    progress    whether a bar is shown; on a terminal if not given
    dry_run     return what the run would take (memory, disk, time) instead of running; print it to read it
    """
    check_process()
    asked = request(
        scheme,
        start,
        step=step,
        steps=steps,
        trajectories=trajectories,
        seed=seed,
        observe=observe,
        every=every,
        burn_in=burn_in,
        until=until,
        sweep=sweep,
        path=path,
        t0=t0,
        on_failure=on_failure,
        block=block,
        mode=mode,
        devices=devices,
        keep_final=keep_final,
        first_trajectory=first_trajectory,
        continue_from=continue_from,
    )
    return perform(asked, executor=executor, progress=progress, dry_run=dry_run)


def perform(asked: Request, *, executor: Any = None, progress: bool | None = None, dry_run: bool = False) -> Any:
    """The result of a request, or with `dry_run` its plan; refused if it does not fit into memory."""
    check_compiler()
    if executor is not None and not isinstance(executor, Executor):
        raise DomainError(f"executor must be Threads(n), Processes(n) or Dask(cluster), but {executor!r} came.")
    needed = plan(asked)
    needed.check()
    return rehearsed(asked, needed) if dry_run else carry_out(asked, executor=executor, progress=progress)
