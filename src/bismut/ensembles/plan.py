"""What a run will take, before it starts."""

import time
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import jax

from bismut.engines.xla_selfcheck import check_compiler
from bismut.ensembles.block import run_block
from bismut.ensembles.observers.watcher import record_steps
from bismut.ensembles.request import Request
from bismut.ensembles.row_buffer import PORTION, portion_of
from bismut.ensembles.task import bytes_of
from bismut.errors import DomainError
from bismut.executors import cores
from bismut.formatting import memory_size, per_second, text
from bismut.operating_system import available_memory

_SHARE = 0.8  # of the memory that is free, which a run may fill
_LITTLE = 2**26  # bytes that are not checked for
_REHEARSAL = 0.2  # seconds of measuring
_PAGE = 4096  # bytes that a file or a folder takes at least
_DESCRIBED = 700  # bytes that describe an array within a block: its metadata, its names, its checksums
_LINE = 400  # of the manifest, for each block
_DOCUMENTS = 14 * _PAGE  # configuration, provenance, certificate, README, and their texts in the manifest
# Arrays: of an observer in a block and in the results, of the failures, and of a block beside its observers.
_SUMMARY, _REPORT, _FAILURES, _BLOCK, _END = 6, 7, 5, 7, 11


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
            f"  memory       {memory_size(self.memory)}",
            f"  disk         {memory_size(self.disk)} if kept",
        ]
        if self.seconds is not None and self.compiling is not None:
            rate = self.path_steps / max(self.seconds, 1e-9)
            lines.append(f"  time         {_span(self.seconds)} at {per_second(rate)}, after {self.compiling:.1f} s of compiling")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text(str(self))


def plan(request: Request) -> Plan:
    """What a request would take, from the shapes of what is stored, without running."""
    return Plan(
        request.trajectories,
        request.steps + request.burn_in,
        request.variants,
        request.size,
        request.blocks,
        _workers(request),
        request.engine_plan.engine.name,
        memory_of(request),
        disk_of(request),
        request.engine_plan.why,
    )


def check_memory(request: Request) -> None:
    """Refuse a run that does not fit into memory."""
    needed = memory_of(request)
    free = available_memory() if needed > _LITTLE else None
    if free is not None and needed > _SHARE * free:
        raise DomainError(
            f"This run needs about {memory_size(needed)} of memory, but {memory_size(free)} are free. Use fewer trajectories or values at once, "
            "a longer stride (every=), fewer bins or lags, or keep_final=False if the last states are not needed."
        )


def memory_of(request: Request) -> int:
    """Bytes that a run takes at the most."""
    plan, size, workers = request.engine_plan, request.size, _workers(request)
    state, remembered = bytes_of(request.example), sum(bytes_of(memory) for memory in plan.memory)
    portion = sum(min(PORTION, bytes_of(row) * size * (request.steps + 1)) for row in plan.rows)
    working = workers * (size * (12 * state + 40 * request.scheme.channels + 3 * remembered) + 3 * portion)
    final = request.trajectories * request.variants * state if request.keep_final else 0
    # Summaries: of blocks that run or wait to be merged, and of every variant; twice where they are merged or become a result.
    summaries = 3 * workers * _reported(request, size) + 2 * request.variants * _reported(request, request.trajectories)
    return working + 2 * final + summaries


def _workers(request: Request) -> int:
    return min(cores(), request.blocks * request.variants)


def _reported(request: Request, trajectories: int) -> int:
    """Bytes of the summaries of so many trajectories."""
    looks = lambda watcher: -(-request.steps // request.stride(watcher)) + 1
    return sum(
        watcher.summary_bytes(row, looks(watcher), trajectories) for (_, watcher), row in zip(request.watchers, request.engine_plan.rows, strict=True)
    )


def disk_of(request: Request) -> int:
    """Bytes of the folder of a run.

    results      summaries of all trajectories and their last states, a few small files for every array
    each block   its summaries; and where it can be continued, what its next step depends on: states, memories, tallies, rows that wait

    Small arrays cost more than their numbers: each has a description, and a file takes up whole pages.
    """
    reported = partial(_reported, request)
    plan, state = request.engine_plan, bytes_of(request.example)
    final = request.trajectories * state if request.keep_final else 0
    arrays = _REPORT * len(request.watchers) + _FAILURES + (len(jax.tree.leaves(request.example)) if request.keep_final else 0)
    results = request.variants * (reported(request.trajectories) + final) + 4 * _PAGE * arrays
    block = reported(request.size) + _DESCRIBED * (_BLOCK + _SUMMARY * len(request.watchers))
    if request.keep_final:
        remembered = sum(bytes_of(memory) for memory in plan.memory)
        block += request.size * (state + remembered + 16) + reported(request.size) + _tallies(request)
        block += _DESCRIBED * (_END + len(jax.tree.leaves((request.example, plan.memory))))
    pages = ceil(block / _PAGE) * _PAGE
    return results + request.variants * request.blocks * (pages + _LINE) + _DOCUMENTS


def _tallies(request: Request) -> int:
    """Contents of the row buffers at the end of a block: rows that do not fill a portion, and a tally for every portion that they filled."""
    total = 0
    for (_, watcher), row in zip(request.watchers, request.engine_plan.rows, strict=True):
        width, looks = bytes_of(row) * request.size, len(record_steps(request.steps, request.stride(watcher))) - 1
        if width:
            portion = portion_of(width)
            total += width * (looks % portion) + _SUMMARY * _DESCRIBED * (looks // portion + 1)
    return total


def rehearse(request: Request) -> Plan:
    """What a request would take, with times measured on a few steps of one block; refused if it does not fit into memory."""
    check_compiler()
    check_memory(request)
    planned = plan(request)
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
    rounds = -(-planned.blocks * planned.values // planned.workers)
    engine = first.settle()
    return replace(planned, seconds=spent / steps * planned.steps * rounds, compiling=compiling, engine=engine.engine.name, why=engine.why)


def _span(seconds: int | float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
