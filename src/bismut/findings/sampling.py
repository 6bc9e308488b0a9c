"""Many trajectories in a bath, observed at intervals.

    burn in for 8/rate,   then looks 1/rate apart,   until standard errors are small enough or the budget of work is spent

Trajectories are independent, so an average over them has a correct error however its looks are correlated. When to stop is decided by errors alone,
never by the values measured, and by the work done, never by the clock. Looks within twice the time in which U decorrelates, ρ(U_first, U_k) ≤ 0.1
over trajectories, are burn-in: positions may decorrelate much more slowly than momenta. If U does not decorrelate, or if the second half of the looks
differs from the first, the system was still relaxing, all of it is burn-in, and the next looks are twice as far apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from bismut.ensembles import complete_run, request
from bismut.ensembles.result import Result
from bismut.ensembles.task import bytes_of
from bismut.errors import BismutError
from bismut.findings.bath import Bath
from bismut.findings.cost import seconds_for, step_operations
from bismut.findings.statistics import mean_of, ratio_of
from bismut.mechanics import Scheme, State
from bismut.spaces import Point

_FEWEST, _LOOKS = 8, 128  # looks of a sample, at least and at most
_MEMORY = 2**28  # bytes of states, at most
_LEAST = 64  # trajectories
_DECORRELATED = 0.1  # largest correlation of a look with the first
GROWN = 10.0  # times the median kinetic energy at kT: no stable step has it


class BudgetExceeded(BismutError):
    """A sample that would cost many times its budget."""


class Sample(NamedTuple):
    """Recorded arrays (looks, trajectories, ...) by name, and the last states.

    settled  0 if averages have stopped moving; otherwise 1 if temperature moved away from kT, −1 if towards it or if it is not known yet
    grown    the largest median of the kinetic energy at a look, over that at kT; infinite where states are not finite
    """

    values: dict[str, np.ndarray]
    final: State
    trajectories: int
    failed: int
    settled: int
    seconds: float
    grown: float = 1.0

    @property
    def stable(self) -> bool:
        return self.grown < GROWN


def sample(
    scheme: Scheme,
    q: Point,
    bath: Bath,
    record: Callable[[State], dict[str, Any]],
    *,
    step: float,
    seed: int,
    budget: float,
    tolerance: float,
    t0: float,
    trajectories: int | None = None,
) -> Sample:
    """Trajectories from q with Maxwell momenta, and what `record` gives for each state: "kinetic", ½⟨p, v⟩/kT, must be in it."""
    begun = time.monotonic()
    start = scheme.start(q, temperature=bath.kT)
    every = int(np.clip(np.ceil(1 / (bath.rate * step)), 5, 500))
    operations = step_operations(scheme, State(q, scheme.space.zero(scheme.system.dtype)))
    count = trajectories or int(np.clip(_MEMORY // (16 * max(bytes_of(start.q), 1)), 256, 4096))
    while not trajectories and count > _LEAST and seconds_for(count * operations * 2 * _FEWEST * every) > budget:
        count = max(count // 2, _LEAST)
    first = request(scheme, start, step=step, steps=1, every=1, trajectories=count, seed=seed, t0=t0)
    result = complete_run(first)  # compiles
    price = seconds_for(count * operations, result.provenance.mode)  # of a step
    if 3 * every * price > 20 * budget:
        raise BudgetExceeded(f"{count} trajectories of {operations:.1g} operations a step take about {3 * every * price:.0f} s; give budget=")
    recorded = _in_parts(jax.jit(jax.vmap(record)), int(np.clip(_MEMORY // (8 * operations), 1, count)))
    # At least half of the work is for looks.
    burn = int(np.clip(min(8, budget / (3 * every * price)), 1, 8))
    result = _advance(result, burn * every)
    looks: list[dict[str, np.ndarray]] = []
    before, spent, moved, grown = burn * every, 0.0, -1, 0.0
    typical = float(scipy.special.gammaincinv(scheme.system.freedom / 2, 0.5))
    while True:
        result = _advance(result, every)
        spent += every * price
        looks.append(recorded(result.final))
        grown = max(grown, _grown(looks[-1]["kinetic"], typical))
        if not grown < GROWN:
            break
        exhausted = spent > budget and len(looks) > 1
        if not exhausted and len(looks) % _FEWEST:
            continue
        lag = _decorrelation(looks)
        late = [] if lag is None else looks[max(0, 2 * lag - before // every) :]
        if len(late) >= (2 if exhausted else _FEWEST):
            if not (exhausted or len(looks) >= _LOOKS or _error(late) <= tolerance / 6):
                continue
            moved = _moved(late, tolerance)
            if exhausted or moved == 0:
                looks = late
                break
        elif exhausted:
            break
        elif lag is not None and len(looks) < _LOOKS:
            continue
        before, looks, every, moved = before + len(looks) * every, [], 2 * every, -1
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    failed = len({failure.trajectory for failure in result.outcome.failures})
    assert result.final is not None
    return Sample(values, result.final, count, failed, moved, time.monotonic() - begun, grown)


def _in_parts(function: Callable[[State], dict[str, Any]], most: int) -> Callable[[Any], dict[str, Any]]:
    """A function of many states, evaluated on so many at a time."""

    def all_of(states: State) -> dict[str, Any]:
        count = len(jax.tree.leaves(states.p)[0])
        parts = [function(jax.tree.map(lambda leaf, i=i: leaf[i : i + most], states)) for i in range(0, count, most)]
        return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)

    return all_of


def _advance(result: Result, steps: int) -> Result:
    return complete_run(request(result.request.scheme, continue_from=result, steps=steps, every=steps))


def _grown(kinetic: np.ndarray, typical: float) -> float:
    """The median over that at kT; trajectories that are not finite are beyond any."""
    median = float(np.median(np.where(np.isfinite(kinetic), kinetic, np.inf)))
    return median / typical if np.isfinite(median) else float("inf")


def _error(looks: list[dict[str, np.ndarray]]) -> float:
    """The largest standard error of a temperature over kT, that of configurations included where it is known at all."""
    axes = np.stack([look["axes"] for look in looks])
    errors = [mean_of(axes[..., i]).error for i in range(axes.shape[-1])]
    if "steep" in looks[0]:
        steep, curved = (np.stack([look[name] for look in looks]) for name in ("steep", "curved"))
        bottom = mean_of(curved)
        errors += [ratio_of(steep, curved).error] if abs(bottom.value) > 5 * bottom.error else []
    return max(errors)


def _moved(looks: list[dict[str, np.ndarray]], tolerance: float) -> int:
    """Whether energies differ between the first half of the looks and the second, by 4 standard errors and a tenth of what may be off; and whether
    the temperature moved away from kT (1) or not (−1)."""
    half, moved = len(looks) // 2, 0
    for name in ("kinetic", "potential"):
        early, late = (np.stack([look[name] for look in part]).mean(0) for part in (looks[:half], looks[half:]))
        shift = mean_of((late - early)[None])
        if abs(shift.value) > 4 * shift.error + 0.1 * tolerance * float(np.nanstd(late)):
            moved = moved or -1
            if name == "kinetic":
                level = np.nanmean(np.stack([look["excess"] for look in looks]), 1)
                moved = 1 if abs(level[half:].mean()) > abs(level[:half].mean()) else -1
    return moved


def _decorrelation(looks: list[dict[str, np.ndarray]]) -> int | None:
    """The number of looks after which the potential energy is not correlated with the first; None if it always is."""
    return next((k for k in range(1, len(looks)) if _correlation(looks[0]["potential"], looks[k]["potential"]) <= _DECORRELATED), None)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Over trajectories, three of its standard errors less; 0 where one does not vary."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 3 or not min(a.std(), b.std()) > 1e-12 * (1 + np.abs(a).max()):
        return 0.0
    return float(np.corrcoef(a, b)[0, 1]) - 3 / np.sqrt(len(a))
