"""The answer to a force, two ways: to one that stays, and to one of a single step.

    steady       D_ab = kT ⟨v_a⟩/F           force F e_b, after the transient
    transient    D_ab = kT ⟨ΔX_a(τ)⟩/(F h)   force F e_b in the first step alone, ΔX what it moves

Both begin in equilibrium, under ±F and ±2F on one noise. The difference of opposite forces is halved, μ(F), so even orders cancel, and F → 0 is
(4 μ(F) − μ(2F))/3, right to order F⁴. A steady force is a force in every step, and small answers add up: both have one limit, for every scheme and
step. A kick F h of the momentum between two steps would not do: of OBABO, which ends in the bath, it would make (γh/2)/sinh(γh/2) of it.

The transient way is the transient subtraction of Monmarché, Spacek & Stoltz (arXiv 2410.00212): a trajectory that is started off equilibrium and
relaxes, less a coupled one. Here what puts it off is a step of the scheme itself, and what is subtracted is pushed the other way. Pairs branch off an
equilibrium trajectory, a window apart, on its noise. Nothing has to settle, so no steps are left out. Where close trajectories approach each other
the scatter of ΔX/F is bounded; where they part, at the top of a barrier or in chaos, it grows with the window.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.ensembles import complete_run, request, with_parameters
from bismut.ensembles.observers.report import ObserverReport
from bismut.noise import Wiener
from bismut.response import pushed
from bismut.response.displacements import Drift, Spread

_FIELD = 0.2  # kT over the distance diffused in a correlation time: the steady force
_KICK = 0.25  # of the distance diffused in a correlation time, how far the force of a step moves things in the end: F h = _KICK kT √(2Dτ_c)/D
_SIGNS = np.array([1.0, -1.0, 2.0, -2.0])
_MARKS = (1.0, 0.875, 0.8125, 0.75, 0.5)  # of the window: where X is read, where what is still to come is judged from, and half


class Answer(NamedTuple):
    """The tensor, its error, that of the mean of its diagonal, steps, a note, and the mean of its diagonal at half the window."""

    value: np.ndarray
    stderr: np.ndarray
    mean_stderr: float
    work: float
    note: str
    half: float


class Pushes(NamedTuple):
    """What both ways are given: where forces begin, the watcher that picks displacements, how many bodies are pushed, and scales of the motion."""

    scheme: Any
    states: Any
    watch: Spread
    settings: dict[str, Any]  # step, trajectories, burn_in, seed
    steps: int  # of one force
    share: int  # into how many such parts the run before was long
    bodies: int
    correlation_time: float
    D: float
    window: float
    scale: float

    @property
    def kT(self) -> float:
        return float(self.scheme.temperature(0.0, self.scheme.system.parameters))

    @property
    def components(self) -> int:
        return jax.eval_shape(lambda: self.watch.picked(self.scheme, self.scheme.space.zero(self.scheme.system.dtype))).shape[1]

    @property
    def run(self) -> dict[str, Any]:
        return {name: self.settings[name] for name in ("step", "trajectories")}

    def path(self, shift: int) -> Wiener:
        """Noise that the run before did not see."""
        return Wiener(self.settings["seed"]).shift(self.settings["burn_in"] + self.share * self.steps + shift)

    def sweep(self, size: float) -> dict[str, np.ndarray]:
        return {pushed.COMPONENT: np.arange(self.bodies * self.components), pushed.SIZE: size * _SIGNS}

    def own(self, values: np.ndarray) -> np.ndarray:
        """The mean over bodies, each under its own force, (component, force, trajectory, from, a), of (body and component, force, ..., body, a)."""
        values = values.reshape(self.bodies, self.components, *values.shape[1:])
        return np.mean([values[k, ..., k, :] for k in range(self.bodies)], 0)


def to_forces(pushes: Pushes) -> dict[str, Answer]:
    """Both, by name."""
    return {"response": steady(pushes), "transient": transient(pushes)}


def steady(pushes: Pushes) -> Answer:
    """kT times the mobility, from forces that stay."""
    tau, window, step = pushes.correlation_time, pushes.window, pushes.settings["step"]
    size = _FIELD * pushes.kT / math.sqrt(2 * abs(pushes.D) * (window if math.isnan(tau) else max(tau, step)))
    after = min(window, 0.5 * pushes.steps * step) + 0.25 * step  # between two looks
    driven = pushed.pushed(pushes.scheme, pushes.watch.picked, pushes.bodies)
    observe = {"drift": Drift(pushes.watch.part, None, float(after), pushes.bodies, every=pushes.watch.every)}
    common = {"steps": pushes.steps, "observe": observe, "sweep": pushes.sweep(size), "path": pushes.path(0)}
    run = complete_run(request(driven, pushes.states, **common, **pushes.run))
    slopes = pushes.own(np.asarray(run.observables["drift"].value))
    return _extrapolated(pushes, slopes, size, f"; F = {size:.3g}", float(len(_SIGNS) * pushes.steps * slopes.shape[0] * pushes.bodies), 3)


class MarkedDrift(Drift):
    """X of the first bodies of every trajectory at `shares` of the time `after`."""

    def close(self, tally, memory, ended):
        moved = np.array(memory.early, float)[:, :, : self.bodies]
        moved[~np.asarray(ended.finished)] = np.nan
        return moved, ended.trajectories

    def report(self, name, summary, clock):
        moved, numbers = summary
        axes = ("trajectory", "from", "body", "a")
        return ObserverReport(name, {"value": (axes, moved)}, {"trajectory": numbers}, f"displacements of {len(moved)} trajectories")


def transient(pushes: Pushes) -> Answer:
    """kT times what a force of one step moves things by in the end, over F h."""
    tau, step, kT = pushes.correlation_time, pushes.settings["step"], pushes.kT
    # Overdamped motion shows no correlation time; where a force acts at once, little of it does.
    size = _KICK * kT * math.sqrt(2 * max(step if math.isnan(tau) else tau, step) / abs(pushes.D)) / step
    steps = max(round(pushes.window / step), 2)
    rounds = max(pushes.steps // steps, 1)
    observe = {"moved": MarkedDrift(pushes.watch.part, None, (steps + 0.25) * step, pushes.bodies, _MARKS, every=1)}
    on = pushed.pushed(pushes.scheme, pushes.watch.picked, pushes.bodies)
    off = with_parameters(on, {pushed.ACTS: 0.0})  # the same program
    states, moved = pushes.states, []
    for k in range(rounds):
        common = {"observe": observe, "path": pushes.path(pushes.steps + k * steps), **pushes.run}
        first = complete_run(request(on, states, steps=1, sweep=pushes.sweep(size), **common))
        rest = complete_run(request(off, continue_from=first, steps=steps - 1, observe=observe))
        moved.append(sum(np.asarray(run.observables["moved"].value) for run in (first, rest)) / step)
        if k + 1 < rounds:
            states = complete_run(request(off, states, steps=steps, **common)).final
    slopes = pushes.own(np.mean(moved, 0))
    work = float(rounds * (1 + len(_SIGNS) * slopes.shape[0] * pushes.bodies) - 1) * steps
    return _extrapolated(pushes, slopes, size, f"; F h = {size * step:.3g}, {rounds} pushes a trajectory", work, len(_MARKS) - 2)


def _extrapolated(pushes: Pushes, slopes: np.ndarray, size: float, note: str, steps: float, shown: int) -> Answer:
    """F → 0 of slopes (component, force, trajectory, from, a): the first `from` counts, the next, so many, show what is left, the last is half."""
    components, factor = slopes.shape[0], pushes.scale * pushes.kT
    once, twice = (slopes[:, 0] - slopes[:, 1]) / (2 * size), (slopes[:, 2] - slopes[:, 3]) / (4 * size)
    each, *others = np.moveaxis(factor * (4 * once - twice) / 3, 2, 0)
    root = math.sqrt(max(np.sum(np.isfinite(each).all((0, 2))), 1))
    error = lambda x, axis: np.nanstd(x, axis, ddof=1) / root
    trace = lambda x: np.trace(x, axis1=0, axis2=2) / components

    def left(x, others, axis):
        """What another window changes, as far as it is not noise."""
        return np.max([np.abs(np.nanmean(x - other, axis)) - 2 * error(x - other, axis) for other in others], 0).clip(0)

    half, longer = float(np.nanmean(trace(others[-1]))), others[:shown]
    value, stderr = np.nanmean(each, 1), np.hypot(error(each, 1), left(each, longer, 1))
    mean_stderr = float(np.hypot(error(trace(each), 0), left(trace(each), list(map(trace, longer)), 0)))
    bend = factor * np.trace(np.nanmean((twice - once)[:, :, 0], 1)) / components
    return Answer(value.T, stderr.T, mean_stderr, steps * pushes.settings["trajectories"], f"{note}, at 2F {bend:+.2g}", half)
