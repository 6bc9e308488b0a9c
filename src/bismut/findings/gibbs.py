"""Averages and configurations against exp(−H/kT).

    few degrees of freedom   quadrature over the space:  ⟨f⟩ = Σ w f e^{−U/kT} / Σ w e^{−U/kT}
    otherwise                the Metropolised scheme, which is exact at any step, on noise of its own
    where there is none      a second temperature:  ln p₂(U)/p₁(U) = const − (β₂ − β₁) U,  whatever the density of states
    distance from Gibbs      D(ρ_q ‖ π_q) ≈ ½ (⟨w⟩_π − ⟨w⟩_ω),        w = shadow work / kT of a long enough run

Observables are averages at given q: kinetic energies integrate to what is known. The claim is about |⟨f⟩ − exact| over the spread of f.

Shadow work is what a step does to the energy besides heat and work: the ledger's `integrator_error`. π starts in equilibrium, ω with configurations
of the steady state and Maxwell momenta (Fass et al. 2018; with the steady state itself in place of ω it is the divergence in phase space of Sivak,
Chodera & Crooks 2014). Both runs end in the same steady state, so their difference does not grow with their length. Right to second order in the
distance: on the oscillator it is ½[D(ρ‖π) + D(π‖ρ)] exactly, which differs from D(ρ‖π) by a factor 1 ± h²ω²/12.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import complete_run, request
from bismut.errors import BismutError
from bismut.findings.bath import Bath
from bismut.findings.cost import seconds_for, step_operations
from bismut.findings.equilibrium import effective_potential
from bismut.findings.finding import Finding, Verdict, not_measured
from bismut.findings.sampling import Sample
from bismut.findings.statistics import Mean, close_to, mean_of
from bismut.flows import Langevin, Metropolised
from bismut.mechanics import Scheme, State, System, blank_ledger
from bismut.noise import Wiener
from bismut.spaces import SO2, SO3, Circle, Euclidean, Point, Space, Torus

_SMALL, _ROUNDS = 5e-4, 16  # nats: averages of what is bounded by 1 are off by two hundredths then; and rounds at most
_TOO_MUCH = 20  # times the budget that a round may cost

Observables = Mapping[str, Callable[[State], Any]]


class QuadratureGrid(NamedTuple):
    """Points along the first axis, and their weights by the invariant measure."""

    points: Point
    weights: np.ndarray


def grid(space: Space, final: Point, fineness: int) -> QuadratureGrid | None:
    """A quadrature of a space of few dimensions; on ℝⁿ over a box that holds the sample four times over."""
    turn = 2 * np.pi * np.arange(16 * fineness) / (16 * fineness)
    if isinstance(space, Circle):
        return QuadratureGrid(turn, np.ones(len(turn)))
    if isinstance(space, SO2):
        return QuadratureGrid(_turns(turn)[:, :2, :2], np.ones(len(turn)))
    if isinstance(space, SO3):
        return _rotations(4 * fineness)
    if isinstance(space, Torus) and space.n <= 2:
        return _box([turn] * space.n)
    if isinstance(space, Euclidean) and space.n <= 2:
        low, high = np.nanmin(final, 0), np.nanmax(final, 0)
        side = (32 if space.n == 1 else 12) * fineness + 1
        return _box([np.linspace(a - 1.5 * (b - a), b + 1.5 * (b - a), side) for a, b in zip(low, high, strict=True)])
    return None


def _box(sides: list[np.ndarray]) -> QuadratureGrid:
    points = np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], -1)
    return QuadratureGrid(points, np.ones(len(points)))


def _turns(angle: np.ndarray) -> np.ndarray:
    """Rotations about the third axis."""
    c, s, one, zero = np.cos(angle), np.sin(angle), np.ones_like(angle), np.zeros_like(angle)
    return np.stack([np.stack([c, -s, zero], -1), np.stack([s, c, zero], -1), np.stack([zero, zero, one], -1)], -2)


def _rotations(side: int) -> QuadratureGrid:
    """R₃(α) R₂(β) R₃(γ): equal steps in α and γ, Gauss–Legendre in cos β."""
    angles = _turns(2 * np.pi * np.arange(side) / side)
    cosine, weight = np.polynomial.legendre.leggauss(side)
    sine = np.sqrt(1 - cosine**2)
    zero, one = np.zeros_like(cosine), np.ones_like(cosine)
    tilt = np.stack([np.stack([cosine, zero, sine], -1), np.stack([zero, one, zero], -1), np.stack([-sine, zero, cosine], -1)], -2)
    points = np.einsum("aij,bjk,ckl->abcil", angles, tilt, angles).reshape(-1, 3, 3)
    return QuadratureGrid(points, np.broadcast_to(weight[None, :, None], (side, side, side)).ravel())


def quadrature(system: System, bath: Bath, functions: Observables, final: Point, t: Any) -> dict[str, tuple[float, float]] | None:
    """Exact averages and spreads; None where the space has too many dimensions, or the integral has not converged."""
    coarse, fine = (_integrated(system, bath, functions, grid(system.space, final, fineness), t) for fineness in (6, 8))
    if coarse is None or fine is None:
        return None
    same = all(abs(coarse[name][0] - fine[name][0]) <= 1e-4 * fine[name][1] + 1e-12 for name in functions)
    return fine if same else None


def _integrated(system: System, bath: Bath, functions: Observables, points: QuadratureGrid | None, t: Any) -> dict[str, tuple[float, float]] | None:
    if points is None:
        return None
    U, rest = effective_potential(system, bath.kT, t), system.space.zero(system.dtype)

    def one(q):
        state = State(q, system.momentum(q, rest, t))
        return U(q) / bath.kT, {name: jnp.asarray(function(state), system.dtype) for name, function in functions.items()}

    height, values = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jnp.asarray(points.points, system.dtype)))
    weight = points.weights * np.exp(np.nanmin(height) - height)
    weight = np.nan_to_num(weight / np.nansum(weight))
    counts = weight > 0  # elsewhere squares may overflow, and 0·inf is not 0
    average = lambda f: float(np.sum(weight[counts] * np.nan_to_num(f)))
    spread = lambda f: np.sqrt(max(average((f - average(f)) ** 2), 0.0))
    return {name: (average(f[counts]), spread(f[counts])) for name, f in values.items()}


def metropolised(scheme: Scheme, bath: Bath) -> Langevin | None:
    """The scheme that samples the same measure exactly; None where a system does not allow it."""
    system = scheme.moving if isinstance(scheme, Langevin) else scheme.system.without_noise().with_dissipation(None)
    retraction = scheme.retraction if isinstance(scheme, Langevin) else None
    try:
        return Langevin(system, bath.kT, rate=max(bath.rate, 0.1), splitting=Metropolised(), retraction=retraction)
    except (BismutError, ValueError):
        return None


def averages(sample: Sample, exact: Mapping[str, Mean | tuple[float, float]], tolerance: float, source: str) -> list[Finding]:
    """One finding for each observable, `potential` and those of the user's."""
    findings = []
    for name, known in exact.items():
        value, spread, error, samples = (*known, 0.0, np.inf) if not isinstance(known, Mean) else (known.value, 0.0, known.error, known.samples)
        mean = mean_of(sample.values[name])
        spread = spread or float(np.nanstd(sample.values[name]))
        law = "⟨U⟩/kT" if name == "potential" else f"⟨{name.removeprefix('own ')}⟩"
        if not spread > 0:
            findings.append(not_measured(law, "it does not vary"))
            continue
        both = mean._replace(error=float(np.hypot(mean.error, error)), samples=min(mean.samples, samples))
        how = f"{source} gives {value:.6g}{f' ± {error:.2g}' if error else ''}; may be off by {tolerance:g} of its spread {spread:.3g}"
        findings.append(close_to(law, both, value, tolerance * spread, how))
    return findings


