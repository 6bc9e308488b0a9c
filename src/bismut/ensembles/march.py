"""One block from its first step to its last, returning to Python now and then.

The work is cut into chunks of about a third of a second, at whose ends rows are fetched, failures found and wishes to stop heard. A trajectory that
has failed is found by being no number; the chunk is then replayed from its beginning, by halves, to name the step. Where chunks begin and end changes
no result.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.block import ROWS, Block, tick_of
from bismut.ensembles.devices import Programs, lost, residuals
from bismut.ensembles.observers.watcher import Setting
from bismut.ensembles.stopping import Stop
from bismut.mechanics import State
from bismut.noise import Index, words

PAUSE = 0.3  # seconds of work aimed at between two returns
UNSEEN = np.int32(-(2**30))  # `passed` while nobody watches


class Pace:
    """How many steps of a block make a chunk, learned from chunks before; shared by all blocks of a run."""

    def __init__(self):
        self.steps = 16

    def learn(self, steps: int, seconds: float) -> None:
        wanted = steps * PAUSE / max(seconds, 1e-6)
        self.steps = int(max(16, min(2**24, wanted, 4 * max(steps, self.steps))))


class Course(NamedTuple):
    """What one block has to do."""

    setting: Setting
    every: int
    burn_in: int
    steps: int


class Found(NamedTuple):
    """What one block came to: a row list or a summary per watcher and device, final states, failures (place, step, residual), steps made."""

    rows: list
    summaries: Any
    final: State
    failures: dict[int, tuple[int, float]]
    steps: int


class March:
    """A block on its way."""

    def __init__(self, programs: Programs, course: Course, index: Index, pace: Pace, stop: Stop, note):
        self.programs, self.course, self.index = programs, course, index
        self.pace, self.stop, self.note = pace, stop, note
        self.tick = tick_of(course.setting, course.every)
        self.failures: dict[int, tuple[int, float]] = {}
        self.rows: list[list] = [[] for _ in course.setting.watchers]

    def run(self, state: State, present) -> Found | None:
        """What became of the block; None if it was to stop before anybody had looked."""
        setting = self.course.setting
        block = self.programs.begin(setting, state, words(0), present)
        if self.course.burn_in:
            block = self._go(block._replace(passed=jnp.asarray(UNSEEN)), self.course.burn_in, watched=False)
            block = self.programs.begin(setting, block.state, block.step, block.present)
        if self.stop.asked:
            return None
        block = self._call(block, 1, 0, 0)  # the first look
        block = self._go(block, self.course.steps, watched=True)
        summaries = jax.tree.map(np.asarray, self.programs.end(setting, block, self.index))
        return Found(self.rows, summaries, block.state, self.failures, max(int(block.passed), 0))

    def newest(self):
        """The last row of the first watcher that writes rows."""
        return next((rows[-1] for rows in self.rows if rows), None)

    def _go(self, block: Block, steps: int, watched: bool) -> Block:
        done, first = 0, 0 if watched else -self.course.burn_in
        while done < steps and not self.stop.asked:
            ticks, stride = self._cut(done, steps, watched)
            clock = time.perf_counter()
            block = self._call(block, ticks, stride, first + done)
            done += ticks * stride
            self.pace.learn(ticks * stride, time.perf_counter() - clock)
            self.note(ticks * stride)
        return block

    def _cut(self, done: int, steps: int, watched: bool) -> tuple[int, int]:
        """How the next chunk is cut: so many times so many steps."""
        tick, left, budget = self.tick, steps - done, self.pace.steps
        if not watched:
            return 1, min(budget, left)
        if done % tick or tick > min(left, budget):
            return 1, min(tick - done % tick, left, budget)
        strides = [w.every or self.course.every for _, w in self.course.setting.watchers if w.records]
        most = ROWS * (min(strides) // tick) if strides else left
        return max(1, min(budget // tick, left // tick, most)), tick

    def _call(self, before: Block, ticks: int, stride: int, done: int) -> Block:
        """One call of the compiled program; `done` counts steps since the watch began."""
        after, rows = self._advance(before, ticks, stride)
        for mine, written in zip(self.rows, rows, strict=True):
            if written != ():
                count = int(written.number[0])
                mine += [jax.tree.map(lambda leaf, r=r: leaf[:, r], written.rows) for r in range(count)]
        new = [int(i) for i in np.flatnonzero(np.asarray(lost(after))) if int(i) not in self.failures]
        if new:
            for i, (step, residual) in self._first_failures(before, ticks * stride, new).items():
                self.failures[i] = (done + step + self.course.burn_in, residual)
        return after

    def _advance(self, block: Block, ticks: int, stride: int):
        course = self.course
        numbers = (np.int32(ticks), np.int32(stride), np.int32(course.steps))
        block, rows = self.programs.run(course.setting, np.int32(course.every), block, self.index, *numbers)
        return block, jax.tree.map(np.asarray, rows)

    def _first_failures(self, before: Block, steps: int, suspects: list[int]) -> dict[int, tuple[int, float]]:
        """For each suspect the first of `steps` steps that leads out of the numbers, found by halving with the very program that ran."""
        if not suspects:
            return {}
        if steps <= 1:
            residual, converged = map(np.asarray, residuals(self.course.setting, before, self.index))
            return {i: (0, float("nan") if converged[i] else float(residual[i])) for i in suspects}
        half = steps // 2
        middle, _ = self._advance(before, 1, half)
        gone = np.asarray(lost(middle))
        early = self._first_failures(before, half, [i for i in suspects if gone[i]])
        late = self._first_failures(middle, steps - half, [i for i in suspects if not gone[i]])
        return early | {i: (half + step, residual) for i, (step, residual) in late.items()}
