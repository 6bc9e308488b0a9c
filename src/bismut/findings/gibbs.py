"""Averages against what exp(−H/kT) gives for them.

    few degrees of freedom   quadrature over the space:  ⟨f⟩ = Σ w f e^{−U/kT} / Σ w e^{−U/kT}
    otherwise                the Metropolised scheme, which is exact at any step, on noise of its own
    where there is none      a second temperature:  ln p₂(U)/p₁(U) = const − (β₂ − β₁) U,  whatever the density of states

Observables are averages at given q: kinetic energies integrate to what is known. The claim is about |⟨f⟩ − exact| over the spread of f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError
from bismut.findings.bath import Bath
from bismut.findings.chance import Mean, mean_of, near
from bismut.findings.equilibrium import GROUP, effective_potential
from bismut.findings.finding import Finding, not_measured
from bismut.findings.sampling import Sample
from bismut.flows import Langevin, Metropolised
from bismut.mechanics import Scheme, State, System
from bismut.spaces import SO2, SO3, Circle, Euclidean, Point, Space, Torus

Observables = Mapping[str, Callable[[State], Any]]


class Grid(NamedTuple):
    """Points along the first axis, and their weights by the invariant measure."""

    points: Point
    weights: np.ndarray


def grid(space: Space, final: Point, fineness: int) -> Grid | None:
    """A quadrature of a space of few dimensions; on ℝⁿ over a box that holds the sample four times over."""
    turn = 2 * np.pi * np.arange(16 * fineness) / (16 * fineness)
    if isinstance(space, Circle):
        return Grid(turn, np.ones(len(turn)))
    if isinstance(space, SO2):
        return Grid(_turns(turn)[:, :2, :2], np.ones(len(turn)))
    if isinstance(space, SO3):
        return _rotations(4 * fineness)
    if isinstance(space, Torus) and space.n <= 2:
        return _box([turn] * space.n)
    if isinstance(space, Euclidean) and space.n <= 2:
        low, high = np.nanmin(final, 0), np.nanmax(final, 0)
        side = (32 if space.n == 1 else 12) * fineness + 1
        return _box([np.linspace(a - 1.5 * (b - a), b + 1.5 * (b - a), side) for a, b in zip(low, high, strict=True)])
    return None


def _box(sides: list[np.ndarray]) -> Grid:
    points = np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], -1)
    return Grid(points, np.ones(len(points)))


def _turns(angle: np.ndarray) -> np.ndarray:
    """Rotations about the third axis."""
    c, s, one, zero = np.cos(angle), np.sin(angle), np.ones_like(angle), np.zeros_like(angle)
    return np.stack([np.stack([c, -s, zero], -1), np.stack([s, c, zero], -1), np.stack([zero, zero, one], -1)], -2)


def _rotations(side: int) -> Grid:
    """R₃(α) R₂(β) R₃(γ): equal steps in α and γ, Gauss–Legendre in cos β."""
    angles = _turns(2 * np.pi * np.arange(side) / side)
    cosine, weight = np.polynomial.legendre.leggauss(side)
    sine = np.sqrt(1 - cosine**2)
    zero, one = np.zeros_like(cosine), np.ones_like(cosine)
    tilt = np.stack([np.stack([cosine, zero, sine], -1), np.stack([zero, one, zero], -1), np.stack([-sine, zero, cosine], -1)], -2)
    points = np.einsum("aij,bjk,ckl->abcil", angles, tilt, angles).reshape(-1, 3, 3)
    return Grid(points, np.broadcast_to(weight[None, :, None], (side, side, side)).ravel())


def quadrature(system: System, bath: Bath, functions: Observables, final: Point) -> dict[str, tuple[float, float]] | None:
    """Exact averages and spreads; None where the space has too many dimensions, or the integral has not converged."""
    coarse, fine = (_integrated(system, bath, functions, final, fineness) for fineness in (6, 8))
    if coarse is None or fine is None:
        return None
    same = all(abs(coarse[name][0] - fine[name][0]) <= 1e-4 * fine[name][1] + 1e-12 for name in functions)
    return fine if same else None


def _integrated(system: System, bath: Bath, functions: Observables, final: Point, fineness: int) -> dict[str, tuple[float, float]] | None:
    made = grid(system.space, final, fineness)
    if made is None:
        return None
    U, rest = effective_potential(system, bath.kT), system.space.zero(system.dtype)

    def one(q):
        state = State(q, system.momentum(q, rest))
        return U(q) / bath.kT, {name: jnp.asarray(function(state), system.dtype) for name, function in functions.items()}

    height, values = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jnp.asarray(made.points, system.dtype)))
    weight = made.weights * np.exp(np.nanmin(height) - height)
    weight = np.nan_to_num(weight / np.nansum(weight))
    counts = weight > 0  # elsewhere squares may overflow, and 0·inf is not 0
    average = lambda f: float(np.sum(weight[counts] * np.nan_to_num(f)))
    seen = {name: f[counts] for name, f in values.items()}
    return {name: (average(f), np.sqrt(max(average((f - average(f)) ** 2), 0.0))) for name, f in seen.items()}


def metropolised(scheme: Scheme, bath: Bath) -> Langevin | None:
    """The scheme that samples the same measure exactly; None where a system does not allow it."""
    system = scheme.moving if isinstance(scheme, Langevin) else scheme.system.without_noise().with_dissipation(None)
    retraction = scheme.retraction if isinstance(scheme, Langevin) else None
    try:
        return Langevin(system, bath.kT, rate=max(bath.rate, 0.1), splitting=Metropolised(), retraction=retraction)
    except (BismutError, ValueError):
        return None


def averages(found: Sample, exact: Mapping[str, Mean | tuple[float, float]], tolerance: float, how: str) -> list[Finding]:
    """One finding for each observable, `potential` and those of the user's."""
    findings = []
    for name, known in exact.items():
        value, spread, error, worth = (*known, 0.0, np.inf) if not isinstance(known, Mean) else (known.value, 0.0, known.error, known.samples)
        mine = mean_of(found.values[name])
        spread = spread or float(np.nanstd(found.values[name]))
        law = "⟨U⟩/kT" if name == "potential" else f"⟨{name.removeprefix('own ')}⟩"
        if not spread > 0:
            findings.append(not_measured(law, "it does not vary"))
            continue
        both = mine._replace(error=float(np.hypot(mine.error, error)), samples=min(mine.samples, worth))
        words = f"{how} gives {value:.6g}{f' ± {error:.2g}' if error else ''}; may be off by {tolerance:g} of its spread {spread:.3g}"
        findings.append(near(law, both, value, tolerance * spread, words, group=GROUP))
    return findings


