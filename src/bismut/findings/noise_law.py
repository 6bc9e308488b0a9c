"""Does the noise that the engine draws have the law of a Wiener process?

    z = ΔW/√h:   ⟨z⟩ = 0,  ⟨z²⟩ = 1,  tails of a normal,  ⟨z_i z_j⟩ = δ_ij over channels and over steps,  no values twice
    ⟨p, v⟩/kT of Maxwell starts is χ² with as many degrees as there are of freedom

All other checks take noise for granted: it is drawn once and used on both sides. Here a step that returns its increments is run by the engine that
runs the scheme, on the same path, and the increments are tested. Generators fail by repeating, in time, over trajectories or over channels: two
successive values of one trajectory, up to signs, occur nowhere else.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from bismut.ensembles import complete_run, request, values
from bismut.ensembles.starts import StartStates
from bismut.findings.equilibrium import relative_motion
from bismut.findings.finding import Finding, Verdict
from bismut.findings.statistics import ALARM
from bismut.flows import Flow, Solve
from bismut.mechanics import Claims, Scheme, State, System
from bismut.noise import Path
from bismut.programs.evaluation import evaluate
from bismut.spaces import Euclidean, Point

_TRAJECTORIES, _STEPS, _CHANNELS = 512, 64, 16  # of many channels the first and the last ones
_STARTS = 2048
_LAGS = 8
_EDGES = np.array([-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])


class IncrementRecorder(Flow):
    """A step that does nothing but store some of its increments as its momentum."""

    count: int = eqx.field(static=True)
    driven: int = eqx.field(static=True)
    which: tuple[int, ...] = eqx.field(static=True)
    claims = Claims(order=None, strong_order=None, weak_order=None)

    @property
    def channels(self) -> int:
        return self.count

    @property
    def path_channels(self) -> int:
        return self.driven

    def advance(self, state, h, dW, t):
        del h, t
        return State(state.q, dW[np.array(self.which)]), Solve(jnp.zeros((), self.system.dtype), jnp.array(True), jnp.zeros((), int))


def drawn_increments(scheme: Scheme, path: Path, step: float) -> tuple[np.ndarray, str]:
    """z of (trajectories, steps, channels), some of them where there are many; and the engine that drew them."""
    m = scheme.channels
    half = min(m, _CHANNELS) // 2
    which = tuple(sorted({*range(min(m, _CHANNELS) - half), *range(m - half, m)}))
    system = System(Euclidean(len(which)), None, channels=m, precision=np.dtype(scheme.system.dtype).name)
    recorder = IncrementRecorder(system, m, scheme.path_channels, which)
    zero = jnp.zeros(len(which), system.dtype)
    looks = {"z": values(lambda s: s.p)}
    run = complete_run(request(recorder, State(zero, zero), step=step, steps=_STEPS, every=1, trajectories=_TRAJECTORIES, path=path, observe=looks))
    z = np.asarray(run["z"].value, float).reshape(_TRAJECTORIES, _STEPS + 1, len(which))[:, 1:]
    return z / np.sqrt(step), run.provenance.mode


def noise_law(scheme: Scheme, q: Point, path: Path, step: float, t0: float) -> list[Finding]:
    """One finding: the least probable of all laws tested, with their number."""
    if not scheme.channels:
        return []
    z, mode = drawn_increments(scheme, path, step)
    chances = probabilities(z)
    system = scheme.system
    moved = system.constraints and system.time_dependent  # momenta then have a mean along the surface's motion
    if system.has_lagrangian and system.quadratic and not system.in_phase_space and not moved:
        chances["Maxwell starts"] = _maxwell(scheme, q, path, t0)
    worst = min(chances, key=lambda name: chances[name])
    alarm = min(1.0, len(chances) * chances[worst])
    wrong = [name for name, chance in chances.items() if len(chances) * chance <= ALARM]
    result = f"wrong: {', '.join(wrong)}" if wrong else f"least likely of {len(chances)} laws: {worst}"
    shape = f"{z.shape[0]} trajectories, {z.shape[1]} steps, {z.shape[2]} {'channel' if z.shape[2] == 1 else 'channels'} by the {mode} engine"
    error = float(np.sqrt(2 / z.size))
    # A sample of this size shows a variance off by 5 % and tails cut at 3σ with certainty, so the doubt is 0.
    how = f"⟨ΔW²⟩/h of {shape}; {result}"
    return [Finding("noise drawn", float(np.mean(z**2)), 0.05, Verdict.undecided, how, error, 1.0, alarm, 0.0, float(z.size))]


def probabilities(z: np.ndarray) -> dict[str, float]:
    """The probability of the values if z are independent normals, law by law."""
    n, flat = z.size, z.reshape(-1)
    two_sided = lambda x: float(2 * scipy.special.ndtr(-abs(x)))
    if not np.isfinite(flat).all():
        return {"finite values": 0.0}
    squares = float(np.sum(flat**2))
    chances = {
        "mean": two_sided(flat.sum() / np.sqrt(n)),
        "variance": 2 * min(float(scipy.special.chdtr(n, squares)), float(scipy.special.chdtrc(n, squares))),
        "tails": _tails(flat),
        "repeats": 0.0 if _repeats(z) else 1.0,
        "successive steps": _uncorrelated([np.sum(z[:, lag:] * z[:, :-lag]) / np.sqrt(z[:, lag:].size) for lag in range(1, _LAGS + 1)]),
    }
    if z.shape[2] > 1:
        by_channel = z.reshape(-1, z.shape[2])
        pairs = by_channel.T @ by_channel / np.sqrt(len(by_channel))
        chances["channels"] = _uncorrelated(pairs[np.triu_indices(len(pairs), 1)])
    return chances


def _uncorrelated(scores: Any) -> float:
    """Of standard normals, the largest of them."""
    scores = np.asarray(scores)
    return float(min(1.0, 2 * len(scores) * scipy.special.ndtr(-np.abs(scores).max())))


def _tails(flat: np.ndarray) -> float:
    """χ² of counts between multiples of σ, the outermost beyond 3σ."""
    counts = np.histogram(flat, [-np.inf, *_EDGES, np.inf])[0]
    expected = len(flat) * np.diff(scipy.special.ndtr(np.array([-np.inf, *_EDGES, np.inf])))
    return float(scipy.special.chdtrc(len(counts) - 1, np.sum((counts - expected) ** 2 / expected)))


def _repeats(z: np.ndarray) -> bool:
    """Whether two successive values of a trajectory and channel occur again, there or elsewhere, up to signs.

    Two values of 32 bits each agree by chance once in 2⁶⁴ pairs of pairs; there are 2⁴⁰ or less of these.
    """
    pairs = np.abs(np.stack([z[:, ::2], z[:, 1::2]], -1)).reshape(-1, 2)
    shifted = np.abs(np.stack([z[:, 1:-1:2], z[:, 2::2]], -1)).reshape(-1, 2)
    both = np.concatenate([pairs, shifted])
    return len(np.unique(both.view(np.dtype((np.void, 2 * both.itemsize))))) < len(both)


def _maxwell(scheme: Scheme, q: Point, path: Path, t0: float) -> float:
    """Σ ⟨p, v⟩/kT of many starts against χ²."""
    system = scheme.system
    numbers = np.arange(_STARTS, dtype=np.uint64)
    starts = StartStates(scheme.start(q, temperature=1.0), (), t0).many(path, numbers)
    doubled = lambda state: jnp.vdot(*relative_motion(system, State(state.q, state.p), jnp.asarray(t0, system.dtype)))
    total = float(np.sum(np.asarray(evaluate(jax.vmap(doubled), State(starts.q, starts.p)), float)))
    degrees = _STARTS * system.freedom
    return 2 * min(float(scipy.special.chdtr(degrees, total)), float(scipy.special.chdtrc(degrees, total)))
