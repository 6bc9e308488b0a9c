"""Many trajectories in a bath, looked at now and then.

    burn in for 8/rate,   then looks 1/rate apart,   until standard errors are small enough or the work is done that was paid for

Trajectories are independent, so an average over them has an honest error whatever the looks have to do with each other. When to stop is decided by
errors alone, never by what was found, and by the work that was done, never by the clock. Looks within twice the time in which U forgets,
ρ(U_first, U_k) ≤ 0.1 over trajectories, are burn-in: positions may forget much more slowly than momenta. If U does not forget, or if the second
half of the looks differs from the first, what was seen was relaxation, all of it is burn-in, and the next looks are twice as far apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from bismut.ensembles import perform, request
from bismut.ensembles.result import Result
from bismut.ensembles.task import bytes_of
from bismut.errors import BismutError
from bismut.findings.bath import Bath
from bismut.findings.chance import mean_of, ratio_of
from bismut.findings.effort import seconds_for, step_operations
from bismut.mechanics import Scheme, State
from bismut.spaces import Point

_FEWEST, _LOOKS = 8, 128  # looks of a sample, at least and at most
_MEMORY = 2**28  # bytes of states, at most
_LEAST = 64  # trajectories
_REMEMBERS = 0.1  # correlation of a look with the first
GROWN = 10.0  # times the median kinetic energy at kT: no stable step has it


class Unaffordable(BismutError):
    """A sample that would cost many times what was paid."""


class Sample(NamedTuple):
    """What was seen: arrays (looks, trajectories, ...) by name, and the last states.

    settled  0 if averages have stopped moving; otherwise 1 if temperature moved away from kT, −1 if towards it or if nobody can tell yet
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
    watch: Callable[[State], dict[str, Any]],
    *,
    step: float,
    seed: int,
    budget: float,
    tolerance: float,
    trajectories: int | None = None,
) -> Sample:
    """Trajectories from q with Maxwell momenta, and what `watch` sees of each state. `watch` must give "kinetic", ½⟨p, v⟩/kT."""
    begun = time.monotonic()
    start = scheme.start(q, temperature=bath.kT)
    apart = int(np.clip(np.ceil(1 / (bath.rate * step)), 5, 500))
    operations = step_operations(scheme, State(q, scheme.space.zero(scheme.system.dtype)))
    count = trajectories or int(np.clip(_MEMORY // (16 * max(bytes_of(start.q), 1)), 256, 4096))
    while not trajectories and count > _LEAST and seconds_for(count * operations * 2 * _FEWEST * apart) > budget:
        count = max(count // 2, _LEAST)
    result = _advance(scheme, start, 1, step, seed, count)  # compiles
    price = seconds_for(count * operations, result.provenance.mode)  # of a step
    if 3 * apart * price > 20 * budget:
        raise Unaffordable(f"{count} trajectories of {operations:.1g} operations a step take about {3 * apart * price:.0f} s; give budget=")
    seen = _in_parts(jax.jit(jax.vmap(watch)), int(np.clip(_MEMORY // (8 * operations), 1, count)))
    # At least half of the work is for looking.
    burn = int(np.clip(min(8, budget / (3 * apart * price)), 1, 8))
    result = _advance(scheme, result, burn * apart)
    looks: list[dict[str, np.ndarray]] = []
    before, paid, moved, grown = burn * apart, 0.0, -1, 0.0
    typical = float(scipy.special.gammaincinv(scheme.system.freedom / 2, 0.5))
    while True:
        result = _advance(scheme, result, apart)
        paid += apart * price
        assert result.final is not None
        looks.append(seen(result.final))
        grown = max(grown, _grown(looks[-1]["kinetic"], typical))
        if not grown < GROWN:
            break
        spent = paid > budget and len(looks) > 1
        if not spent and len(looks) % _FEWEST:
            continue
        lag = _forgets(looks)
        late = [] if lag is None else looks[max(0, 2 * lag - before // apart) :]
        if len(late) >= (2 if spent else _FEWEST):
            if not (spent or len(looks) >= _LOOKS or _error(late) <= tolerance / 6):
                continue
            moved = _moved(late, tolerance)
            if spent or moved == 0:
                looks = late
                break
        elif spent:
            break
        elif lag is not None and len(looks) < _LOOKS:
            continue
        before, looks, apart, moved = before + len(looks) * apart, [], 2 * apart, -1
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    assert result.final is not None
    failed = len({failure.trajectory for failure in result.outcome.failures})
    return Sample(values, result.final, count, failed, moved, time.monotonic() - begun, grown)


def _in_parts(function: Callable[[State], dict[str, Any]], most: int) -> Callable[[State], dict[str, Any]]:
    """A function of many states, of not too many at a time."""

    def all_of(states: State) -> dict[str, Any]:
        count = len(jax.tree.leaves(states.p)[0])
        parts = [function(jax.tree.map(lambda leaf, i=i: leaf[i : i + most], states)) for i in range(0, count, most)]
        return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)

    return all_of


def _advance(scheme: Scheme, since: Any, steps: int, step: float | None = None, seed: int = 0, count: int = 0) -> Result:
    if isinstance(since, Result):
        return perform(request(scheme, continue_from=since, steps=steps, every=steps), progress=False)
    return perform(request(scheme, since, step=step, steps=steps, every=steps, trajectories=count, seed=seed), progress=False)


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
    half = len(looks) // 2
    found = 0
    for name in ("kinetic", "potential"):
        early, late = (np.stack([look[name] for look in part]).mean(0) for part in (looks[:half], looks[half:]))
        shift = mean_of((late - early)[None])
        if abs(shift.value) > 4 * shift.error + 0.1 * tolerance * float(np.nanstd(late)):
            found = found or -1
            if name == "kinetic":
                level = np.nanmean(np.stack([look["excess"] for look in looks]), 1)
                found = 1 if abs(level[half:].mean()) > abs(level[:half].mean()) else -1
    return found


def _forgets(looks: list[dict[str, np.ndarray]]) -> int | None:
    """The number of looks after which the potential energy does not remember the first; None if it always does."""
    return next((k for k in range(1, len(looks)) if _correlation(looks[0]["potential"], looks[k]["potential"]) <= _REMEMBERS), None)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Over trajectories, three of its standard errors less; 0 where one does not vary."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 3 or not min(a.std(), b.std()) > 1e-12 * (1 + np.abs(a).max()):
        return 0.0
    return float(np.corrcoef(a, b)[0, 1]) - 3 / np.sqrt(len(a))
