"""python -m benchmarks.workers: one run by one and by two workers, and the constants of the model in docs/scaling.md; JSON in output/workers.json.

A machine that others use as well tells little by its clock. So each speed comes with path-steps per second of processor time of all processes, and
ratios are medians over rounds. --quick makes fewer and shorter ones.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import jax
import psutil

import bismut as bm
from bismut.ensembles import carry_out, request
from bismut.ensembles.journal import Memory
from bismut.ensembles.kept import block_arrays
from bismut.ensembles.working import Work
from bismut.executors import Line
from bismut.executors.worker import packed
from bismut.gallery import entry
from bismut.store import claim

jax.config.update("jax_enable_x64", True)

KINDS: dict[str, Callable[[int], Any]] = {"threads": bm.Threads, "processes": bm.Processes, "dask": lambda n: bm.Dask(f"local:{n}")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--constants", action="store_true", help="no runs, only the constants")
    parser.add_argument("--json", type=Path, default=Path("output") / "workers.json")
    asked = parser.parse_args()
    rounds, seconds = (3, 4.0) if asked.quick else (5, 10.0)
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d")}
    found["constants"] = constants()
    print(f"  {'':44} {'clock':>10} {'processor':>10}")
    for name, (clock, processor) in found["constants"].items():
        print(f"  {name:44} {clock:10.4g} {processor:10.4g}", flush=True)
    if asked.constants:
        return
    run = _run(seconds)
    print(f"\nheavy top, {run.blocks} blocks of {run.size}, {run.steps} steps; load {found['load']:.1f} on {found['cores']} cores")
    for kind, make in KINDS.items():
        found[kind] = efficiency(make, run, rounds)
        told = "  ".join(f"{name} {value:8.3g}" for name, value in found[kind].items())
        print(f"  {kind:10} {told}", flush=True)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(found, indent=1))
    print(f"\nwritten to {asked.json}")


def _run(seconds: float, block: int = 4096, blocks: int = 8, steps: int | None = None) -> Any:
    """A run of the heavy top that one core computes in about so many seconds."""
    heavy = entry("heavy-top")
    scheme = heavy.scheme(heavy.build())
    made = lambda steps: request(
        scheme, heavy.start(scheme), step=heavy.step, steps=steps, trajectories=block * blocks, seed=1, block=block, keep_final=False
    )
    if steps is not None:
        return made(steps)
    carry_out(made(20), executor=bm.Threads(1), progress=False)
    clock = time.process_time()
    carry_out(made(100), executor=bm.Threads(1), progress=False)
    return made(max(100, int(100 * seconds / max(time.process_time() - clock, 1e-3))))


def efficiency(make: Callable[[int], Any], run: Any, rounds: int) -> dict[str, float]:
    """Million path-steps a second by one worker and by two, by the clock and by processor time; the ratios, and what two workers keep of it."""
    work = run.steps * run.trajectories / 1e6
    found = []
    for n in (1, 2):
        with ExitStack() as stack:
            executor = _entered(stack, make(n))
            carry_out(run, executor=executor, progress=False)  # begun and compiled
            found.append([_spent(partial(carry_out, run, executor=executor, progress=False), 1) for _ in range(rounds)])
    pairs = list(zip(*found, strict=True))
    clock, effort = (statistics.median(one[i] / two[i] for one, two in pairs) for i in (0, 1))
    best = [min(pair[n][0] for pair in pairs) for n in (0, 1)]
    spent = [min(pair[n][1] for pair in pairs) for n in (0, 1)]
    return {
        "one": work / best[0],
        "two": work / best[1],
        "ratio": clock,
        "one per cpu": work / spent[0],
        "two per cpu": work / spent[1],
        "kept": effort,
    }


def _entered(stack: ExitStack, executor: Any) -> Any:
    return stack.enter_context(executor) if hasattr(executor, "__enter__") else executor


def constants() -> dict[str, tuple[float, float]]:
    """What the model is made of: bytes, or seconds by the clock and of processor time of all processes."""
    run = _run(0.0, steps=100)
    work = Work(run, keeps=False, ends=False, turn=45.0)
    found = {"request, bytes": (len(packed(work)),) * 2, "compile": _spent(work.open, 1)}
    journal, again = Memory(), Memory()
    carry_out(run, executor=bm.Threads(1), journal=journal, progress=False)
    again.blocks, result = journal.blocks, journal.blocks[0, 0]
    found["result of a block, bytes"] = (len(pickle.dumps(result, 5)),) * 2
    found["merge a block"] = _spent(lambda: carry_out(run, executor=bm.Threads(1), journal=again, progress=False), 5, run.blocks)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, claim(Path(folder) / "run") as stored:
        arrays = block_arrays(run, result)
        found["commit a block"] = _spent(lambda: stored.commit(0, 0, arrays), 20)
    for kind in ("processes", "dask"):
        with ExitStack() as stack:
            begin = lambda kind=kind, stack=stack: list(stack.enter_context(KINDS[kind](1)).each(_light, range(1), Line()))
            found[f"{kind}: begin a worker and import JAX"] = _spent(begin, 1)
        with KINDS[kind](1) as executor:
            several = lambda executor=executor: list(executor.each(_nothing, range(200), Line()))
            several()
            found[f"{kind}: hand over a block"] = _spent(several, 2, 200)
    return found


def _nothing(job: int, line: Line) -> int:
    return job


def _light(job: int, line: Line) -> int:
    import bismut.public  # as the first block does

    return len(bismut.public.__all__)


def _spent(call: Callable[[], Any], times: int, parts: int = 1) -> tuple[float, float]:
    """Seconds of the clock and of processor time that a call takes, over so many parts; processes that it begins are counted from their beginning."""
    before, clock = _processor(), time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - clock) / times / parts, (_processor() - before) / times / parts


def _processor() -> float:
    """Processor time of this process and of all that it began."""
    return sum(sum(process.cpu_times()[:2]) for process in [psutil.Process(), *psutil.Process().children(recursive=True)])


if __name__ == "__main__":
    main()