def two_temperatures(cold: np.ndarray, hot: np.ndarray, kT: float, hotter: float, tolerance: float) -> Finding:
    """The slope of ln p₂/p₁ against U, by maximum likelihood, over β₁ − β₂; `cold` and `hot` are potential energies, one of each trajectory."""
    cold, hot = (np.asarray(part, float)[np.isfinite(part)] for part in (cold, hot))
    how = f"d ln(p₂/p₁)/dU over β₁ − β₂, {len(cold)} samples at kT = {kT:g} and {len(hot)} at {hotter:g}"
    x = np.concatenate([cold, hot])
    centre, scale = x.mean(), x.std() or 1.0
    design = np.stack([np.ones_like(x), (x - centre) / scale], 1)
    label = np.concatenate([np.zeros(len(cold)), np.ones(len(hot))])
    beta, curvature = np.zeros(2), np.eye(2)
    for _ in range(50):  # Newton's method; the likelihood is concave
        p = 1 / (1 + np.exp(-design @ beta))
        curvature = design.T @ (design * (p * (1 - p))[:, None])
        step = np.linalg.solve(curvature, design.T @ (label - p))
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    expected = 1 / kT - 1 / hotter
    error = float(np.sqrt(np.linalg.inv(curvature)[1, 1]) / scale / expected)
    count = min(len(cold), len(hot))
    return close_to("two temperatures", Mean(float(beta[1] / scale / expected), error, count, float(count)), 1.0, tolerance, how)


