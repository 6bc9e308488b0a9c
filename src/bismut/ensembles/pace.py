"""How much of a block is done between two returns to Python: about a third of a second of work, learned from what was done before."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from bismut.ensembles.request import Request

PAUSE = 0.3  # seconds of work aimed at between two returns
_FEW, _MANY = 16, 2**24  # steps of a chunk
_GROWTH = 16  # of a chunk over the largest before


class Pace:
    """How many steps of a block make a chunk. All blocks of a run share one, and so do runs of the same program that look equally often.

    What is learned is steps × places: a program takes as long for a place that is filled up as for a trajectory.
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
