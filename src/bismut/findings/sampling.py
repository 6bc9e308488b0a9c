"""Many trajectories in a bath, looked at now and then.

    burn in for 8/rate,   then looks 1/rate apart,   until standard errors are small enough or the time is up

Trajectories are independent, so an average over them has an honest error whatever the looks have to do with each other. When to stop is decided by
errors alone, never by what was found. If the second half of the looks differs from the first, what was seen was relaxation: it counts as burn-in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.ensembles import perform, request
from bismut.ensembles.result import Result
from bismut.ensembles.task import bytes_of
from bismut.findings.bath import Bath
from bismut.findings.chance import mean_of, ratio_of
from bismut.mechanics import Scheme, State
from bismut.spaces import Point

_FEWEST, _LOOKS = 8, 128  # looks of a sample, at least and at most
_MEMORY = 2**28  # bytes of states, at most


class Sample(NamedTuple):
    """What was seen: arrays (looks, trajectories, ...) by name, and the last states.

    settled  0 if averages have stopped moving; otherwise 1 if temperature moved away from kT, −1 if towards it
    """

    values: dict[str, np.ndarray]
    final: State
    trajectories: int
    failed: int
    settled: int
    seconds: float


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
    count = trajectories or int(np.clip(_MEMORY // (16 * max(bytes_of(start.q), 1)), 256, 4096))
    apart = int(np.clip(np.ceil(1 / (bath.rate * step)), 5, 500))
    seen = jax.jit(jax.vmap(watch))
    result = _advance(scheme, start, 1, step, seed, count)  # compiles
    clock = time.monotonic()
    result = _advance(scheme, result, apart)
    pace = time.monotonic() - clock
    # At least half of the time is for looking.
    burn = int(np.clip(min(8, budget / (3 * max(pace, 1e-6))), 1, 40))
    if burn > 1:
        result = _advance(scheme, result, (burn - 1) * apart)
    looks: list[dict[str, np.ndarray]] = []
    clock, moved = time.monotonic(), 0
    while True:
        result = _advance(scheme, result, apart)
        looks.append(jax.tree.map(np.asarray, seen(result.final)))
        spent = time.monotonic() - clock > budget
        if len(looks) < _FEWEST and not (spent and len(looks) > 1):
            continue
        enough = len(looks) >= _LOOKS or (len(looks) % _FEWEST == 0 and _error(looks) <= tolerance / 6)
        if not (enough or spent):
            continue
        moved = _moved(looks, tolerance)
        if moved == 0 or spent:
            break
        looks = []
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    assert result.final is not None
    failed = len({failure.trajectory for failure in result.outcome.failures})
    return Sample(values, result.final, count, failed, moved, time.monotonic() - begun)


def _advance(scheme: Scheme, since: Any, steps: int, step: float | None = None, seed: int = 0, count: int = 0) -> Result:
    if isinstance(since, Result):
        return perform(request(scheme, continue_from=since, steps=steps, every=steps), progress=False)
    return perform(request(scheme, since, step=step, steps=steps, every=steps, trajectories=count, seed=seed), progress=False)


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
