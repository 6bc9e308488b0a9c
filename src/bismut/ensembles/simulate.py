"""Many trajectories, observed on the fly.

Trajectories are cut into blocks of a fixed size; a block is one compiled program that advances all its trajectories together while watchers look on,
so memory does not grow with steps. Summaries of blocks are merged in block order: a run is reproducible bit for bit, and no trajectory knows of the
others. Only the final states grow with the number of trajectories, and only if they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from bismut.ensembles.cache import keep_programs
from bismut.ensembles.checks import check_looks, check_process, check_tables, check_time, chosen_path
from bismut.ensembles.ensemble import Ensemble
from bismut.ensembles.observable import Observable
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.plan import Plan
from bismut.ensembles.result import Provenance, Result, as_data
from bismut.errors import SimulationError
from bismut.mechanics import Scheme
from bismut.noise import Wiener


def simulate(
    scheme: Scheme,
    start,
    *,
    step: float,
    steps: int,
    trajectories: int = 1,
    seed: int | None = None,
    observe: Mapping[str, Callable | Observable | Watcher] | None = None,
    every: int | None = None,
    burn_in: int = 0,
    until: Mapping[str, float] | None = None,
    sweep: Mapping[str, Any] | None = None,
    path: Wiener | None = None,
    t0: float = 0.0,
    on_failure: str = "exclude",
    block: int | None = None,
    mode: str = "auto",
    devices: int | None = None,
    keep_final: bool = True,
    progress: bool | None = None,
    dry_run: bool = False,
) -> Any:
    """Run trajectories and observe them; returns a Result.

    start       from scheme.start(...): one state, one for each trajectory, or random momenta
    step        the time step h
    steps       how many, after the burn-in
    seed        of the noise; a run is a function of it
    observe     names, each with a function of a State (`energy`, `temperature`, `momentum(name)` or your own) or an observer (`histogram`,
                `time_average`, `autocorrelation`, `section`, ... or your own `Observer`)
    every       steps between looks; about a hundred by default. Functions are also recorded at the start and at the end
    burn_in     steps made before anybody looks
    until       names and standard errors: trajectories are added, up to `trajectories`, until each named error is small enough
    sweep       names of parameters and their values: extra first axes of every result, all run by one program and on the same noise
    path        a Wiener path instead of a seed: refined, shifted or bounded
    t0          the time at the start, where something depends on it
    on_failure  "exclude" leaves failed trajectories out from the failing step on and reports them; "raise" raises at the end
    block       trajectories advanced together, chosen by the size of the step if not given
    mode        "lanes" (vector code over trajectories), "vmap", or "auto" by the size of the step
    devices     how many local devices share the work; all of them if not given
    keep_final  whether the last states are kept
    progress    whether a bar is shown; on a terminal if not given
    dry_run     return what the run would take (memory, disk, time) instead of running; print it to read it
    """
    check_process()
    keep_programs()
    path = chosen_path(seed, path)
    check_time(t0)
    check_tables(observe, until, sweep)
    check_looks(observe, steps)
    asked = Ensemble.asked(
        scheme,
        start,
        path,
        observe=observe,
        step=step,
        steps=steps,
        trajectories=trajectories,
        every=every,
        burn_in=burn_in,
        until=until,
        sweep=sweep,
        t0=t0,
        on_failure=on_failure,
        block=block,
        mode=mode,
        devices=devices,
        keep_final=keep_final,
    )
    plan = asked.plan()
    if dry_run:
        return asked.rehearsed(plan)
    plan.check()
    observables, final, outcome, times = asked.run(progress)
    if outcome.failures and on_failure == "raise":
        raise SimulationError(str(outcome))
    return Result(times, observables, final, outcome, _provenance(asked, path, plan))


def _provenance(asked: Ensemble, path: Wiener, plan: Plan) -> Provenance:
    scheme = asked.scheme
    return Provenance(
        scheme=scheme.title,
        space=str(scheme.space),
        precision=scheme.system.precision,
        step=asked.step,
        steps=asked.steps,
        every=asked.every,
        trajectories=asked.trajectories,
        t0=asked.t0,
        seed=path.seed_number,
        substeps=path.substeps,
        shift=path.shifted_by,
        bounded=path.bounded,
        mode=plan.mode,
        block=plan.block,
        parameters=as_data(scheme.system.parameters),
        versions={name: version(name) for name in ("bismut", "jax", "numpy")},
        burn_in=asked.burn_in,
        sweep={name: values.tolist() for name, values in asked.axes.items()} or None,
    )
