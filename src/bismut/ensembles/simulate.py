"""Running many trajectories: the one function that takes all arguments of a run, and the request that they make.

    simulate(scheme, start, ...)  →  Request, checked and immutable  →  blocks, in an executor  →  merged in order  →  Result

A run that is kept in a folder (`store=`) and one that certifies itself (`certify=True`) need packages that know the ensembles, not the other way
round: they are asked for by name (`registry.PROVIDERS`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from bismut.arguments import arguments_of, checked
from bismut.ensembles.checks import RUN
from bismut.ensembles.interruption import deadline_after
from bismut.ensembles.observable import Observable
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.plan import rehearse
from bismut.ensembles.request import Request, build
from bismut.ensembles.result import Result
from bismut.ensembles.run import run_request
from bismut.mechanics import Scheme
from bismut.noise import Path
from bismut.process import check_process
from bismut.registry import PROVIDERS


@checked(**RUN)
def simulate(
    scheme: Scheme,
    start: Any = None,
    *,
    step: float | None = None,
    steps: int,
    trajectories: int | None = None,
    seed: Any = None,
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
    arithmetic: str | None = None,
    devices: int | None = None,
    keep_final: bool = True,
    first_trajectory: int = 0,
    continue_from: Result | None = None,
    store: str | os.PathLike | None = None,
    extend: bool = False,
    force: bool = False,
    max_time: float | None = None,
    executor: Any = None,
    certify: bool = False,
    progress: bool | None = None,
    dry_run: bool = False,
) -> Any:
    """Run trajectories and observe them; returns a Result.

    start       from scheme.start(...): one state, one for each trajectory, or random momenta
    step        the time step h
    steps       number of steps after the burn-in
    trajectories  how many; by default one for each start
    seed        of the noise; a run is a function of it
    observe     names, each with a function of a State, or of a State and t (`energy`, `temperature`, `momentum(name)` or your own), or an observer
                (`histogram`, `time_average`, `autocorrelation`, `section`, ... or your own `Observer`)
    every       steps between observations, about a hundred of them by default. Functions are also recorded at the start and at the end
    burn_in     steps made before observation begins
    until       names and standard errors: trajectories are added, at least 128 and up to `trajectories`, until each named error is small enough and
                does not rest on a single one
    sweep       names of parameters and their values: extra first axes of every result, all run by one program and on the same noise
    path        a path instead of a seed: a Wiener path refined, shifted or bounded, or any other Path
    t0          the time at the start, if anything depends on it
    on_failure  "exclude" leaves failed trajectories out from the failing step on and reports them; "raise" raises at the end
    block       trajectories advanced together, chosen by the work of the run by default
    mode        the engine: "native" (machine code over trajectories), "xla", or "auto": native where possible
    arithmetic  "fused" (a·b + c rounded once; the default where the processor has it) or "plain" (rounded twice; every machine and every browser).
                It decides the bits of a run, and the processor does not. How XLA rounds is its own affair
    devices     how many local devices share the work; all by default
    keep_final  whether the last states are kept
    first_trajectory  the number of the first one: a part of a run, to be combined with `merge`
    continue_from     a result to continue from, instead of start, step, trajectories, seed and t0: on the same noise, at the time it ended
    store       a folder to keep the run in, block by block; if it already holds this run, the run is resumed, or returned if it is complete
    extend      whether the run in the folder may have fewer steps or trajectories: the rest is added, observed as often, in blocks as large
    force       resume it even if software, arithmetic or functions are not known to be the same; this is recorded
    max_time    seconds after which the run is interrupted
    executor    what runs blocks: `Threads(2)` of this process (by default as many as there are cores), `Processes(2)`, or a cluster, `Dask(...)`; the
                result is the same to the bit
    certify     whether the run certifies what it can about itself, for a twentieth of its time: `result.certificate`, certificate.json in the folder
    progress    whether a progress bar is shown; on a terminal by default
    dry_run     return what the run would take (memory, disk, time) instead of running; print it to read it
    """
    arguments = SimpleNamespace(**locals())
    check_process()
    folder = None if store is None else PROVIDERS["SimulationFolder"](store)
    if extend and folder is not None:
        for name in ("every", "block"):  # otherwise chosen by the length of a run: chosen when it began
            setattr(arguments, name, folder.settings.get(name) if getattr(arguments, name) is None else getattr(arguments, name))
    asked = build(arguments)
    scheme.check_step(asked.step)
    if asked.done == 0:
        scheme.check_burn_in(asked.burn_in, asked.starts[0])
    if dry_run:
        return rehearse(asked)
    how: dict[str, Any] = {"progress": progress, "executor": executor, "deadline": deadline_after(max_time)}
    if folder is not None:
        return folder.run(asked, extend=extend, force=force, certify=certify, **how)
    result = run_request(asked, **how)
    if certify and not result.outcome.interrupted:
        result.certificate = PROVIDERS["certify"](result)
    return result


def request(scheme: Scheme, start: Any = None, **settings: Any) -> Request:
    """The request of `simulate` with these arguments, checked as there."""
    return build(arguments_of(simulate, scheme, start, **settings))
