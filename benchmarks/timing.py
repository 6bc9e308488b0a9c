"""How a speed is measured: the best of several runs, each long enough to time, in a process of its own on so many cores.

Machines are shared and clocks change, so only what ran in the same minutes is compared, and as a ratio.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Missing(Exception):
    """A peer that is not installed here, and what to do about it."""


def best(work: Callable[[], float], rounds: int) -> float:
    """The largest number of path-steps per second of so many rounds; work returns its number of path-steps."""
    fastest = 0.0
    for _ in range(rounds):
        clock = time.perf_counter()
        path_steps = work()
        fastest = max(fastest, path_steps / (time.perf_counter() - clock))
    return fastest


def measured(name: str, cores: int, rounds: int, **settings) -> dict:
    """What `python -m benchmarks.contest NAME` prints, run on so many cores; {"missing": why} if it cannot run here."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    if len(available) < cores:
        return {"missing": f"{cores} cores are not here"}
    asked = json.dumps({"cores": available[:cores], "rounds": rounds, **settings})
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.contest", name, asked]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False)
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["it failed without a word"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])
