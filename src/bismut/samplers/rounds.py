"""One trajectory of every replica at a time, by the machine code of a run.

    states, k  ↦  states and rows after trajectory k,        noise as in one long run: that of steps k n, …, (k + 1) n − 1

What a run prepares is prepared once; a round is one call for each core, without threads for a single core's work.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from bismut.engines.engine import Schedule
from bismut.engines.xla_selfcheck import check_compiler
from bismut.ensembles.simulate import request
from bismut.errors import BismutError
from bismut.executors.threads import cores
from bismut.mechanics import State
from bismut.noise import Wiener
from bismut.samplers.chains import ROWS, Row
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.target import Target

_ENOUGH = 2**17  # steps × replicas × 64 for which a core is worth a thread


class Rounds:
    """Trajectories of one target and tuning."""

    def __init__(self, target: Target, tuning: Tuning, states: State, seed: int, mode: str):
        self.steps = tuning.leapfrogs
        check_compiler()
        how: dict[str, Any] = {"step": tuning.step, "steps": self.steps, "every": self.steps, "path": Wiener(seed), "observe": {"rows": ROWS}}
        self.request = request(Trajectories(target, tuning), states, mode=mode, **how)
        self.request.settle()
        self.request.compile()
        self.engine, self.note = self.request.engine_plan.engine.name, self.request.engine_plan.note
        count, size = self.request.trajectories, self.request.size
        few = max(count * self.steps * 64 // _ENOUGH, 1)
        size = min(size, -(-count // min(cores(), few)))
        self.parts = [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]

    def __call__(self, states: State, k: int) -> tuple[State, Row]:
        """After trajectory k."""
        if len(self.parts) == 1:
            done = [self._part(states, k, self.parts[0])]
        else:
            with ThreadPoolExecutor(min(len(self.parts), cores())) as pool:
                done = list(pool.map(lambda part: self._part(states, k, part), self.parts))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *done)

    def _part(self, states: State, k: int, part: slice) -> tuple[State, Row]:
        program, course, numbers = self.request.program, self.request.courses[0], self.request.shared[0]
        begun = jax.tree.map(lambda leaf: np.asarray(leaf)[part], states)
        batch = program.begin(course, numbers, np.arange(part.start, part.stop, dtype=np.uint64), begun, k * self.steps)
        batch = program.watch(course, numbers, batch)
        batch, rows = program.advance(course, numbers, batch, Schedule(1, self.steps, (self.steps,)))
        if batch.failed.max() >= 0:
            raise BismutError(f"Replica {part.start + int(batch.failed.argmax())} ceased to be finite, which no refused trajectory should do.")
        return program.states(batch), jax.tree.map(lambda leaf: np.asarray(leaf)[0], rows[0])
