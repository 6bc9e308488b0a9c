"""How much of a block is done between two returns to Python: about a third of a second of work, learned from what was done before."""

from __future__ import annotations

from bismut.ensembles.request import Request
from bismut.programs import Memory

PAUSE = 0.3  # seconds of work aimed at between two returns
_SIDE = 16  # trajectories that take as long as one: they are computed side by side
_FEW, _MANY = 16, 2**24  # steps of a chunk
_GROWTH = 16  # of a chunk over the largest before


class Pace:
    """How many steps of a block make a chunk. All blocks of a run share one, and so do runs of the same program that look equally often."""

    def __init__(self):
        self._work = 0  # steps × trajectories of a chunk

    def steps(self, trajectories: int) -> int:
        return max(_FEW, min(_MANY, self._work // max(trajectories, _SIDE)))

    def learn(self, steps: int, trajectories: int, seconds: float) -> None:
        done = steps * max(trajectories, _SIDE)
        self._work = int(min(done * PAUSE / max(seconds, 1e-6), _GROWTH * max(done, self._work)))


_PACES = Memory(64)


def pace_of(request: Request) -> Pace:
    """The pace of a run, as far as runs before it know it."""
    return _PACES.get((request.chosen.key, tuple(request.stride(watcher) for _, watcher in request.watchers)), Pace)
