"""Replica exchange: chains in densities ρ(x; level) of a ladder, which swap their levels.

    levels l₀, …, l_K,   l₀ that of the draws;     x at l_k and y at l_{k+1} swap with probability  min(1, e^{−Δ}),
    Δ = U(x; l_{k+1}) + U(y; l_k) − U(x; l_k) − U(y; l_{k+1}),      e.g. U = level · (−log ρ), level = 1/kT

After every trajectory even pairs (0, 1), (2, 3), … try, then odd ones, then even ones. That this alternates, and is not drawn, makes it
non-reversible: a replica that was accepted goes on in the same direction, and a round trip takes a number of rounds that grows as the number of
levels and not as its square (Syed, Bouchard-Côté, Deligiannidis & Doucet, 2022). Levels move between replicas, points do not.

While chains burn in, the inner levels are moved so that all pairs are refused equally often: the cumulative sum of their rates of refusal, which
hardly depends on where the levels are, is cut into equal parts. The pace of a level, by which its steps are longer, follows its own acceptance.

What is drawn is a function of (seed, round, replica): a run is the same to the bit however it is cut or distributed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import numpy as np

from bismut.engines.engine import Schedule
from bismut.engines.xla_selfcheck import check_compiler
from bismut.ensembles.simulate import request
from bismut.errors import BismutError
from bismut.executors.threads import cores
from bismut.mechanics import State
from bismut.noise import Wiener
from bismut.samplers import chains
from bismut.samplers.adaptation import step_change
from bismut.samplers.chains import ROWS, Row
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.target import Target

_ENOUGH = 2**17  # steps × replicas × 64 for which a core is worth a thread


class Tempered(eqx.Module):
    """log ρ at an inverse temperature: level · log ρ(x)."""

    density: Callable

    def __call__(self, x, level):
        return level * self.density(x)


@dataclass(frozen=True)
class Ladder:
    """How replicas are at their levels.

    levels     l₀ first; paces: of each level
    rung       (replica,) the place of each replica in `levels`; replicas of one ladder are neighbours
    rounds     of exchange so far
    heading    (replica,) 1 since its last visit to the first level, −1 since one to the last, if that came later; 0 before both
    trips      (replica,) how many times it came back to the first level from the last
    tried      rounds of each pair of levels; agreed: the sum of their probabilities to swap
    """

    levels: np.ndarray
    paces: np.ndarray
    rung: np.ndarray
    rounds: int
    heading: np.ndarray
    trips: np.ndarray
    tried: np.ndarray
    agreed: np.ndarray

    @property
    def size(self) -> int:
        return len(self.levels)

    @property
    def acceptance(self) -> np.ndarray:
        """Of swaps, for each pair of neighbours."""
        return self.agreed / np.maximum(self.tried, 1)

    def __str__(self):
        swaps = self.acceptance
        between = f"{swaps.min():.2f} to {swaps.max():.2f}" if len(swaps) > 1 else f"{swaps[0]:.2f}"
        return f"{self.size} levels from {self.levels[0]:.4g} to {self.levels[-1]:.4g}, swaps accepted {between}, {int(self.trips.sum())} round trips"

    def counted_anew(self) -> Ladder:
        """The same, with nothing counted yet."""
        zeros = np.zeros(self.size - 1)
        return _with(
            self, heading=_turned(np.zeros_like(self.rung), self.rung, self.size), trips=np.zeros_like(self.trips), tried=zeros, agreed=zeros
        )


def first_ladder(levels: Any, ladders: int, tempered: bool) -> Ladder:
    """Replicas in order, in so many ladders. Steps of oscillators are as accurate at every temperature if they grow as its root."""
    levels = np.asarray(levels, float)
    size = len(levels)
    rung, zeros = np.tile(np.arange(size), ladders), np.zeros(size - 1)
    paces = np.sqrt(levels[0] / np.maximum(levels, 1e-3 * levels[0])) if tempered else np.ones(size)
    return Ladder(levels, paces, rung, 0, _turned(np.zeros_like(rung), rung, size), np.zeros_like(rung), zeros, zeros)


@dataclass
class Exchange:
    """Advances replicas, with a swap after each trajectory; in place of `chains.advance`. `ladder` is how they are now."""

    ladder: Ladder
    longest: float = np.inf  # step at most, whatever the pace
    acceptances: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of trajectories, by level, in the last leg
    rungs: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), int))  # (replica, row) where each was when its row was seen

    def __call__(
        self, target: Target, tuning: Tuning, states: State, *, trajectories: int, thin: int = 1, seed: Any, settings: dict, done: int = 0
    ) -> chains.Leg:
        """A leg whose rows are those of replicas, in order; counts begin at 0 unless some are `done`."""
        rows, rounds = [], Rounds(target, tuning, states, chains.number_of(seed), settings["mode"])
        totals = [np.asarray(getattr(states.ledger, name)) for name in chains.COUNTED]
        by_level = np.zeros(self.ladder.size)
        for k in range(trajectories):
            ladder = self.ladder
            pace = np.minimum(ladder.paces, max(self.longest / float(tuning.step), 1.0))
            rival = ladder.levels[_partner(ladder)]
            placed = chains.changed(chains.blank(states), level=ladder.levels[ladder.rung], rival=rival, pace=pace[ladder.rung])
            states, row = rounds(placed, done + k)
            by_level += np.bincount(ladder.rung, row.accepted, ladder.size)
            totals = [total + getattr(row, name) for total, name in zip(totals, chains.COUNTED, strict=True)]
            self.ladder = swapped(ladder, row.U, row.rival, (*seed, done + k))
            if (k + 1) % thin == 0:
                rows.append((row._replace(**dict(zip(chains.COUNTED, totals, strict=True))), ladder.rung))
        self.acceptances = by_level / (trajectories * len(self.ladder.rung) / self.ladder.size)
        self.rungs = np.stack([rung for _, rung in rows], 1)
        joined = jax.tree.map(lambda *leaves: np.stack(leaves, 1), *(row for row, _ in rows))
        ended = chains.changed(states, **dict(zip(chains.COUNTED, totals, strict=True)))
        return chains.Leg(joined, ended, done + trajectories, rounds.engine, rounds.note)

    def learn(self, wanted: float) -> None:
        """Levels and paces from the last leg; what was counted begins anew."""
        ladder = self.ladder
        refused = np.maximum(1 - ladder.acceptance, 1e-3)  # a pair that never refuses still takes part
        if (ladder.tried > 0).all():
            ladder = _with(ladder, levels=equalised(ladder.levels, refused))
        change = np.clip([0.5 * step_change(wanted, accepted) for accepted in self.acceptances], -0.3, 0.3)
        paces = ladder.paces * np.exp(change - change[0])
        self.ladder = _with(ladder, paces=np.clip(paces, 1e-3, 1e3)).counted_anew()


def swapped(ladder: Ladder, own: np.ndarray, rival: np.ndarray, seed: Any) -> Ladder:
    """The ladder after a round, from U of each replica at its level and at that of its partner."""
    size, rung = ladder.size, ladder.rung.reshape(-1, ladder.size)
    first = ladder.rounds % 2
    lane = np.argsort(rung, axis=1)  # which replica is at a level
    gain = np.take_along_axis((rival - own).reshape(rung.shape), lane, 1)
    lower = np.arange(first, size - 1, 2)
    delta = gain[:, lower] + gain[:, lower + 1]
    chance = np.exp(-np.maximum(np.where(np.isfinite(delta), delta, np.inf), 0.0))
    swap = _uniform(seed, rung.shape)[:, lower] < chance
    place = np.tile(np.arange(size), (len(rung), 1))
    place[:, lower], place[:, lower + 1] = np.where(swap, lower + 1, lower), np.where(swap, lower, lower + 1)
    new = np.empty_like(rung)
    np.put_along_axis(new, lane, place, 1)
    new = new.reshape(-1)
    home = (new == 0) & (ladder.heading < 0)
    tried, agreed = ladder.tried.copy(), ladder.agreed.copy()
    tried[lower] += len(rung)
    agreed[lower] += chance.sum(0)
    heading = _turned(ladder.heading, new, size)
    return _with(ladder, rung=new, rounds=ladder.rounds + 1, heading=heading, trips=ladder.trips + home, tried=tried, agreed=agreed)


def equalised(levels: np.ndarray, refused: np.ndarray) -> np.ndarray:
    """Levels with the same ends between which pairs are refused equally often, as far as rates of refusal add up."""
    barrier = np.concatenate([[0.0], np.cumsum(refused)])
    return np.interp(np.linspace(0, barrier[-1], len(levels)), barrier, levels)


def _partner(ladder: Ladder) -> np.ndarray:
    """The level with which each replica tries to swap after the next trajectory; its own where there is none."""
    up = (ladder.rung - ladder.rounds) % 2 == 0
    other = np.where(up, ladder.rung + 1, ladder.rung - 1)
    return np.where((other < 0) | (other >= ladder.size), ladder.rung, other)


def _turned(heading: np.ndarray, rung: np.ndarray, size: int) -> np.ndarray:
    return np.where(rung == 0, 1, np.where((rung == size - 1) & (heading > 0), -1, heading))


def _uniform(seed: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform numbers below 1, of the counter-based generator Philox, whose stream NumPy keeps as it is."""
    raw = np.random.Philox(np.random.SeedSequence([*seed, 1])).random_raw(int(np.prod(shape)))
    return (np.asarray(raw, np.uint64) >> np.uint64(11)).reshape(shape) * 2.0**-53


def _with(ladder: Ladder, **fields: Any) -> Ladder:
    return Ladder(**(ladder.__dict__ | fields))


class Rounds:
    """One trajectory of every replica at a time, of one target and tuning, by the machine code of a run.

        states, k  ↦  states and rows after trajectory k,        noise as in one long run: that of steps k n, …, (k + 1) n − 1

    What a run prepares is prepared once; a round is one call for each core, without threads for a single core's work.
    """

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
