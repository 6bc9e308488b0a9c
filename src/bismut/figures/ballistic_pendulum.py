"""Figure 3 of the paper: the temperature of a ballistic pendulum under three methods on one Wiener path.

Same experiment, our parameters (the original's are not published): σ = ½, c = 0.1, kT = ½, start in equilibrium. The stochastic variational
integrator keeps the temperature; explicit Euler–Maruyama heats the disk and implicit Euler–Maruyama cools it. A second run with c = 1 shows what
the explicit friction of the variational scheme costs: a bias of order h, but no drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bismut.actions import VariationalEuler
from bismut.ensembles import kinetic_energy, simulate
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import colour, look, name_of, survivors
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama
from bismut.gallery.ballistic_pendulum import ballistic_pendulum, equilibrium_points
from bismut.mechanics import System
from bismut.noise import Wiener

METHODS = {"SVI": VariationalEuler, "EEM": EulerMaruyama, "IEM": ImplicitEulerMaruyama}
STEPS, FRICTIONS = (0.1, 0.05), (0.1, 1.0)
TEMPERATURE, TIME, RECORD = 0.5, 100.0, 1.0


@dataclass(frozen=True)
class KineticCurve:
    """Kinetic energy over kT against time, for one method and step."""

    method: str
    step: float
    friction: float
    trajectories: int
    times: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray
    failed: int = 0

    def near(self, time: float, width: float = 2.0) -> float:
        """The mean over records within `width` of a time."""
        return float(self.mean[np.abs(self.times - time) <= width].mean())


def curve(system: System, method: str, step: float, friction: float, trajectories: int, seed: int = 1) -> KineticCurve:
    """One curve. All methods and steps see one Brownian path: the coarse increments are sums of the fine ones."""
    scheme = METHODS[method](system.with_parameters({"friction": friction, "temperature": TEMPERATURE, "depth": 1.0}))
    result = simulate(
        scheme,
        scheme.start(equilibrium_points(TEMPERATURE, trajectories, seed), temperature=TEMPERATURE),
        step=step,
        steps=round(TIME / step),
        trajectories=trajectories,
        path=Wiener(seed, substeps=round(step / min(STEPS))),
        observe={"kinetic": kinetic_energy},
        every=round(RECORD / step),
        progress=False,
    )
    kinetic = result["kinetic"]
    mean, stderr = kinetic.mean.values / TEMPERATURE, kinetic.stderr.values / TEMPERATURE
    return KineticCurve(method, step, friction, trajectories, result.times, mean, stderr, len(result.outcome.failures))


def run(quick: bool, note: Note) -> list[KineticCurve]:
    """Three methods, two steps, two frictions."""
    trajectories, system, curves = (2_000 if quick else 20_000), ballistic_pendulum(), []
    for friction in FRICTIONS:
        for step in STEPS:
            for method in METHODS:
                note(f"{name_of(method)}, h = {step}, c = {friction}")
                curves.append(curve(system, method, step, friction, trajectories))
    return curves


def draw(curves: list[KineticCurve]):
    """A row for each friction, a column for each step, with two-standard-error bands."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 8), sharex=True, sharey="row")
    for row, friction in zip(axes, FRICTIONS, strict=True):
        for axis, step in zip(row, STEPS, strict=True):
            axis.axhline(1.0, color=colour("ink"), linewidth=1.2, label="correct temperature")
            for one in curves:
                if (one.step, one.friction) != (step, friction):
                    continue
                axis.plot(one.times, one.mean, **look(one.method), label=name_of(one.method) + survivors(one.failed, one.trajectories))
                axis.fill_between(one.times, one.mean - 2 * one.stderr, one.mean + 2 * one.stderr, color=look(one.method)["color"], alpha=0.25, lw=0)
            axis.set_title(f"friction c = {friction:g}, step h = {step:g}")
            axis.set_xlim(0, TIME)
        row[0].set_ylabel("mean kinetic energy / kT")
    for axis in axes[1]:
        axis.set_xlabel("time t (unit: 1/frequency of small swings)")
    axes[0, 0].legend(loc="upper left")
    figure.suptitle("Ballistic pendulum at uniform temperature")
    return figure


def table(curves: list[KineticCurve]) -> FigureTable:
    rows = [
        (
            name_of(c.method) + survivors(c.failed, c.trajectories),
            f"{c.friction:g}",
            f"{c.step:g}",
            f"{c.near(10):.3f}",
            f"{c.near(100):.3f}",
            f"{2 * c.stderr[-1]:.3f}",
        )
        for c in curves
    ]
    return FigureTable("Mean kinetic energy / kT", ("method", "c", "h", "t = 10", "t = 100", "± 2 s.e."), rows)


def records(curves: list[KineticCurve]) -> FigureTable:
    rows = ((c.method, c.friction, c.step, *point) for c in curves for point in zip(c.times, c.mean, c.stderr, strict=True))
    return FigureTable("", ("method", "friction", "step", "time", "kinetic_over_kT", "stderr"), rows)


def caption(curves: list[KineticCurve]) -> str:
    return (
        "Mean kinetic energy of the sliding disk L = v²/2 + σω²/2 − (1 − cos x) with friction and noise on the contact velocity v + ω only, "
        f"σ = ½, kT = ½, started in equilibrium; {curves[0].trajectories} trajectories, one Wiener path (seed 1) for all methods and steps; "
        "bands are two standard errors. The variational integrator keeps the temperature, explicit Euler–Maruyama heats, implicit cools. Its "
        "friction is explicit, which costs a bias of order h, small at c = 0.1 and plain at c = 1, but no drift. Same experiment as figure 3 "
        "of the paper, our parameters."
    )


FIGURE = Figure("ballistic-pendulum", "Ballistic pendulum: temperature under three methods", run, draw, table, records, caption)
