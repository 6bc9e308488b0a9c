"""One block from its first step to its last, returning to Python now and then.

The work is cut into chunks of about a third of a second, at whose ends rows are taken, failures found and wishes to stop heard. Rows go to those who
watch in portions whose size depends on the block alone, so where chunks begin and end changes no result. The result of a block is plain arrays.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import reduce
from math import gcd
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.engines.engine import Batch
from bismut.ensembles.checkpoint import Checkpoint, frozen, thawed
from bismut.ensembles.desk import Desk
from bismut.ensembles.failing import beyond_walls, residuals
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Ended
from bismut.ensembles.outcome import Failure
from bismut.ensembles.pace import Pace
from bismut.ensembles.request import Request
from bismut.errors import StoreError
from bismut.mechanics import State

CADENCE = 30.0  # seconds of work between two checkpoints of a block


class BlockResult(NamedTuple):
    """What a block came to: a summary per watcher, the last states, who failed, how many steps were watched, and by how many trajectories; where
    it would go on, if that was asked for; and how many ended where the energy is infinite."""

    summaries: tuple
    final: State | None
    failures: tuple[Failure, ...]
    steps: int
    trajectories: int
    end: Checkpoint | None = None
    beyond: int = 0


class Control:
    """What a block hears from outside, and tells: whether to stop, how fast it goes, and what is done.

    keep   (variant, block, Checkpoint) ↦ nothing: called about every `CADENCE` seconds of work, and when a block is stopped
    ends   whether a block that ends says where it would go on
    """

    def __init__(self, stopped: Callable[[], bool] = lambda: False, note: Callable[..., None] = lambda *_: None, pace: Pace | None = None):
        self.stopped, self.note, self.pace = stopped, note, pace or Pace()
        self.keep: Callable[[int, int, Checkpoint], None] | None = None
        self.ends = False


def run_block(request: Request, variant: int, block: int, control: Control | None = None, begun: Checkpoint | None = None) -> BlockResult | None:
    """One block of one variant, from its beginning or from where it was left; None if it was to stop before anybody had looked."""
    devices = jax.local_devices()[: request.devices]
    place = jax.default_device(devices[block % len(devices)]) if len(devices) > 1 else contextlib.nullcontext()
    with place:
        return _Walk(request, variant, block, control or Control()).run(begun)


def states_at(request: Request, variant: int, block: int, point: Checkpoint) -> State:
    """The states of a block at a checkpoint."""
    walk = _Walk(request, variant, block, Control())
    return request.program.states(walk.thawed(walk.begin(), point))


class _Walk:
    """A block on its way."""

    def __init__(self, request: Request, variant: int, block: int, control: Control):
        self.request, self.control, self.setting = request, control, request.settings[variant]
        self.place, self.kept = (variant, block), time.monotonic()
        self.first = request.done + request.burn_in  # the step at which the watch begins
        self.trajectories, self.offset = request.numbers(block), block * request.size
        self.program, self.course, self.numbers = request.program, request.courses[variant], request.shared[variant]
        self.places, self.failures = self.program.places(len(self.trajectories)), list[Failure]()
        self.watchers = [watcher for _, watcher in self.setting.watchers]
        wanted = [watcher.wants(self.trajectories) for watcher in self.watchers]
        self.every = tuple(request.stride(watcher) if want else 0 for watcher, want in zip(self.watchers, wanted, strict=True))
        self.desks = [Desk(watcher, self.trajectories, portion) for watcher, portion in zip(self.watchers, request.portions, strict=True)]
        self.starters = tuple(bool(every) and watcher.sees_start for watcher, every in zip(self.watchers, self.every, strict=True))
        looking = [every for every in self.every if every]
        self.tick = reduce(gcd, looking, 0) or request.every
        # No call gives more rows than a portion; but the first gives two, where a portion is one.
        recording = zip(request.portions, self.every, request.chosen.rows, strict=True)
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
            batch, rows = self.program.advance(self.course, self.numbers, batch, 0, 0, (0,) * len(late), done, late)
            self._take(batch, rows, [range(done, done + one) for one in late])
        return self._result(batch, done, end)

    def begin(self) -> Batch:
        states = self.request.starting[self.place[0]](self.trajectories, self.offset + np.arange(len(self.trajectories)))
        self.gone = _not_finite(states) if self.request.done else np.zeros(len(self.trajectories), bool)
        return self.program.begin(self.course, self.numbers, self.trajectories, states, self.request.done)

    def thawed(self, begun: Batch, point: Checkpoint) -> Batch:
        """The batch of a checkpoint; `begun` is one at the beginning."""
        where = f"The checkpoint of variant {self.place[0]}, block {self.place[1]}"
        if not 0 <= point.done <= (self.request.steps if point.watched else self.request.burn_in):
            raise StoreError(f"{where} is at step {point.done}, which this run does not have.")
        example = self.program.watch(self.course, self.numbers, begun) if point.watched else begun
        batch, self.failures = thawed(point, example, self.desks, where)
        if batch.step != self.request.done + point.done + (self.request.burn_in if point.watched else 0):
            raise StoreError(f"{where} is at step {batch.step}, which is not the step it records.")
        failed = self._failed(batch)
        for desk in self.desks:
            desk.failed = failed - self.first if (failed != _NEVER).any() else None
        return batch

    def _frozen(self, batch: Batch, done: int, watched: bool) -> Checkpoint:
        return frozen(batch, self.desks, self.failures, done, watched)

    def _go(self, batch: Batch, done: int, steps: int, watched: bool) -> tuple[Batch, int]:
        nobody, stopped = (0,) * len(self.every), bool(done) and self.control.stopped()
        while done < steps and not stopped:
            ticks, stride = self._cut(done, steps, watched)
            every = self.every if watched and (done + stride) % self.tick == 0 else nobody
            first = self.starters if watched and not done else ()
            clock = time.perf_counter()
            before = batch
            batch, rows = self.program.advance(self.course, self.numbers, before, ticks, stride, every, done, first)
            after = done + ticks * stride
            self._take(batch, rows, [_looks(done, after, e, bool(first) and first[i]) for i, e in enumerate(every)])
            if batch.failed.max() >= 0:
                self._note_failures(before, batch)
            done = after
            self.control.pace.learn(ticks * stride, self.places, time.perf_counter() - clock)
            self.control.note(ticks * stride, len(self.trajectories), self._newest() if watched else None)
            stopped = self.control.stopped()  # asked once: whoever is stopped is kept
            if self.control.keep is not None and done < steps and (stopped or time.monotonic() - self.kept > CADENCE):
                self.control.keep(*self.place, self._frozen(batch, done, watched))
                self.kept = time.monotonic()
        return batch, done

    def _cut(self, done: int, steps: int, watched: bool) -> tuple[int, int]:
        """How the next chunk is cut: so many times so many steps."""
        tick, left, budget = self.tick, steps - done, self.control.pace.steps(self.places)
        if not watched:
            return 1, min(budget, left)
        if done % tick or tick > min(left, budget):
            return 1, min(tick - done % tick, left, budget)
        # Up to the end of a portion, which begins with a look at the start: one that comes whole needs no copy.
        return max(1, min(budget // tick, left // tick, self.most - (done // tick + 1) % self.most)), tick

    def _take(self, batch: Batch, rows: list, steps: list[range]) -> None:
        lost = batch.failed.max() >= 0 or self.gone.any()
        relative = self._failed(batch) - self.first if lost else None
        for desk, row, when in zip(self.desks, rows, steps, strict=True):
            if len(when):
                desk.take(row, when, relative)

    def _failed(self, batch: Batch) -> np.ndarray:
        """The step that each trajectory did not survive; `_NEVER` where there is none."""
        failed = np.where(batch.failed < 0, _NEVER, batch.failed)
        return np.where(self.gone, self.request.done - 1, failed)

    def _note_failures(self, before: Batch, after: Batch) -> None:
        new = np.flatnonzero((before.failed < 0) & (after.failed >= 0) & ~self.gone)
        if len(new):
            steps = after.failed[new]
            found = residuals(self.program, self.course, self.numbers, self.setting, before, new, steps)
            for i, k, residual in zip(new, steps, found, strict=True):
                self.failures.append(Failure(int(self.trajectories[i]), int(k), self.course.time(int(k)), float(residual)))

    def _newest(self) -> Any:
        """The last mean that somebody recorded."""
        return next((np.asarray(desk.tally[-1].mean)[-1] for desk in self.desks if isinstance(desk.watcher, Records) and desk.tally), None)

    def _result(self, batch: Batch, done: int, end: Checkpoint | None) -> BlockResult:
        request, failed = self.request, self._failed(batch)
        survived = np.where(failed == _NEVER, done, np.maximum(failed - self.first, -1))
        summaries = []
        for i, (watcher, desk) in enumerate(zip(self.watchers, self.desks, strict=True)):
            stride = request.stride(watcher)
            ended = Ended(
                trajectories=self.trajectories,
                finished=failed == _NEVER,
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
            desk.clear()
            memory = self.program.memory(batch, i) if jax.tree.leaves(request.chosen.memory[i]) else ()
            summaries.append(watcher.close(desk.tally, memory, ended))
        scheme, final, beyond = self.setting.scheme, self.program.states(batch) if request.keep_final else None, 0
        if scheme.system.names_infinity:
            states = self.program.states(batch) if final is None else final
            beyond = beyond_walls(scheme, states, failed == _NEVER, self.course.time(self.first + done))
        failures = tuple(sorted(self.failures, key=lambda failure: failure.trajectory))
        return BlockResult(tuple(summaries), final, failures, done, len(self.trajectories), end, beyond)


_NEVER = np.int64(2**62)


def _looks(done: int, after: int, every: int, first: bool) -> range:
    """The steps after which somebody looks, in a call from one step to another; with `first` also before it."""
    start = done if first else (done // every + 1) * every if every else after + 1
    return range(start, after + 1, every) if every else range(start, min(start, after) + 1)


def _not_finite(states: State) -> np.ndarray:
    each = [~np.isfinite(np.asarray(leaf)).reshape(len(leaf), -1).all(1) for leaf in jax.tree.leaves(states)]
    return np.any(each, axis=0)
