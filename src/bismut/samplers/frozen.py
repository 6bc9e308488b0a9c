"""The frozen chain, and how it goes on.

    Frozen.draw(n) → (n draws of each chain, Frozen where they end)          draw(m), then draw(n): to the bit what draw(m + n) gives

The noise of a trajectory is a function of its number, and counts are carried on, so nothing tells where a run was cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from bismut.mechanics import State
from bismut.samplers import chains
from bismut.samplers.exchange import Exchange, Ladder
from bismut.samplers.scheme import Tuning
from bismut.samplers.target import Target

_PARTS = 20  # at most in which draws are made, so that progress can be shown
_PART = 0.3  # seconds of a part at least: each begins with 15 ms of checks


@dataclass(frozen=True)
class DrawRecord:
    """Draws: q (chain, draw, ...), and of each what is known of the trajectories that led to it; with a ladder, those at its first level."""

    q: Any
    stats: dict[str, np.ndarray]
    acceptance: float
    engine: str
    note: str


@dataclass(frozen=True)
class Frozen:
    """Chains with everything chosen.

    states   where they are, after `done` trajectories
    seed     of their noise;    thin: trajectories between draws
    ladder   of replica exchange, if there is one; longest: step at most, whatever the pace
    """

    target: Target
    tuning: Tuning
    states: State
    seed: tuple
    thin: int
    settings: dict[str, Any]
    ladder: Ladder | None = None
    longest: float = np.inf
    done: int = 0

    def draw(self, count: int, note: Callable[[int], None] = lambda trajectories: None) -> tuple[Frozen, DrawRecord]:
        """So many draws of each chain, or those there are if it is interrupted; `note` hears of trajectories made."""
        now, parts, size, begin = self, [], max(-(-count // _PARTS), 1), 0
        while begin < count:
            some, clock = min(size, count - begin), time.perf_counter()
            try:
                now, drawn = now._part(some)
            except KeyboardInterrupt:
                if not parts:
                    raise
                parts[-1] = replace(parts[-1], note=f"interrupted after {begin} of {count} draws of each chain: `more` continues")
                break
            parts.append(drawn)
            begin += some
            note(some * self.thin)
            size = 2 * size if time.perf_counter() - clock < _PART else size
        return now, joined(parts)

    def _part(self, count: int) -> tuple[Frozen, DrawRecord]:
        advance = chains.advance if self.ladder is None else Exchange(self.ladder, self.longest)
        trajectories = count * self.thin
        how = {"trajectories": trajectories, "thin": self.thin, "seed": self.seed, "settings": self.settings, "done": self.done}
        leg = advance(self.target, self.tuning, self.states, **how)
        before = {name: np.asarray(getattr(self.states.ledger, name)) for name in chains.COUNTED}
        each = {name: np.diff(getattr(leg.rows, name), axis=1, prepend=before[name][:, None]) for name in chains.COUNTED}
        stats = {
            "lp": -leg.rows.U,
            "acceptance": each["accepted"] / self.thin,
            "diverging": each["diverged"] > 0,
            "unsolved": each["unsolved"] > 0,
            "energy": leg.rows.U + leg.rows.kinetic,
            "energy_error": leg.rows.rise,
        }
        q, ladder = leg.rows.q, None
        if isinstance(advance, Exchange):
            ladder = advance.ladder
            cold = advance.rungs.reshape(-1, ladder.size, count).argmin(1)  # the replica of each ladder that is at the first level
            pick = lambda leaf: np.take_along_axis(
                leaf.reshape(-1, ladder.size, *leaf.shape[1:]), cold.reshape(len(cold), 1, count, *[1] * (leaf.ndim - 2)), 1
            )[:, 0]
            q, stats = jax.tree.map(pick, q), {name: pick(values) for name, values in stats.items()} | {"replica": cold}
        now = replace(self, states=leg.final, ladder=ladder, done=self.done + trajectories)
        return now, DrawRecord(q, stats, float(stats["acceptance"].mean()), leg.engine, leg.note)


def joined(parts: list[DrawRecord]) -> DrawRecord:
    """Draws one after the other."""
    lengths = np.array([part.stats["lp"].shape[1] for part in parts])
    along = lambda *leaves: np.concatenate(leaves, 1)
    stats = {name: along(*(part.stats[name] for part in parts)) for name in parts[0].stats}
    acceptance = float(lengths @ [part.acceptance for part in parts] / lengths.sum())
    return DrawRecord(jax.tree.map(along, *(part.q for part in parts)), stats, acceptance, parts[-1].engine, parts[-1].note)
