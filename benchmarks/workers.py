"""python -m benchmarks.workers: one run by one and by two workers, what storing costs, and the constants of the model in docs/scaling.md.

    speed-up = seconds of one worker / seconds of two          overhead = (seconds with a folder − seconds without) / seconds without

Both sides take turns, and each pair gives a ratio: mean ± standard error over pairs, by the clock and by processor time of all processes, which is
what a machine that others use as well can tell. About four minutes; --quick makes fewer and shorter rounds. JSON in output/workers.json.
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
from bismut.documents import plain_json
from bismut.ensembles import request, run_request
from bismut.ensembles.block_codec import block_arrays
from bismut.ensembles.block_job import BlockJob
from bismut.ensembles.journal import MemoryJournal
from bismut.executors import Channel
from bismut.executors.worker import packed
from bismut.gallery import entry
from bismut.store import asked_counts, claim, run_and_store, run_provenance

jax.config.update("jax_enable_x64", True)

KINDS: dict[str, Callable[[int], Any]] = {"threads": bm.Threads, "processes": bm.Processes, "dask": lambda n: bm.Dask(f"local:{n}")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--constants", action="store_true", help="no runs, only the constants")
    parser.add_argument("--json", type=Path, default=Path("output") / "workers.json")
    asked = parser.parse_args()
    rounds, seconds = (3, 2.0) if asked.quick else (7, 5.0)
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d")}
    if not asked.constants:
        run = _run(seconds)
        print(f"heavy top, {run.blocks} blocks of {run.size}, {run.steps} steps; load {found['load']:.1f} on {found['cores']} cores, {rounds} pairs")
        print(f"  {'':40} {'by the clock':>16} {'by processor time':>20}")
        for kind, make in KINDS.items():
            with ExitStack() as stack:
                one, two = (_entered(stack, make(n)) for n in (1, 2))
                sides = [partial(run_request, run, executor=executor, progress=False) for executor in (one, two)]
                found[kind] = _compared(f"{kind}: speed-up from 1 to 2 workers", *sides, rounds, lambda one, two: one / two)
        found["storing"] = _compared("storing: overhead", *storing(run), rounds, lambda kept, free: 100 * (kept / free - 1), " %")
    found["constants"] = constants()
    print(f"\n  {'':44} {'clock':>10} {'processor':>10}")
    for name, (clock, processor) in found["constants"].items():
        print(f"  {name:44} {clock:10.4g} {processor:10.4g}", flush=True)
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
    run_request(made(20), executor=bm.Threads(1), progress=False)
    clock = time.process_time()
    run_request(made(100), executor=bm.Threads(1), progress=False)
    return made(max(100, int(100 * seconds / max(time.process_time() - clock, 1e-3))))


def _compared(name: str, one: Callable, other: Callable, rounds: int, ratio: Callable[[float, float], float], unit: str = "") -> dict[str, Any]:
    """What the ratio of two sides is, by the clock and by processor time, each with its standard error; and the seconds of every round."""
    sides = (one, other)
    for side in sides:
        side()  # begun and compiled
    pairs = []
    for i in range(rounds):
        order = (0, 1) if i % 2 else (1, 0)
        taken = {which: _spent(sides[which], 1) for which in order}
        pairs.append((taken[0], taken[1]))
    ratios = [[ratio(first[kind], second[kind]) for first, second in pairs] for kind in (0, 1)]
    told = [(statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5) for values in ratios]
    print(f"  {name:40} " + "    ".join(f"{mean:8.2f} ± {error:.2f}{unit}" for mean, error in told), flush=True)
    return {"clock": told[0], "processor": told[1], "seconds": pairs}


def storing(run: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """The run with a folder and without: statistics alone, blocks committed as they end, checkpoints at the usual cadence."""
    executor = bm.Threads()

    def kept() -> None:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            documents = {"provenance.json": plain_json(run_provenance(run, "benchmark"))}
            with claim(Path(folder) / "run", documents, asked=asked_counts(run)) as claimed:
                run_and_store(claimed, run, executor=executor, progress=False)

    return kept, partial(run_request, run, executor=executor, progress=False)


def _entered(stack: ExitStack, executor: Any) -> Any:
    return stack.enter_context(executor) if hasattr(executor, "__enter__") else executor


def constants() -> dict[str, tuple[float, float]]:
    """What the model is made of: bytes, or seconds by the clock and of processor time of all processes."""
    run = _run(0.0, steps=100)
    work = BlockJob(run, keeps=False, ends=False, time_slice=45.0)
    found = {"request, bytes": (len(packed(work)),) * 2, "compile": _spent(work.open, 1)}
    journal, again = MemoryJournal(), MemoryJournal()
    run_request(run, executor=bm.Threads(1), journal=journal, progress=False)
    again.blocks, result = journal.blocks, journal.blocks[0, 0]
    found["result of a block, bytes"] = (len(pickle.dumps(result, 5)),) * 2
    found["merge a block"] = _spent(lambda: run_request(run, executor=bm.Threads(1), journal=again, progress=False), 5, run.blocks)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, claim(Path(folder) / "run") as stored:
        arrays = block_arrays(run, result)
        found["commit a block"] = _spent(lambda: stored.commit(0, 0, arrays), 20)
    for kind in ("processes", "dask"):
        with ExitStack() as stack:
            begin = lambda kind=kind, stack=stack: list(stack.enter_context(KINDS[kind](1)).each(_light, range(1), Channel()))
            found[f"{kind}: begin a worker and import JAX"] = _spent(begin, 1)
        with KINDS[kind](1) as executor:
            several = lambda executor=executor: list(executor.each(_nothing, range(200), Channel()))
            several()
            found[f"{kind}: hand over a block"] = _spent(several, 2, 200)
    return found


def _nothing(job: int, channel: Channel) -> int:
    return job


def _light(job: int, channel: Channel) -> int:
    import bismut._api  # as the first block does

    return len(vars(bismut._api))


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
