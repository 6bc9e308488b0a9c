"""Ballistic transport: the flights of the sliding disk.

    γ = α(x + θ),  F = −c(v + ω)(1, 1):     d(p_x − p_θ) = −U′(x) dt,  free of noise and friction

On a flat floor p_x − p_θ never changes: each disk rolls on with the velocity it has, and ⟨x²⟩ → kT t²/(1 + σ), ballistic for ever, though
everything is at one temperature. A wavy floor a(1 − cos x) holds slow disks back and slowly exchanges who flies: flights of random length, ⟨x²⟩
growing nearly like t² for long before it turns to diffusion (Bou-Rabee and Owhadi, arXiv:0710.1565, for the phenomenon). A bath on every velocity
would diffuse at once: ⟨x²⟩ = 2 D t.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from bismut.actions import VariationalEuler
from bismut.ensembles import simulate, trajectory
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import colour, palette, survivors
from bismut.flows import Langevin
from bismut.gallery.ballistic_pendulum import ballistic_pendulum
from bismut.mechanics import Scheme, System, mechanical
from bismut.spaces import Euclidean

SIGMA, FRICTION, TEMPERATURE, STEP, SEED = 0.5, 1.0, 0.5, 0.1, 3
DEPTHS = (0.0, 0.2, 1.0)
COLOURS = {"flat": "ink", "0.2": "blue", "1": "vermilion", "bath": "sage"}


@dataclass(frozen=True)
class DisplacementCurve:
    """⟨x²⟩ against time for one floor, and a few single disks."""

    label: str
    depth: float
    kind: str
    trajectories: int
    times: np.ndarray
    square: np.ndarray
    stderr: np.ndarray
    paths: np.ndarray

    def exponent(self, early: float, late: float) -> float:
        """The mean slope of log ⟨x²⟩ against log t between two times."""
        at = lambda t: np.interp(t, self.times, self.square)
        return float(np.log(at(late) / at(early)) / np.log(late / early))


def transport(scheme: Scheme, label: str, depth: float, kind: str, steps: int, trajectories: int, paths: int) -> DisplacementCurve:
    start = scheme.start(jnp.zeros(2), temperature=TEMPERATURE)
    result = simulate(
        scheme, start, step=STEP, steps=steps, trajectories=trajectories, seed=SEED, observe={"square": _square}, every=20, progress=False
    )
    run = lambda k: np.asarray(trajectory(scheme, start, step=STEP, steps=10_000, every=20, seed=SEED, trajectory=k).q)[:, 0]
    single = np.stack([run(k) for k in range(paths)]) if paths else np.zeros((0, 501))
    square = result["square"]
    label += survivors(len(result.outcome.failures), trajectories)
    return DisplacementCurve(label, depth, kind, trajectories, result.times, square.mean.values, square.stderr.values, single)


def _square(state):
    return state.q[0] ** 2


def run(quick: bool, note: Note) -> list[DisplacementCurve]:
    trajectories, steps = (2000, 10_000) if quick else (4000, 40_000)
    system: System = ballistic_pendulum(SIGMA)
    transports = []
    for depth in DEPTHS:
        note(f"floor a = {depth:g}")
        scheme = VariationalEuler(system.with_parameters({"friction": FRICTION, "temperature": TEMPERATURE, "depth": depth}))
        label = "flat floor" if depth == 0 else f"wavy floor, a = {depth:g}"
        transports.append(transport(scheme, label, depth, "contact", steps, trajectories, 5 if depth == 0.2 else 0))
    note("a bath on both velocities")
    both = Langevin(mechanical(Euclidean(2), mass=[1.0, SIGMA]), temperature=TEMPERATURE, friction=FRICTION)
    transports.append(transport(both, "flat, bath on both velocities", 0.0, "both", steps, trajectories, 0))
    return transports


def draw(transports: list[DisplacementCurve]):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4))
    for one, name, dash in zip(transports, COLOURS.values(), ("-", "-", "-", "--"), strict=True):
        left.loglog(one.times[1:], one.square[1:], color=colour(name), linestyle=dash, label=one.label)
    t = transports[0].times[1:]
    left.loglog(t, TEMPERATURE * t**2 / (1 + SIGMA), color=colour("soft"), linestyle=":", linewidth=2.5, label="kT t²/(1 + σ)")
    left.set_xlabel("time t")
    left.set_ylabel("mean-squared displacement ⟨x²⟩ (radians²)")
    left.set_title("spreading")
    left.legend(loc="upper left")
    for path, shade in zip(transports[1].paths, palette().series, strict=False):
        right.plot(np.linspace(0, 1000, path.size), path / (2 * np.pi), color=shade, linewidth=1.2)
    right.set_xlabel("time t")
    right.set_ylabel("place x / 2π (wells)")
    right.set_title("five disks on the wavy floor, a = 0.2")
    figure.suptitle("Ballistic transport of the sliding disk at one temperature")
    return figure


def table(transports: list[DisplacementCurve]) -> FigureTable:
    end = transports[0].times[-1]
    spans = [(10.0, 100.0), (100.0, 1000.0), *([(1000.0, end)] if end > 1001 else [])]
    at = lambda one, t: np.interp(t, one.times, one.square)
    rows = [(one.label, f"{at(one, 1000):.3g}", *(f"{one.exponent(a, b):.2f}" for a, b in spans)) for one in transports]
    rows.append(("kT t²/(1 + σ)", f"{TEMPERATURE * 1e6 / (1 + SIGMA):.3g}", *("2" for _ in spans)))
    return FigureTable("⟨x²⟩ at t = 1000, and slopes of log ⟨x²⟩", ("disk", "⟨x²⟩", *(f"{a:g}–{b:g}" for a, b in spans)), rows)


def records(transports: list[DisplacementCurve]) -> FigureTable:
    rows = ((one.label, one.depth, one.kind, *row) for one in transports for row in zip(one.times, one.square, one.stderr, strict=True))
    return FigureTable("", ("label", "depth", "bath", "time", "mean_squared_displacement", "stderr"), rows)


def caption(transports: list[DisplacementCurve]) -> str:
    return (
        f"Sliding disk, σ = {SIGMA:g}, c = {FRICTION:g}, kT = {TEMPERATURE:g}, on a floor a(1 − cos x), started at x = 0 with Maxwell "
        f"momenta; variational Euler, h = {STEP:g}, {transports[0].trajectories} trajectories (seed {SEED}). Noise and friction act on the contact "
        "velocity alone. On a flat floor p_x − p_θ is kept and ⟨x²⟩ → kT t²/(1 + σ); on a wavy floor disks fly for random times and then are "
        "caught, and the growth lies between t² and t. Dashed: the same disk with a bath of friction 1 on both velocities (BAOAB), which "
        "diffuses. Right: single disks, straight stretches are flights."
    )


FIGURE = Figure("ballistic-transport", "Ballistic transport: flights of the sliding disk", run, draw, table, records, caption)
