"""Many trajectories, observed on the fly.

Trajectories are cut into blocks of a fixed size; a block is one compiled program that advances all its trajectories together and reduces the
observables to moments whenever a record is due, so memory does not grow with steps. Moments of blocks are merged in block order: a
run is reproducible bit for bit, and no trajectory knows of the others. Only the final states grow with the number of trajectories.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import moments, observable
from bismut.ensembles.block import RECORDS, Block, at_start, chosen_mode, run_block
from bismut.ensembles.checks import check_start, check_step, chosen_path, count, many_starts, one_start
from bismut.ensembles.moments import Moments
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.progress import Progress
from bismut.ensembles.result import Provenance, Result
from bismut.errors import DomainError, SimulationError
from bismut.mechanics import Scheme
from bismut.noise import Index, Wiener, words

BLOCK = 2048  # trajectories advanced together: large enough to amortise a loop, small enough for the cache
_PAUSE = 0.3  # seconds of work aimed at between two returns, for progress and Ctrl-C


def simulate(
    scheme: Scheme,
    start,
    *,
    step: float,
    steps: int,
    trajectories: int = 1,
    seed: int | None = None,
    observe: Mapping[str, Callable] | None = None,
    every: int | None = None,
    path: Wiener | None = None,
    t0: float = 0.0,
    on_failure: str = "exclude",
    block: int = BLOCK,
    mode: str = "auto",
    progress: bool | None = None,
) -> Result:
    """Run trajectories and observe them.

    observe     names and functions of a State; `energy`, `temperature`, `momentum(name)` or your own
    every       steps between records; about a hundred records by default. Start and end are always recorded
    path        a Wiener path instead of a seed: refined, shifted or bounded
    mode        "lanes" (vector code over trajectories), "vmap", or "auto" by the size of the step
    on_failure  "exclude" leaves failed trajectories out from the failing step on and reports them; "raise" raises at the end
    """
    check_step(step)
    steps, trajectories, block = count(steps, "steps"), count(trajectories, "trajectories"), count(block, "block")
    every = count(every if every is not None else -(-steps // 100), "every")
    if mode not in ("auto", "lanes", "vmap"):
        raise DomainError(f'mode must be "auto", "lanes" or "vmap", but {mode!r} came.')
    if on_failure not in ("exclude", "raise"):
        raise DomainError(f'on_failure must be "exclude" or "raise", but {on_failure!r} came.')
    path = chosen_path(seed, path)
    size = min(block, trajectories)
    batch = check_start(scheme, start)
    if batch and batch != (trajectories,):
        raise DomainError(f"start holds {batch} states, but trajectories = {trajectories} came. Give one start, or one for each trajectory.")
    one = one_start(start, path, 0, batch)
    observe = observe or {"energy": observable.energy}
    observable.bind(observe, scheme, one)
    mode = chosen_mode(scheme, one, h=step) if mode == "auto" else mode
    h, begin = jnp.asarray(step, scheme.system.dtype), jnp.asarray(t0, scheme.system.dtype)
    program = partial(run_block, scheme, path, h, begin, tuple(observe.items()), mode == "lanes")

    def run_one(first: int):
        indices = np.arange(first, first + size)
        # Past the last trajectory a block is filled up with copies that are not counted.
        states = many_starts(start, path, np.minimum(indices, trajectories - 1), batch)
        now = at_start(states, scheme.system.dtype, jnp.asarray(indices < trajectories))
        rows, now, found = _run_block(program, now, words(indices), steps, every, bar)
        here = min(size, trajectories - first)
        final = jax.tree.map(lambda leaf: np.asarray(leaf[:here]), now.state)
        return rows, final, [Failure(first + i, k, float(t0) + k * float(h), r) for i, k, r in found if i < here]

    total: dict[str, Moments] = {}
    finals, failures = [], []
    with Progress(progress, trajectories, steps) as bar:
        for rows, final, found in _in_order(run_one, range(0, trajectories, size)):
            total = {name: moments.merge(total[name], rows[name]) for name in rows} if total else rows
            finals.append(final)
            failures += found
    outcome = Outcome(trajectories, tuple(failures))
    if failures and on_failure == "raise":
        raise SimulationError(str(outcome))
    times = float(t0) + float(step) * np.asarray(record_steps(steps, every))
    final = jax.tree.map(lambda *parts: np.concatenate(parts), *finals)
    origin = Provenance(
        scheme=scheme.title,
        space=str(scheme.space),
        precision=scheme.system.precision,
        step=float(step),
        steps=steps,
        every=every,
        trajectories=trajectories,
        t0=float(t0),
        seed=path.seed_number,
        substeps=path.substeps,
        shift=path.shifted_by,
        bounded=path.bounded,
        mode=mode,
        block=size,
        parameters=str(jax.tree.map(np.asarray, scheme.system.parameters)),
        versions=_versions(),
    )
    return Result(times, {name: total[name] for name in observe}, final, outcome, origin)


def record_steps(steps: int, every: int) -> list[int]:
    """The steps after which a record is made: 0, every, 2 every, ..., and the last."""
    marks = list(range(0, steps + 1, every))
    return marks if marks[-1] == steps else [*marks, steps]


def _in_order(work: Callable, blocks: range):
    """Results of blocks in their order, worked on by as many threads as there are cores. The first one alone: it compiles."""
    yield work(blocks[0])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(work, blocks[1:])


def _run_block(program, now: Block, index: Index, steps: int, every: int, bar: Progress):
    """Advance one block to the end, returning to Python now and then."""
    rows: list[dict[str, Moments]] = []
    failures: dict[int, tuple[int, float]] = {}
    done, budget = 0, max(every, 16)
    now, buffer = program(now, index, np.int32(0), np.int32(0))
    rows.append(jax.tree.map(lambda leaf: np.asarray(leaf[0]), buffer))
    while done < steps:
        to_record = every - done % every
        if to_record == every and done + every <= steps:
            records = int(min(RECORDS, max(budget // every, 1), (steps - done) // every))
            stride = every if every <= budget or records > 1 else budget
        else:
            records, stride = 1, min(to_record, steps - done)
        stride = int(min(stride, budget, steps - done)) if records == 1 else stride
        clock = time.perf_counter()
        now, buffer = program(now, index, np.int32(records), np.int32(stride))
        host = jax.tree.map(np.asarray, buffer)
        passed = records * stride
        for i in np.flatnonzero(np.asarray(now.failed) >= -1):
            failures.setdefault(int(i), (done + int(now.failed[i]), float(now.residual[i])))
        done += passed
        if records > 1 or done % every == 0 or done == steps:
            rows += [jax.tree.map(lambda leaf, r=r: leaf[r], host) for r in range(1, records + 1)]
        elapsed = time.perf_counter() - clock
        budget = max(16, min(2**24, int(passed * min(2.0, _PAUSE / max(elapsed, 1e-9)))))
        bar.advance(passed, len(np.flatnonzero(np.asarray(now.present))))
    stacked = jax.tree.map(lambda *parts: np.stack(parts), *rows)
    return stacked, now, [(i, *failures[i]) for i in sorted(failures)]


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("bismut", "jax", "numpy")}
