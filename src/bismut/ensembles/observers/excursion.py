"""The largest excursion: how far a trajectory has ever been from where it was first seen.

    M = max_k |X(t_k)|,       X(t_k) = Σ_j q_j ⊖ q_{j−1}

X is that of the mean-squared displacement: turns are counted on circles and rotations, if no angle changes by half a turn between looks. A path is
seen at its looks alone, so M grows with their number: of a Wiener path by 0.58 √Δt from looks Δt apart to all times.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.observers.displacement import by_angles, chosen, counts, picked
from bismut.ensembles.observers.records import standard_error, statistics
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.formatting import with_error
from bismut.registry import OBSERVERS


class Strayed(NamedTuple):
    """The last point, its unwound position, and the largest square of a distance so far."""

    q: Any
    position: Any
    largest: Any


class Excursion(Watcher):
    """The largest distance from the first look, per trajectory; statistics over trajectories."""

    part: Callable | None = eqx.field(static=True)
    arrays: int = eqx.field(static=True, default=1, kw_only=True)  # of a displacement, whose squares are added up
    sees_start = False  # `begin` does

    def bound(self, scheme, name, example):
        _, arrays = counts(self.part, scheme.space, name)
        return type(self)(self.part, arrays=arrays, every=self.every)

    def begin(self, scheme, state, t):
        dtype = scheme.system.dtype
        return Strayed(state.q, jnp.zeros_like(picked(self.part, scheme.space.zero(dtype))), jnp.zeros((), dtype))

    def look(self, memory, scheme, state, t):
        position = memory.position + picked(self.part, by_angles(scheme.space).subtract(state.q, memory.q))
        return Strayed(state.q, position, jnp.maximum(memory.largest, position @ position)), ()

    def close(self, tally, memory, ended):
        return moments.gather(np.sqrt(np.asarray(memory.largest, float)), ended.finished)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock):
        variables = statistics(name, summary, ())
        text = f"mean {with_error(variables['mean'][1], variables['stderr'][1])}"
        text += f"; all {self.arrays} arrays of a displacement are added up, part=0 picks the first" if self.arrays > 1 else ""
        return ObserverReport(name, variables, {}, text)

    def error(self, summary):
        return standard_error(summary)


@OBSERVERS.register
@checked()
def maximum_excursion(part: Any = None, *, every: int = 1) -> Excursion:
    """The largest distance |x(t) − x(0)| of each trajectory from where it was first seen: mean, spread and range over trajectories.

    part  the relevant part of a displacement, say 0 or lambda v: v[0] for the positions of rigid bodies.
          Without it, squares of lengths and of angles are added up

    Observed at every step by default; what happens between two observations is not seen.
    """
    return Excursion(chosen(part), every=every)
