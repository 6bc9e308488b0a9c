"""One block from its first step to its last, in chunks.

The work is cut into chunks of about a third of a second. After each, rows are taken, failures are recorded, and a request to stop is honoured. Rows
are handed to watchers in portions whose size depends on the block alone, so where chunks begin and end changes no result. The result of a block is
plain arrays.

A short block whose watchers remember nothing is two calls of machine code, `begin`, and `advance` with its first look at the start: `simulate` takes
3.6 ms for 10⁴ pendulums and 100 steps, of which the steps are 2.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import reduce
from math import gcd
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from bismut.engines.engine import Batch, Schedule
from bismut.ensembles.checkpoint import Checkpoint, frozen, thawed
from bismut.ensembles.failure_replay import beyond_walls, residuals
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Ended
from bismut.ensembles.request import Request
from bismut.ensembles.result import Failure
from bismut.ensembles.row_buffer import RowBuffer
from bismut.errors import StoreError
from bismut.mechanics import State

CADENCE = 30.0  # seconds of work between two checkpoints of a block
PAUSE = 0.3  # seconds of work aimed at between two returns
_FEW, _MANY = 16, 2**24  # steps of a chunk
_GROWTH = 16  # of a chunk over the largest before


class BlockResult(NamedTuple):
    """The result of a block.

    summaries     one for each watcher
    final         the last states
    failures      of trajectories that failed
    steps         that were watched
    trajectories  of the block
    end           where it would continue, if that was asked for
    beyond        trajectories that ended where the energy is infinite
    """

    summaries: tuple
    final: State | None
    failures: tuple[Failure, ...]
    steps: int
    trajectories: int
    end: Checkpoint | None = None
    beyond: int = 0


class Pace:
    """How many steps of a block make a chunk, learned from chunks before. All blocks of a run share one, and so do runs of the same program that look
    equally often. It counts steps × places: a program takes as long for a padded place as for a trajectory.
    """

    def __init__(self):
        self._work = 0

    def steps(self, places: int) -> int:
        return max(_FEW, min(_MANY, self._work // places))

    def learn(self, steps: int, places: int, seconds: float) -> None:
        done = steps * places
        self._work = int(min(done * PAUSE / max(seconds, 1e-6), _GROWTH * max(done, self._work)))


_PACES: WeakKeyDictionary = WeakKeyDictionary()


def pace_of(request: Request) -> Pace:
    """The pace of a run, as far as runs of its program before it know it."""
    strides = tuple(request.stride(watcher) for _, watcher in request.watchers)
    return _PACES.setdefault(request.program, {}).setdefault(strides, Pace())


class BlockHooks:
    """How a block talks to the outside.

    stopped  () ↦ whether to stop
    note     (steps, trajectories, newest mean): called after each chunk
    pace     how long chunks are
    keep     (variant, block, Checkpoint): called about every `CADENCE` seconds of work, and when a block is stopped
    ends     whether a block that ends says where it would continue
    threads  that may work on it together, where its program has many bodies
    """

    def __init__(self, stopped: Callable[[], bool] = lambda: False, note: Callable[..., None] = lambda *_: None, pace: Pace | None = None):
        self.stopped, self.note, self.pace = stopped, note, pace or Pace()
        self.keep: Callable[[int, int, Checkpoint], None] | None = None
        self.ends, self.threads = False, 1


def run_block(request: Request, variant: int, block: int, control: BlockHooks | None = None, begun: Checkpoint | None = None) -> BlockResult | None:
    """One block of one variant, from its beginning or from a checkpoint; None if it was stopped before the first observation."""
    devices = jax.local_devices()[: request.devices]
    place = jax.default_device(devices[block % len(devices)]) if len(devices) > 1 else contextlib.nullcontext()
    with place:
        return _BlockRun(request, variant, block, control or BlockHooks()).run(begun)


def states_at(request: Request, variant: int, block: int, point: Checkpoint) -> State:
    """The states of a block at a checkpoint."""
    walk = _BlockRun(request, variant, block, BlockHooks())
    return request.program.states(walk.thawed(walk.begin(), point))


class _BlockRun:
    """A block in progress."""

    def __init__(self, request: Request, variant: int, block: int, control: BlockHooks):
        self.request, self.control, self.setting = request, control, request.settings[variant]
        self.place, self.saved = (variant, block), time.monotonic()
        self.first = request.done + request.burn_in  # the step at which the watch begins
        self.trajectories, self.offset = request.numbers(block), block * request.size
        self.program, self.course, self.numbers = request.program, request.courses[variant], request.shared[variant]
        self.places, self.failures = self.program.places(len(self.trajectories)), list[Failure]()
        self.watchers = [watcher for _, watcher in self.setting.watchers]
        wanted = [watcher.wants(self.trajectories) for watcher in self.watchers]
        self.every = tuple(request.stride(watcher) if want else 0 for watcher, want in zip(self.watchers, wanted, strict=True))
        self.buffers = [RowBuffer(watcher, self.trajectories, portion) for watcher, portion in zip(self.watchers, request.portions, strict=True)]
        self.starters = tuple(bool(every) and watcher.sees_start for watcher, every in zip(self.watchers, self.every, strict=True))
        looking = [every for every in self.every if every]
        self.tick = reduce(gcd, looking, 0) or request.every
        # No call gives more rows than a portion; but the first gives two, where a portion is one.
        recording = zip(request.portions, self.every, request.engine_plan.rows, strict=True)
        self.most = min([p * e // self.tick for p, e, row in recording if e and jax.tree.leaves(row)], default=2**30)

    def run(self, begun: Checkpoint | None = None) -> BlockResult | None:
        request, batch = self.request, self.begin()
        if begun is not None:
            batch = self.thawed(batch, begun)
        done = begun.done if begun is not None else 0
        if begun is None or not begun.watched:
            batch, done = self._go(batch, done, request.burn_in, watched=False)
            if done < request.burn_in or (not done and self.control.stopped()):
                return None
            batch, done = self.program.watch(self.course, self.numbers, batch), 0
        batch, done = self._go(batch, done, request.steps, watched=True)
        end = self._frozen(batch, done, watched=True) if self.control.ends and done == request.steps else None
        late = tuple(bool(every) and watcher.records and done % every != 0 for watcher, every in zip(self.watchers, self.every, strict=True))
        if any(late):
            batch, rows = self.program.advance(self.course, self.numbers, batch, Schedule(0, 0, (0,) * len(late), done, late))
            self._take(batch, rows, [range(done, done + one) for one in late])
        return self._result(batch, done, end)

    def begin(self) -> Batch:
        states = self.request.samplers[self.place[0]](self.trajectories, self.offset + np.arange(len(self.trajectories)))
        self.gone = _not_finite(states) if self.request.done else np.zeros(len(self.trajectories), bool)
        return self.program.begin(self.course, self.numbers, self.trajectories, states, self.request.done)

    def thawed(self, begun: Batch, point: Checkpoint) -> Batch:
        """The batch of a checkpoint; `begun` is one at the beginning."""
        where = f"The checkpoint of variant {self.place[0]}, block {self.place[1]}"
        if not 0 <= point.done <= (self.request.steps if point.watched else self.request.burn_in):
            raise StoreError(f"{where} is at step {point.done}, which this run does not have.")
        example = self.program.watch(self.course, self.numbers, begun) if point.watched else begun
        batch, self.failures = thawed(point, example, self.buffers, where)
        if batch.step != self.request.done + point.done + (self.request.burn_in if point.watched else 0):
            raise StoreError(f"{where} is at step {batch.step}, which is not the step it records.")
        failed = self._failed(batch)
        for buffer in self.buffers:
            buffer.failed = failed - self.first if (failed != _NO_FAILURE).any() else None
        return batch

    def _frozen(self, batch: Batch, done: int, watched: bool) -> Checkpoint:
        return frozen(batch, self.buffers, self.failures, done, watched)

    def _go(self, batch: Batch, done: int, steps: int, watched: bool) -> tuple[Batch, int]:
        never, stopped = (0,) * len(self.every), bool(done) and self.control.stopped()
        while done < steps and not stopped:
            ticks, stride = self._cut(done, steps, watched)
            every = self.every if watched and (done + stride) % self.tick == 0 else never
            first = self.starters if watched and not done else ()
            clock = time.perf_counter()
            before = batch
            schedule = Schedule(ticks, stride, every, done, first, self.control.threads)
            batch, rows = self.program.advance(self.course, self.numbers, before, schedule)
            after = done + ticks * stride
            self._take(batch, rows, [_looks(done, after, e, bool(first) and first[i]) for i, e in enumerate(every)])
            if batch.failed.max() >= 0:
                self._note_failures(before, batch)
            done = after
            self.control.pace.learn(ticks * stride, self.places, time.perf_counter() - clock)
            self.control.note(ticks * stride, len(self.trajectories), self._newest() if watched else None)
            stopped = self.control.stopped()  # asked once, so that a block that stops is also saved
            if self.control.keep is not None and done < steps and (stopped or time.monotonic() - self.saved > CADENCE):
                self.control.keep(*self.place, self._frozen(batch, done, watched))
                self.saved = time.monotonic()
        return batch, done

    def _cut(self, done: int, steps: int, watched: bool) -> tuple[int, int]:
        """How the next chunk is cut: so many times so many steps."""
        tick, left, budget = self.tick, steps - done, self.control.pace.steps(self.places)
        if not watched:
            return 1, min(budget, left)
        if done % tick or tick > min(left, budget):
            return 1, min(tick - done % tick, left, budget)
        # Up to the end of a portion, which begins with a look at the start: a complete one needs no copy.
        return max(1, min(budget // tick, left // tick, self.most - (done // tick + 1) % self.most)), tick

    def _take(self, batch: Batch, rows: list, steps: list[range]) -> None:
        lost = batch.failed.max() >= 0 or self.gone.any()
        relative = self._failed(batch) - self.first if lost else None
        for buffer, row, when in zip(self.buffers, rows, steps, strict=True):
            if len(when):
                buffer.take(row, when, relative)

    def _failed(self, batch: Batch) -> np.ndarray:
        """The step that each trajectory did not survive; `_NO_FAILURE` where there is none."""
        failed = np.where(batch.failed < 0, _NO_FAILURE, batch.failed)
        return np.where(self.gone, self.request.done - 1, failed)

    def _note_failures(self, before: Batch, after: Batch) -> None:
        new = np.flatnonzero((before.failed < 0) & (after.failed >= 0) & ~self.gone)
        if len(new):
            steps = after.failed[new]
            values = residuals(self.program, self.course, self.numbers, self.setting, before, new, steps)
            for i, k, residual in zip(new, steps, values, strict=True):
                self.failures.append(Failure(int(self.trajectories[i]), int(k), self.course.time(int(k)), float(residual)))

    def _newest(self) -> Any:
        """The last mean that was recorded."""
        return next((np.asarray(buffer.tally[-1].mean)[-1] for buffer in self.buffers if isinstance(buffer.watcher, Records) and buffer.tally), None)

    def _result(self, batch: Batch, done: int, end: Checkpoint | None) -> BlockResult:
        request, failed = self.request, self._failed(batch)
        survived = np.where(failed == _NO_FAILURE, done, np.maximum(failed - self.first, -1))
        summaries = []
        for i, (watcher, buffer) in enumerate(zip(self.watchers, self.buffers, strict=True)):
            stride = request.stride(watcher)
            ended = Ended(
                trajectories=self.trajectories,
                finished=failed == _NO_FAILURE,
                survived=survived,
                steps=done,
                looks=done // stride + int(watcher.sees_start),
                every=stride,
                setting=self.setting,
                h=request.step,
                t0=request.t0,
                first=self.first,
                size=request.size,
            )
            buffer.flush()
            memory = self.program.memory(batch, i) if jax.tree.leaves(request.engine_plan.memory[i]) else ()
            summaries.append(watcher.close(buffer.tally, memory, ended))
        scheme, final, beyond = self.setting.scheme, self.program.states(batch) if request.keep_final else None, 0
        if scheme.system.names_infinity:
            states = self.program.states(batch) if final is None else final
            beyond = beyond_walls(scheme, states, failed == _NO_FAILURE, self.course.time(self.first + done))
        failures = tuple(sorted(self.failures, key=lambda failure: failure.trajectory))
        return BlockResult(tuple(summaries), final, failures, done, len(self.trajectories), end, beyond)


_NO_FAILURE = np.int64(2**62)


def _looks(done: int, after: int, every: int, first: bool) -> range:
    """The steps after which there is a look, in a call from one step to another; with `first` also before it."""
    start = done if first else (done // every + 1) * every if every else after + 1
    return range(start, after + 1, every) if every else range(start, min(start, after) + 1)


def _not_finite(states: State) -> np.ndarray:
    each = [~np.isfinite(np.asarray(leaf)).reshape(len(leaf), -1).all(1) for leaf in jax.tree.leaves(states)]
    return np.any(each, axis=0)
