"""Chains on their way: a block of them advanced by the engine, looked at between trajectories.

positions (chain, draw, ...),  U, kinetic energy, Δ of the last trajectory, acceptances and divergences so far
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled
from bismut.ensembles import Report, Watcher, simulate
from bismut.errors import BismutError
from bismut.mechanics import State
from bismut.noise import Wiener
from bismut.samplers.scheme import Proposal, Trajectories, Tuning, rise_of
from bismut.samplers.target import Target
from bismut.spaces import Point


class Row(NamedTuple):
    """What is seen of a chain at the end of a trajectory; counts are since the start of a run, and `rival` is U at the level `Proposal.rival`."""

    q: Any
    U: Any
    kinetic: Any
    rise: Any
    accepted: Any
    diverged: Any
    unsolved: Any
    rival: Any


COUNTED = ("accepted", "diverged", "unsolved")  # of a row and of a `Proposal`


class _Rows(Watcher):
    """Every row, unchanged."""

    records = True

    def look(self, memory, scheme, state, t):
        trial = state.ledger
        assert isinstance(trial, Proposal)
        assert isinstance(scheme, Trajectories)
        rival = -scheme.target.log_density(state.q, trial.rival) if scheme.target.laddered else trial.U
        return memory, Row(state.q, trial.U, trial.kinetic, rise_of(trial), trial.accepted, trial.diverged, trial.unsolved, rival)

    def collect(self, tally, looks):
        tally = [] if tally is None else tally
        tally.append(jax.tree.map(lambda leaf: np.moveaxis(leaf, 0, 1).copy(), looks.rows))
        return tally

    def close(self, tally, memory, ended):
        return jax.tree.map(lambda *parts: np.concatenate(parts, 1), *tally)

    def merge(self, a, b):
        return jax.tree.map(lambda x, y: np.concatenate([x, y]), a, b)

    def report(self, name, summary, clock):
        axes = lambda i, leaf: ("chain", "draw", *(f"part{i}_{k}" for k in range(leaf.ndim - 2)))
        return Report(name, {f"part{i}": (axes(i, leaf), leaf) for i, leaf in enumerate(jax.tree.leaves(summary))}, {}, "")

    def summary_bytes(self, row, looks, trajectories):
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(row)) * looks * trajectories


ROWS = _Rows()


@dataclass(frozen=True)
class Leg:
    """A part of a run: rows (chain, draw) after each trajectory, or each `thin` of them, without the start; the last states; the trajectories that
    were counted; what computed it."""

    rows: Row
    final: State
    trajectories: int
    engine: str
    note: str

    @property
    def acceptance(self) -> float:
        """The fraction of trajectories that were accepted, over all chains."""
        return float(np.mean(self.rows.accepted[:, -1])) / self.trajectories

    @property
    def diverged(self) -> float:
        return float(np.mean(self.rows.diverged[:, -1])) / self.trajectories

    @property
    def unsolved(self) -> float:
        return float(np.mean(self.rows.unsolved[:, -1])) / self.trajectories


@compiled
def _begin(scheme: Trajectories, q: Point, level) -> State:
    return jax.vmap(scheme.begin)(q, level)


def begin(target: Target, tuning: Tuning, q: Point, level: Any = None) -> State:
    """The states of chains at points q."""
    count = len(jax.tree.leaves(q)[0])
    return _begin(
        Trajectories(target, tuning),
        jax.tree.map(jnp.asarray, q),
        jnp.broadcast_to(target.level if level is None else jnp.asarray(level, float), (count,)),
    )


def changed(states: State, **fields: Any) -> State:
    """The same states with other entries of their `Proposal`."""
    trial = states.ledger
    assert isinstance(trial, Proposal)
    return State(states.q, states.p, Proposal(**({name: getattr(trial, name) for name in Proposal.__dataclass_fields__} | fields)))


def blank(states: State) -> State:
    """The same states, with nothing counted yet."""
    trial = states.ledger
    assert isinstance(trial, Proposal)
    return changed(states, **dict.fromkeys(("heat", "work", "error", "accepted", "steps", "diverged", "unsolved"), np.zeros(np.shape(trial.U))))


def number_of(seed: Any) -> int:
    """A seed of noise from a tuple of numbers."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))


def advance(
    target: Target, tuning: Tuning, states: State, *, trajectories: int, thin: int = 1, seed: Any, settings: dict[str, Any], done: int = 0
) -> Leg:
    """Advance all chains by a number of trajectories; `seed` is a tuple, of which every one gives other noise, and `done` the trajectories of that
    noise that were made before: counts go on from those of the states."""
    scheme = Trajectories(target, tuning)
    result = simulate(
        scheme,
        states,
        step=tuning.step,
        steps=trajectories * tuning.leapfrogs,
        path=Wiener(number_of(seed)).shift(done * tuning.leapfrogs),
        every=thin * tuning.leapfrogs,
        observe={"rows": ROWS},
        **settings,
    )
    if result.outcome.interrupted:
        raise KeyboardInterrupt
    if not result.outcome.ok:
        raise BismutError(f"A chain ceased to be finite, which no refused trajectory should do:\n{result.outcome}")
    rows = jax.tree.map(lambda leaf: leaf[:, 1:], result.totals[0][0])
    return Leg(rows, result.final, done + trajectories, result.provenance.mode, result.provenance.note)
