"""What other processes do in these tests. They are forked from a server that has read the store already, so that a kill costs milliseconds."""

import os
import signal
import time

import numpy as np

from bismut.errors import StoreError
from bismut.store import LabelledArray, ZarrGroup, claim, open_run
from bismut.store.run_reader import has_data
from tests.commands import PROCESSES

CALLS = ("open", "write", "fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "ftruncate")


def arrays(block: int, size: int = 40) -> dict:
    """What a block would give: a function of its number."""
    numbers = np.random.default_rng(block)
    return {"energy": {"mean": numbers.normal(size=size), "count": numbers.integers(0, 9, size)}, "final": {"q0": numbers.normal(size=(3, 2))}}


def results(number: float, size: int = 40) -> ZarrGroup:
    """A tree of results in which every number is the same, so that a mixture of two would show."""
    mean = LabelledArray(("time",), np.full(size, float(number)))
    return ZarrGroup({name: ZarrGroup({"mean": mean}) for name in ("zeta", "alpha")}, {"number": number})


def saved(path, number: float, overwrite: bool = True, size: int = 40) -> None:
    with claim(path, {"run.toml": f"number = {number}\n"}, overwrite=overwrite) as run:
        run.finish(results=results(number, size), documents={"provenance.json": "{}"})


def dying(at: int, act, *arguments) -> None:
    """Do something, and die by SIGKILL before the call number `at` that changes the disk; of a write half is done."""
    calls = 0

    def counted(name):
        real = getattr(os, name) if name != "fsync" else lambda handle: None  # a killed process loses nothing that the system has

        def call(*args, **options):
            nonlocal calls
            calls += 1
            if calls == at:
                if name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, counted(name))
    act(*arguments)


def blocks(path, count: int, told) -> None:
    """Commit blocks from the first that is missing on, with checkpoints and results between; tell of each when it is committed."""
    there = os.path.exists(os.path.join(path, "manifest.jsonl")) and has_data(open_run(path).manifest)  # else its writer was killed as it began
    with claim(path, resume=there) as run:
        for block in range(count):
            if (0, block) in run.stored.blocks:
                continue
            run.checkpoint(0, block, arrays(1000 + block), {"step": 1})
            run.checkpoint(0, block, arrays(2000 + block), {"step": 2})
            run.commit(0, block, arrays(block), {"block": block})
            told.send(block)
            if block % 3 == 2:
                run.commit_documents({}, results(block))
        run.finish(results=results(count))


def contender(path, gate, told, numbered: bool) -> None:
    """Wait for the others, claim, hold on for a while, and tell what came of it."""
    gate.wait()
    try:
        run = claim(path, numbered=numbered)
    except StoreError as problem:
        told.put(("refused", str(problem)))
        return
    with run:
        time.sleep(0.3)
        run.commit(0, 0, arrays(os.getpid()), {})
        told.put(("claimed", run.folder.name))
        run.finish()


def holder(path, told) -> None:
    """Claim, commit one block, and stay."""
    run = claim(path)
    run.commit(0, 0, arrays(0), {})
    told.send("there")
    time.sleep(60)


def slow_writer(path, told) -> None:
    """Save while every sync takes its time."""
    real = os.fsync
    with claim(path) as run:
        os.fsync = lambda handle: (time.sleep(0.02), real(handle))[1]
        told.send("writing")
        try:
            run.finish(results=results(7.0))
        except KeyboardInterrupt:
            told.send("interrupted afterwards")
            raise SystemExit(130) from None
    told.send("no interruption came")


def start(act, *arguments):
    process = PROCESSES.Process(target=act, args=arguments, daemon=True)
    process.start()
    return process
