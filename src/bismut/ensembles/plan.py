"""What a run will take, before it starts."""

import contextlib
import os
import time
from dataclasses import dataclass, replace
from functools import partial

from bismut.ensembles.block import run_block
from bismut.ensembles.desk import PORTION
from bismut.ensembles.disk import disk_of
from bismut.ensembles.request import Request
from bismut.ensembles.task import bytes_of
from bismut.errors import DomainError
from bismut.executors import cores
from bismut.showing import per_second, text

_SHARE = 0.8  # of the memory that is free, which a run may fill
_LITTLE = 2**26  # bytes that nobody looks for
_REHEARSAL = 0.2  # seconds of measuring


@dataclass(frozen=True)
class Plan:
    """What a run would take: sizes in bytes, times in seconds. `seconds` and `compiling` are measured, by a dry run only."""

    trajectories: int
    steps: int
    values: int
    block: int
    blocks: int
    workers: int
    engine: str
    memory: int
    disk: int
    why: str = ""
    seconds: float | None = None
    compiling: float | None = None

    @property
    def path_steps(self) -> int:
        return self.trajectories * self.steps * self.values

    def __repr__(self):
        swept = f" × {self.values} values" if self.values > 1 else ""
        lines = [
            f"{self.trajectories} trajectories × {self.steps} steps{swept}: {self.path_steps:.3g} path-steps",
            f"  blocks       {self.blocks} of {self.block} trajectories, {self.workers} at a time",
            f"  engine       {self.engine}{f': {self.why}' if self.why else ''}",
            f"  memory       {_size(self.memory)}",
            f"  disk         {_size(self.disk)} if kept",
        ]
        if self.seconds is not None and self.compiling is not None:
            rate = self.path_steps / max(self.seconds, 1e-9)
            lines.append(f"  time         {_span(self.seconds)} at {per_second(rate)}, after {self.compiling:.1f} s of compiling")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text(str(self))


def plan(request: Request) -> Plan:
    """What a request would take, found without running: from the shapes of what is kept."""
    return Plan(
        request.trajectories,
        request.steps + request.burn_in,
        request.variants,
        request.size,
        request.blocks,
        _workers(request),
        request.chosen.engine.name,
        memory_of(request),
        disk_of(request, partial(_reported, request)),
        request.chosen.why,
    )


def check_memory(request: Request) -> None:
    """Refuse a run that does not fit into memory."""
    needed = memory_of(request)
    free = available_memory() if needed > _LITTLE else None
    if free is not None and needed > _SHARE * free:
        raise DomainError(
            f"This run needs about {_size(needed)} of memory, but {_size(free)} are free. Use fewer trajectories or values at once, "
            "a longer stride (every=), fewer bins or lags, or keep_final=False if the last states are not needed."
        )


def memory_of(request: Request) -> int:
    """Bytes that a run takes at the most."""
    found, size, workers = request.chosen, request.size, _workers(request)
    state, remembered = bytes_of(request.example), sum(bytes_of(memory) for memory in found.memory)
    portion = sum(min(PORTION, bytes_of(row) * size * (request.steps + 1)) for row in found.rows)
    working = workers * (size * (12 * state + 40 * request.scheme.channels + 3 * remembered) + 3 * portion)
    kept = request.trajectories * request.variants * state if request.keep_final else 0
    # Summaries: of blocks that run or wait to be merged, and of every variant; twice where they are merged or become a result.
    summaries = 3 * workers * _reported(request, size) + 2 * request.variants * _reported(request, request.trajectories)
    return working + 2 * kept + summaries


def _workers(request: Request) -> int:
    return min(cores(), request.blocks * request.variants)


def _reported(request: Request, trajectories: int) -> int:
    """Bytes of the summaries of so many trajectories."""
    looks = lambda watcher: -(-request.steps // request.stride(watcher)) + 1
    return sum(watcher.held(row, looks(watcher), trajectories) for (_, watcher), row in zip(request.watchers, request.chosen.rows, strict=True))


def rehearsed(request: Request, plan: Plan) -> Plan:
    """The plan with times measured on a few steps of one block."""
    few = lambda steps: replace(request, steps=steps, every=min(request.every, steps), burn_in=0, until={}, keep_final=False)
    clock = time.perf_counter()
    first = few(1)
    run_block(first, 0, 0)
    compiling = time.perf_counter() - clock
    steps, spent = 1, 0.0
    while spent < _REHEARSAL and steps < request.steps + request.burn_in:
        steps = min(8 * steps, request.steps + request.burn_in)
        clock = time.perf_counter()
        run_block(few(steps), 0, 0)
        spent = time.perf_counter() - clock
    rounds = -(-plan.blocks * plan.values // plan.workers)
    engine = first.settle()
    return replace(plan, seconds=spent / steps * plan.steps * rounds, compiling=compiling, engine=engine.engine.name, why=engine.why)


def available_memory() -> int | None:
    """Bytes that can be had without swapping, where the system says so."""
    with contextlib.suppress(OSError), open("/proc/meminfo") as info:
        for line in info:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _size(count: int | float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _span(seconds: int | float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