def two_temperatures(cold: np.ndarray, hot: np.ndarray, kT: float, hotter: float, tolerance: float) -> Finding:
    """The slope of ln p₂/p₁ against U, by maximum likelihood, over β₁ − β₂; `cold` and `hot` are potential energies, one of each trajectory."""
    cold, hot = (np.asarray(part, float)[np.isfinite(part)] for part in (cold, hot))
    words = f"d ln(p₂/p₁)/dU over β₁ − β₂, {len(cold)} samples at kT = {kT:g} and {len(hot)} at {hotter:g}"
    x = np.concatenate([cold, hot])
    centre, scale = x.mean(), x.std() or 1.0
    design = np.stack([np.ones_like(x), (x - centre) / scale], 1)
    label = np.concatenate([np.zeros(len(cold)), np.ones(len(hot))])
    beta, curvature = np.zeros(2), np.eye(2)
    for _ in range(50):  # Newton's method; the likelihood is concave
        chance = 1 / (1 + np.exp(-design @ beta))
        curvature = design.T @ (design * (chance * (1 - chance))[:, None])
        step = np.linalg.solve(curvature, design.T @ (label - chance))
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    expected = 1 / kT - 1 / hotter
    error = float(np.sqrt(np.linalg.inv(curvature)[1, 1]) / scale / expected)
    count = min(len(cold), len(hot))
    return near("two temperatures", Mean(float(beta[1] / scale / expected), error, count, float(count)), 1.0, tolerance, words, group=GROUP)
