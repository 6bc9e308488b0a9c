"""Convergence: errors against the step, with noise on one Brownian path and without noise.

    strong error  (E|z_h(T) − z(T)|²)^½ ~ h^r

Noise enters only the momentum and depends only on the configuration, so every consistent method is of strong order 1 with plain Wiener
increments, on ℝⁿ and on groups. Without noise the order is that of the discrete Lagrangian. The reference is Runge–Kutta 4 on a much finer grid
of the same path.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from bismut.actions import Midpoint, VariationalEuler, Verlet
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import colour
from bismut.findings.convergence_study import convergence
from bismut.flows import EulerMaruyama, RungeKutta4
from bismut.gallery.heavy_top import heavy_top
from bismut.gallery.pendulum import pendulum
from bismut.mechanics import State, System
from bismut.spaces import SO3

METHODS = {
    "variational Euler": (VariationalEuler, "blue", "o"),
    "Verlet": (Verlet, "sage", "s"),
    "midpoint": (Midpoint, "sky", "^"),
    "Euler–Maruyama": (EulerMaruyama, "vermilion", "v"),
    "Runge–Kutta 4": (RungeKutta4, "ink", "D"),
}
TIME, LEVELS, SEED = 1.0, (8, 16, 32, 64, 128), 5


@dataclass(frozen=True)
class ErrorCurve:
    """Errors of one method on one system, with or without noise, and the slope of their logarithms."""

    system: str
    method: str
    noisy: bool
    trajectories: int
    finest: int
    steps: np.ndarray
    errors: np.ndarray
    order: float


def systems(quick: bool) -> dict[str, tuple[System, State]]:
    """The pendulum γ = sin q; in full quality also the heavy top."""
    swing = pendulum()
    cases = {"pendulum, γ = sin q": (swing, State(jnp.asarray(0.5), jnp.asarray(1.0)))}
    if not quick:
        top = heavy_top()
        start = VariationalEuler(top).start(SO3().from_rotation_vector(jnp.array([0.6, -0.4, 0.3])), velocity=jnp.array([0.3, 0.2, 1.0]))
        assert isinstance(start, State)
        cases["heavy top on SO(3), two noises"] = (top, start)
    return cases


def run(quick: bool, note: Note) -> list[ErrorCurve]:
    trajectories, finest = (64, 1024) if quick else (256, 4096)
    lines = []
    for name, (system, start) in systems(quick).items():
        for method, (make, _, _) in METHODS.items():
            for noisy in (True, False):
                note(f"{name}: {method}, {'with' if noisy else 'without'} noise")
                study = convergence(
                    make(system),
                    RungeKutta4(system),
                    start,
                    t0=0.0,
                    time=TIME,
                    levels=LEVELS,
                    finest=finest,
                    trajectories=trajectories,
                    seed=SEED,
                    noise=1.0 if noisy else 0.0,
                )
                lines.append(ErrorCurve(name, method, noisy, trajectories, finest, study.steps, study.errors, study.order))
    return lines


def draw(lines: list[ErrorCurve]):
    """A row for each system: with noise, without noise."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(line.system for line in lines))
    figure, axes = plt.subplots(len(names), 2, figsize=(12, 5.2 * len(names)), squeeze=False, sharex=True)
    for row, name in zip(axes, names, strict=True):
        for axis, noisy in zip(row, (True, False), strict=True):
            for line in lines:
                if (line.system, line.noisy) != (name, noisy):
                    continue
                _, shade, mark = METHODS[line.method]
                axis.loglog(line.steps, line.errors, color=colour(shade), marker=mark, label=f"{line.method}: slope {line.order:.2f}")
            axis.set_title(f"{name}\n{'one Brownian path for all steps' if noisy else 'without noise'}")
            axis.set_xlabel("step h")
            axis.set_ylabel(f"root mean square error of (q, p) at t = {TIME:g}")
            # Room below the lowest line for the legend.
            low, high = axis.get_ylim()
            axis.set_ylim(low / (high / low) ** (0.65 if noisy else 0.25), high)
            axis.legend(loc="lower right")
    figure.suptitle("Convergence")
    return figure


def table(lines: list[ErrorCurve]) -> FigureTable:
    rows = [
        (line.method, line.system.split(" on")[0], "yes" if line.noisy else "no", f"{line.order:.2f}", f"{line.errors[-1]:.1e}") for line in lines
    ]
    return FigureTable(f"Measured orders, h = 1/{LEVELS[0]} to 1/{LEVELS[-1]}", ("method", "system", "noise", "order", "last error"), rows)


def records(lines: list[ErrorCurve]) -> FigureTable:
    rows = ((line.system, line.method, line.noisy, *row) for line in lines for row in zip(line.steps, line.errors, strict=True))
    return FigureTable("", ("system", "method", "noisy", "step", "error"), rows)


def caption(lines: list[ErrorCurve]) -> str:
    return (
        f"Root mean square distance in (q, p) at t = {TIME:g} from Runge–Kutta 4 with {lines[0].finest} steps, on the same Brownian paths "
        f"(coarse increments are sums of fine ones; {lines[0].trajectories} paths, seed {SEED}), for steps h = 1/{LEVELS[0]} to "
        f"1/{LEVELS[-1]}. Pendulum: L = v²/2 + cos q, γ = sin q, from q = 0.5, p = 1. Heavy top (full quality): I = (1, 2, 3), weight 3, γ = "
        "(0.5 R₃₃, 0.3 R₃₃²). With noise all methods are of strong order 1; without it each has the order of its discrete Lagrangian."
    )


FIGURE = Figure("convergence", "Convergence: strong order on one Brownian path, and order without noise", run, draw, table, records, caption)
