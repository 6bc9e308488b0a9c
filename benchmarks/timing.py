"""How speeds are compared: both sides prepared in processes of their own, then round against round in turn, and the best round of each.

Machines are shared and clocks change, so only what ran in the same minute is compared, and as a ratio.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
BOX_SPACING, BOX_CUTOFF = 1.2, 3.0  # of dipoles in a box, for all who have one: about 65 neighbours each


BOND = 1.0  # of molecules with fixed distances


def fcc(count: int, density: float = 0.8442) -> tuple[np.ndarray, float]:
    """Places of 4 n³ points of a liquid in a cube, and its side."""
    n, side = round((count / 4) ** (1 / 3)), (count / density) ** (1 / 3)
    assert 4 * n**3 == count, f"a face-centred cube has 4 n³ points, not {count}"
    corners = np.stack(np.unravel_index(np.arange(n**3), (n, n, n)), -1)[:, None]
    base = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    return (corners + base).reshape(-1, 3) * (side / n), side


def rods(count: int) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Places of 4 n³ rods of length 3, side by side in layers, and the sides of their box."""
    n, spacing = round((count / 4) ** (1 / 3)), np.array([1.3, 1.3, 3.6])
    shape = (2 * n, 2 * n, n)
    assert 4 * n**3 == count, f"there are 4 n³ rods, not {count}"
    x, y, z = spacing * shape
    return spacing * np.stack(np.unravel_index(np.arange(count), shape), -1), (float(x), float(y), float(z))


def triangle(degrees: float = 104.52) -> np.ndarray:
    """Three points, two bonds and the angle between them."""
    half = np.deg2rad(degrees) / 2
    return BOND * np.array([[0.0, 0.0, 0.0], [np.sin(half), np.cos(half), 0.0], [-np.sin(half), np.cos(half), 0.0]])


def spc_water(molecules: int) -> tuple[np.ndarray, float]:
    """Atoms O, H, H of SPC/E on a cubic lattice at the density of the liquid, and the side of the cube, in nm; orientations are random, but fixed."""
    side = (molecules / 33.3278) ** (1 / 3)
    n = int(np.ceil(molecules ** (1 / 3)))
    corners = (np.stack(np.unravel_index(np.arange(molecules), (n,) * 3), -1) + 0.5) * (side / n)
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(molecules, 3, 3)))[0]
    s, c = np.sqrt(2 / 3), np.sqrt(1 / 3)  # of half the tetrahedral angle
    shape = 0.1 * np.array([[0.0, 0.0, 0.0], [s, 0.0, c], [-s, 0.0, c]])
    return (corners[:, None] + np.einsum("kij,aj->kai", turned, shape)).reshape(-1, 3), side


def coil(count: int) -> np.ndarray:
    """Points of a chain with bonds in random directions, the same for all who have one. A straight chain of n links is under a tension of n²/8 kT as
    soon as it moves, with which 1000 links take no usual step."""
    steps = np.random.default_rng(3).normal(size=(count, 3))
    return BOND * np.cumsum(steps / np.linalg.norm(steps, axis=1)[:, None], 0)


class Missing(Exception):
    """A contestant that cannot run here, and what to do about it."""


class Ready(NamedTuple):
    """A contestant that has compiled and warmed up: a round gives path-steps per second, `facts` go to the JSON."""

    round: Callable[[], float]
    facts: dict[str, Any]


def timed(work: Callable[[], float]) -> Callable[[], float]:
    """A round of work that returns its number of path-steps."""

    def once() -> float:
        clock = time.perf_counter()
        path_steps = work()
        return path_steps / (time.perf_counter() - clock)

    return once


class Side(NamedTuple):
    """A contestant by name, on so many cores, with settings."""

    name: str
    cores: int = 1
    settings: tuple[tuple[str, Any], ...] = ()


class Process:
    """A contestant in a process of its own, which waits between rounds."""

    def __init__(self, side: Side):
        available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
        if len(available) < side.cores:
            raise Missing(f"{side.cores} cores are not here")
        asked = json.dumps({"cores": available[-side.cores :], **dict(side.settings)})
        command = [sys.executable, "-m", "benchmarks.contest", side.name, asked]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment()
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.communicate()

    def facts(self) -> dict[str, Any]:
        """What is known once it is ready."""
        return self._answer()

    def round(self) -> dict[str, float]:
        """Path-steps per second: `speed` by the clock, `effort` by the processor time that was had."""
        assert self._process.stdin is not None
        self._process.stdin.write("round\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        """The next line of JSON; what a library prints of its own accord is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"'):
                answer = json.loads(line)
                if "missing" in answer:
                    raise Missing(answer["missing"])
                return answer
        _, words = self._process.communicate()
        raise Missing((words.strip().splitlines() or ["it failed without a word"])[-1])


def measured(sides: tuple[Side, ...], rounds: int) -> list[dict[str, Any]]:
    """Speed and facts of each side, {"missing": why} for one that cannot run. One after the other they get ready, then rounds take turns."""
    found: list[dict[str, Any]] = []
    with ExitStack() as stack:
        ready: list[Process | None] = []
        for side in sides:
            try:
                process = stack.enter_context(Process(side))
                found.append({"facts": process.facts()["facts"], "rounds": []})
                ready.append(process)
            except Missing as problem:
                found.append({"missing": str(problem)})
                ready.append(None)
        for _ in range(rounds):
            for i, process in enumerate(ready):
                if process is not None:
                    found[i]["rounds"].append(process.round())
    best = lambda rounds: {kind: max(one[kind] for one in rounds) for kind in ("speed", "effort")}
    return [{**one, **best(one["rounds"])} if "rounds" in one else one for one in found]


def environment() -> dict[str, str]:
    """For processes of the benchmark: the source of this checkout, and silence of libraries."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
