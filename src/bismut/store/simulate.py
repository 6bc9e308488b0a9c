"""Many trajectories, observed on the fly.

Trajectories are cut into blocks of a fixed size; a block is one compiled program that advances all its trajectories together while watchers look on,
so memory does not grow with steps. Summaries of blocks are merged in block order: a run is reproducible bit for bit, and no trajectory knows of the
others. Only the final states grow with the number of trajectories, and only if they are wanted.

With a folder to be kept in, blocks are committed as they end, and a run that is there is gone on with: the same call, made again after a crash, takes
up where the first one was.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bismut import findings, noise
from bismut.arguments import checked
from bismut.ensembles import Observable, Request, Result, Watcher, perform, plan, request
from bismut.ensembles.checks import RUN
from bismut.errors import StoreError
from bismut.mechanics import Scheme
from bismut.process import check_process
from bismut.store.claim import claim
from bismut.store.files import folder_of
from bismut.store.going_on import asked_of_request, compare, identity_of, take_up
from bismut.store.journal import RunJournal
from bismut.store.keeping import carry_out_kept, deadline_after
from bismut.store.layout import PROVENANCE
from bismut.store.leftovers import clean_up
from bismut.store.manifest import MANIFEST, plain_json
from bismut.store.origin import origin
from bismut.store.reading import open_run
from bismut.store.repairing import repair
from bismut.store.run import committed
from bismut.store.verifying import verify_data
from bismut.wording import first_of


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
    path: noise.Path | None = None,
    t0: float | None = None,
    on_failure: str = "exclude",
    block: int | None = None,
    mode: str = "auto",
    devices: int | None = None,
    keep_final: bool = True,
    first_trajectory: int = 0,
    continue_from: Result | None = None,
    store: str | Path | None = None,
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
    devices     how many local devices share the work; all by default
    keep_final  whether the last states are kept
    first_trajectory  the number of the first one: a part of a run, to be combined with `merge`
    continue_from     a result to continue from, instead of start, step, trajectories, seed and t0: on the same noise, at the time it ended
    store       a folder to keep the run in, block by block; if it already holds this run, the run is resumed, or returned if it is complete
    extend      whether the run in the folder may have fewer steps or trajectories: the rest is added, observed as often, in blocks as large
    force       resume it even if software, machine or functions are not known to be the same; this is recorded
    max_time    seconds after which the run is interrupted
    executor    what runs blocks: `Threads(2)` of this process (by default as many as there are cores), `Processes(2)`, or a cluster, `Dask(...)`; the
                result is the same to the bit
    certify     whether the run certifies what it can about itself, for a twentieth of its time: `result.certificate`, certificate.json in the folder
    progress    whether a progress bar is shown; on a terminal by default
    dry_run     return what the run would take (memory, disk, time) instead of running; print it to read it
    """
    check_process()
    folder = None if store is None else folder_of(store, "store")
    if extend and folder is not None and _is_there(folder):
        # What is otherwise chosen by the length of a run was chosen when it began.
        before = identity_of(open_run(folder))
        every, block = (before.get(name) if value is None else value for name, value in (("every", every), ("block", block)))
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
    scheme.check_step(asked.step)
    deadline = deadline_after(max_time)
    if folder is None or dry_run:
        found = perform(asked, executor=executor, progress=progress, dry_run=dry_run, deadline=deadline)
        if certify and isinstance(found, Result) and not found.outcome.interrupted:
            found.certificate = findings.certify(found)
        return found
    return kept(folder, asked, extend=extend, force=force, executor=executor, progress=progress, deadline=deadline, certified=certify)


def kept(
    path: Path,
    asked: Request,
    *,
    extend: bool,
    force: bool,
    executor: Any = None,
    progress: bool | None = None,
    deadline: float | None = None,
    certified: bool = False,
) -> Result:
    """The result of a request that is kept in a folder: begun, gone on with, or only read."""
    command = shlex.join(sys.argv)
    clean_up(path)
    if not _is_there(path):
        made = plain_json(origin(asked, command), indent=1) + "\n"
        run = claim(path, {PROVENANCE: made}, asked=asked_of_request(asked), need=plan(asked).disk)
    else:
        _mended(path, asked, command, extend, force, progress)
        stored = open_run(path)
        compare(stored, asked, extend=extend, force=force)
        journal = RunJournal(asked, stored)
        if stored.state == "complete" and stored.asked == asked_of_request(asked):
            if progress is not False:
                print(f"bismut: {path} is complete; nothing is computed.", file=sys.stderr)
            return perform(asked, progress=False, journal=journal)
        run = take_up(path, asked, command=command, extend=extend, force=force)
    with run:
        found = carry_out_kept(run, asked, executor=executor, progress=progress, deadline=deadline, certified=certified)
    if found.problem:
        warnings.warn(
            f"{found.problem} The result is kept in {found.folder} instead." if found.folder else found.problem, RuntimeWarning, stacklevel=4
        )
    return found.result


def _is_there(path: Path) -> bool:
    """Whether a folder holds a run of which something is committed."""
    return (path / MANIFEST).is_file() and committed(open_run(path).manifest)


def _mended(path: Path, asked: Request, command: str, extend: bool, force: bool, progress: bool | None) -> None:
    """Recompute what is damaged, and say so."""
    report = verify_data(path)
    damaged = report.corrupt
    if not damaged:
        return
    if extend:
        raise StoreError(f"{path} is damaged in {first_of([*damaged])}. Without extend=True, simulate recomputes it; then it can be extended.")
    warnings.warn(f"{path} was damaged and has been repaired: {first_of(report.problems, between=' ')}", RuntimeWarning, stacklevel=5)
    repair(path, lambda stored: asked, command=command, force=force, progress=progress)
