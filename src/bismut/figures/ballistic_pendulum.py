"""Figure 3 of the paper: the temperature of a ballistic pendulum under three methods on one Wiener path.

Same experiment, our parameters (the original's are not published): σ = ½, c = 0.1, kT = ½, start in equilibrium. The stochastic variational
integrator keeps the temperature; explicit Euler–Maruyama heats the disk and implicit Euler–Maruyama cools it. A second run with c = 1 shows what
the explicit friction of the variational scheme costs: a bias of order h, but no drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bismut.actions import VariationalEuler
from bismut.ensembles import Result, kinetic_energy, simulate
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama
from bismut.gallery import ballistic_pendulum, equilibrium_points
from bismut.mechanics import System
from bismut.noise import Wiener

METHODS = {"SVI": VariationalEuler, "EEM": EulerMaruyama, "IEM": ImplicitEulerMaruyama}
NAMES = {"SVI": "variational (SVI)", "EEM": "explicit Euler–Maruyama", "IEM": "implicit Euler–Maruyama"}
STEPS = (0.1, 0.05)
TEMPERATURE, TIME, RECORD = 0.5, 100.0, 1.0
# Okabe and Ito's colours, which remain apart for every kind of colour vision.
COLOURS = {"SVI": "#0072B2", "EEM": "#D55E00", "IEM": "#009E73"}


@dataclass(frozen=True)
class Curve:
    """Kinetic energy over kT against time, for one method and step."""

    method: str
    step: float
    friction: float
    times: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray

    def near(self, time: float, width: float = 2.0) -> float:
        """The mean over records within `width` of a time."""
        return float(self.mean[np.abs(self.times - time) <= width].mean())


def run(system: System, method: str, step: float, friction: float, trajectories: int, seed: int = 1) -> Curve:
    """One curve. All methods and steps see one Brownian path: the coarse increments are sums of the fine ones."""
    scheme = METHODS[method](system.with_parameters({"friction": friction, "temperature": TEMPERATURE}))
    start = scheme.start(equilibrium_points(TEMPERATURE, trajectories, seed), temperature=TEMPERATURE)
    path = Wiener(seed, substeps=round(step / min(STEPS)))
    result: Result = simulate(
        scheme,
        start,
        step=step,
        steps=round(TIME / step),
        trajectories=trajectories,
        path=path,
        observe={"kinetic": kinetic_energy},
        every=round(RECORD / step),
    )
    kinetic = result["kinetic"]
    return Curve(method, step, friction, result.times, kinetic.mean.values / TEMPERATURE, kinetic.stderr.values / TEMPERATURE)


def experiment(trajectories: int, note=lambda text: None) -> list[Curve]:
    """The six curves of the figure and the two of the stronger friction."""
    curves = []
    cases = [(method, step, 0.1) for step in STEPS for method in METHODS] + [("SVI", step, 1.0) for step in STEPS]
    system = ballistic_pendulum()
    for method, step, friction in cases:
        note(f"{NAMES[method]}, h = {step}, c = {friction}")
        curves.append(run(system, method, step, friction, trajectories))
    return curves


def draw(curves: list[Curve], path: Path, trajectories: int) -> Path:
    """Two panels, one per step, with two-standard-error bands."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
    for axis, step in zip(axes, STEPS, strict=True):
        axis.axhline(1.0, color="black", linewidth=1.2, label="correct temperature")
        for curve in curves:
            if curve.step != step or (curve.friction != 0.1):
                continue
            axis.plot(curve.times, curve.mean, color=COLOURS[curve.method], linewidth=1.6, label=NAMES[curve.method])
            axis.fill_between(
                curve.times, curve.mean - 2 * curve.stderr, curve.mean + 2 * curve.stderr, color=COLOURS[curve.method], alpha=0.25, linewidth=0
            )
        axis.set_title(f"h = {step:g}", fontsize=13)
        axis.set_xlabel("time t", fontsize=12)
        axis.set_xlim(0, TIME)
        axis.grid(alpha=0.25)
        axis.tick_params(labelsize=11)
    axes[0].set_ylabel("mean kinetic energy / kT", fontsize=12)
    axes[1].legend(fontsize=11, loc="upper left")
    figure.suptitle("Ballistic pendulum at uniform temperature", fontsize=14)
    figure.supxlabel(
        f"σ = ½, c = 0.1, kT = ½, {trajectories} trajectories on one Wiener path; bands are two standard errors. "
        "Same experiment as the paper, our parameters.",
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