# Distance from Gibbs.


class Divergence(NamedTuple):
    """D of configurations, and in phase space, in nats."""

    configurations: Mean
    phase_space: Mean


def divergence(scheme: Scheme, bath: Bath, exact: Sample | None, *, step: float, seed: int, budget: float) -> Finding:
    """The divergence of configurations as a finding; a fact, because no scheme claims a number for it."""
    law = "distance from Gibbs"
    if not isinstance(scheme, Langevin):
        return not_measured(law, "shadow work is known for splittings")
    if isinstance(scheme.splitting, Metropolised):
        return not_measured(law, "a Metropolised step is exact")
    if exact is None:
        return not_measured(law, "equilibrium to start from needs the Metropolised scheme or a potential that varies")
    price = _price(scheme, bath, exact.final, step)
    if price > _TOO_MUCH * budget:
        return not_measured(law, f"it would take about {price:.0f} s; give budget=")
    begun = time.monotonic()
    q, z = distances(scheme, bath, exact.final, step=step, seed=seed, budget=budget)
    how = f"nats, D of configurations from shadow work, {q.trajectories} trajectories; in phase space {z.value:.2g} ± {z.error:.1g}"
    return Finding(law, q.value, np.inf, Verdict.fact, how, q.error, samples=q.samples, seconds=time.monotonic() - begun)


def distances(scheme: Langevin, bath: Bath, settled: State, *, step: float, seed: int, budget: float = 5.0, rounds: int | None = None) -> Divergence:
    """Both divergences, starting from states in equilibrium. Rounds of as many trajectories are added until errors are a tenth, or
    small, or the budget is spent; or as many as asked for."""
    count, course = len(jax.tree.leaves(settled.p)[0]), {"step": step, "steps": _steps(bath, step)}
    differences: list[tuple[np.ndarray, np.ndarray]] = []
    for number in range(rounds or int(np.clip(budget / _price(scheme, bath, settled, step), 1, _ROUNDS))):
        # Each round has momenta and noise of its own; configurations are those of the sample.
        own = seed + 3 * number
        first, steady = _shadow(scheme, scheme.start(settled.q, temperature=bath.kT, ledger=True), count, own, bath, **course)
        second, _ = _shadow(scheme, scheme.start(steady.q, temperature=bath.kT, ledger=True), count, own + 1, bath, **course)
        third, _ = _shadow(scheme, State(steady.q, steady.p, blank_ledger(scheme.system.dtype, (count,))), count, own + 2, bath, **course)
        differences.append((0.5 * (first - second), 0.5 * (first - third)))
        if rounds is None and all(one.error <= max(0.1 * abs(one.value), _SMALL) for one in _means(differences)):
            break
    return _means(differences)


def _means(differences: list[tuple[np.ndarray, np.ndarray]]) -> Divergence:
    return Divergence(*(mean_of(np.mean(part, 0)[None]) for part in zip(*differences, strict=True)))


def _steps(bath: Bath, step: float) -> int:
    """Six relaxation times."""
    return int(np.clip(np.ceil(6 / (bath.rate * step)), 10, 2000))


def _price(scheme: Langevin, bath: Bath, settled: State, step: float) -> float:
    """Seconds of work in a round."""
    one = jax.tree.map(lambda leaf: leaf[0], State(settled.q, settled.p))
    return seconds_for(3 * len(jax.tree.leaves(settled.p)[0]) * _steps(bath, step) * step_operations(scheme, one))


def _shadow(scheme: Langevin, start: Any, count: int, seed: int, bath: Bath, *, step: float, steps: int) -> tuple[np.ndarray, State]:
    """Shadow work in kT of each trajectory, and its last state."""
    result = complete_run(request(scheme, start, step=step, steps=steps, every=steps, trajectories=count, path=Wiener(seed)))
    assert result.final is not None
    assert result.final.ledger is not None
    return np.asarray(result.final.ledger.error) / bath.kT, jax.tree.map(jnp.asarray, State(result.final.q, result.final.p))
