"""What the summary of a stored block must look like, before it is merged: arrays of another shape would be broadcast, and give other numbers.

The shapes are those that a watcher gives for rows and memories of zeros. Watchers of one's own may give what they like: of them nothing is known.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.ensembles.observers.watcher import Ended, Seen, Watcher
from bismut.ensembles.request import Request
from bismut.errors import StoreError


class Expected:
    """Shapes of the summaries of a request, each found once for all blocks of a size."""

    def __init__(self, request: Request):
        self.request = request
        self._known: dict[tuple[int, int, int], Any] = {}

    def check(self, variant: int, block: int, steps: int, summaries: tuple) -> None:
        """Refuse summaries of a block of so many steps that have other arrays than they would have here."""
        for i, (name, watcher) in enumerate(self.request.settings[variant].watchers):
            if type(watcher).__module__.startswith("bismut.") and not watcher.fits(self._summary(i, variant, block, steps), summaries[i]):
                raise StoreError(f"Block {block} of variant {variant} does not fit this run: the arrays of {name!r} have other shapes or types.")

    def _summary(self, i: int, variant: int, block: int, steps: int) -> Any:
        watcher = self.request.settings[variant].watchers[i][1]
        if type(watcher).wants is not Watcher.wants:  # it depends on which trajectories these are
            return self._closed(i, variant, block, steps)
        key = i, len(self.request.numbers(block)), steps
        if key not in self._known:
            self._known[key] = self._closed(i, variant, block, steps)
        return self._known[key]

    def _closed(self, i: int, variant: int, block: int, steps: int) -> Any:
        request = self.request
        setting, trajectories = request.settings[variant], request.numbers(block)
        watcher, stride, count = setting.watchers[i][1], request.stride(setting.watchers[i][1]), len(trajectories)
        zeros = lambda tree, *lead: jax.tree.map(lambda leaf: np.zeros((*lead, *leaf.shape), leaf.dtype), tree)
        row, memory = request.chosen.rows[i], request.chosen.memory[i]
        looks = np.arange(0 if watcher.sees_start else stride, steps + 1, stride)
        if watcher.records and steps % stride:
            looks = np.append(looks, steps)
        tally = None
        if jax.tree.leaves(row) and watcher.wants(trajectories):
            for first in range(0, len(looks), request.portions[i]):
                some = looks[first : first + request.portions[i]]
                tally = watcher.collect(tally, Seen(zeros(row, len(some), count), some, trajectories, None))
        ended = Ended(
            trajectories=trajectories,
            finished=np.ones(count, bool),
            survived=np.full(count, steps),
            steps=steps,
            looks=steps // stride + int(watcher.sees_start),
            every=stride,
            setting=setting,
            h=request.step,
            t0=request.t0,
            first=request.done + request.burn_in,
            size=request.size,
        )
        with np.errstate(all="ignore"):
            return watcher.close(tally, zeros(memory, count) if jax.tree.leaves(memory) else (), ended)
