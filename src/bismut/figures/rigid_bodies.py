"""Interacting magnetic bodies in a bath, and without it.

    L = Σ ½ M|v_i|² + ½ w_i·I w_i − U(x, R)   on (ℝ³ × SO(3))^K,      U = dipoles + soft cores (+ a trap while the bath is on)

In the bath each of the six axes of a body must come to the same temperature, ⟨p_a²⟩ = kT M_a and ⟨m_a²⟩ = kT I_a, whatever U is. Without the bath
energy stays within a bound, and total momentum and angular momentum are conserved. `Langevin` (BAOAB) does so; Euler–Maruyama with projected
rotations does neither, at a quarter of the step; at the same step it blows up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import energy, momentum, simulate
from bismut.figures.bodies import draw_bodies
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import colour, palette
from bismut.flows import Flow, Langevin
from bismut.flows.baselines import drift
from bismut.flows.variational import Solve
from bismut.gallery.magnetic_dipoles import magnetic_dipoles, on_a_grid
from bismut.mechanics import Claims, Scheme, State, System
from bismut.spaces import add, scale
from bismut.spaces.rotation import hat

INERTIA, TEMPERATURE, RATE, TRAP, SEED = (0.1, 0.15, 0.2), 1.0, 0.25, 1.0, 1
COOLED = 0.4  # momenta are scaled by this before the run without a bath, so that the magnets hold together
SWITCHED_OFF = 1000.0  # the bath is there before this time
STEPS = {"BAOAB": 0.02, "EEM": 0.005}
SHORT = {"BAOAB": "BAOAB", "EEM": "projected E–M"}
NAMES = {"BAOAB": "Langevin BAOAB", "EEM": "projected Euler–Maruyama"}
AXES = ("x₁", "x₂", "x₃", "turn about e₁", "turn about e₂", "turn about e₃")
COLOURS = ("ink", "sky", "sage", "blue", "vermilion", "ochre")


class ProjectedEulerMaruyama(Flow):
    """Euler–Maruyama for rigid bodies in a bath, with rotations pulled back by projection: what a straightforward program does, for comparison.

        x1 = x + h v,    R1 = polar(R + h R ŵ),    p1 = p + h (ad*_v p − dU − rate p) + √(2 rate kT M) ΔW

    On (ℝ³ × SO(3))^K. `contact(t)` multiplies the bath, as the schedule of `Langevin` does; `masses` are (K, 1) and (K, 3).
    """

    temperature: Any
    rate: Any
    masses: tuple[Any, Any]
    contact: Callable = eqx.field(static=True)
    claims = Claims(order=1)

    @property
    def channels(self) -> int:
        return self.system.space.dim

    def advance(self, state, h, dW, t):
        system, (x, R) = self.system, state.q
        v, force = drift(system, state.q, state.p, t)
        rate = self.rate * self.contact(t)
        kicks = system.space.unflatten(dW)
        noise = jax.tree.map(lambda m, z: jnp.sqrt(2 * rate * self.temperature * m) * z, self.masses, kicks)
        p = add(add(state.p, scale(h, force)), add(scale(-h * rate, state.p), noise))
        turned = R + h * jnp.einsum("kij,kjl->kil", R, jax.vmap(hat)(v[1]))
        return State((x + h * v[0], _polar(turned)), p), Solve.explicit(system.dtype)


def _polar(A):
    """The nearest rotations, by four Newton–Schulz iterations: enough from a start within h|w| of them."""
    for _ in range(4):
        A = 1.5 * A - 0.5 * jnp.einsum("kij,klj,klm->kim", A, A, A)
    return A


@dataclass(frozen=True)
class BodiesRun:
    """One method: temperatures (times, 6) in the bath with standard errors, then energy and momenta without it; and one state of the bath."""

    method: str
    step: float
    bodies: int
    trajectories: int
    times: np.ndarray
    temperature: np.ndarray
    stderr: np.ndarray
    free_times: np.ndarray
    energy: np.ndarray
    momentum: np.ndarray
    angular: np.ndarray
    state: State

    def settled(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean temperatures over the second half, and a standard error from records that are a relaxation time apart."""
        late = self.times > 0.5 * self.times[-1]
        independent = max(1.0, RATE * self.times[-1] / 2)
        return self.temperature[late].mean(0), self.stderr[late].mean(0) / np.sqrt(independent)


def contact(t):
    """1 while the bath is there."""
    return jnp.where(t < SWITCHED_OFF, 1.0, 0.0)


def per_axis(state: State):
    """Temperatures of the six axes, mean over bodies; unit masses."""
    p, m = state.p
    return jnp.concatenate([jnp.mean(p * p, 0), jnp.mean(m * m / jnp.asarray(INERTIA, m.dtype), 0)])


def scheme_of(method: str, system: System, bodies: int) -> Scheme:
    if method == "BAOAB":
        return Langevin(system, temperature=TEMPERATURE, rate=RATE, schedule=contact)
    masses = np.ones((bodies, 1)), np.tile(INERTIA, (bodies, 1))
    return ProjectedEulerMaruyama(system, TEMPERATURE, RATE, masses, contact)


def measure(method: str, system: System, bodies: int, trajectories: int, time: float, begin: State | None, note: Note) -> BodiesRun:
    """A run in the bath; then one without it, from one state of the bath and without the trap. Both are one compiled program."""
    step, scheme = STEPS[method], scheme_of(method, system, bodies)
    start = scheme.start(on_a_grid(bodies, 1.2), temperature=TEMPERATURE)
    observe = {"temperature": per_axis, "energy": energy, "momentum": momentum("momentum"), "angular": momentum("angular")}
    follow = partial(
        simulate,
        step=step,
        steps=round(time / step),
        every=round(time / step / 80),
        trajectories=trajectories,
        seed=SEED,
        observe=observe,
        progress=False,
    )
    note(f"{NAMES[method]}, h = {step}, in the bath")
    warm = follow(scheme, start)
    one = begin
    if one is None:
        assert warm.final is not None
        q, p = (tuple(np.asarray(part)[0] for part in half) for half in (warm.final.q, warm.final.p))
        one = State(q, tuple(COOLED * part for part in p))
    note(f"{NAMES[method]}, h = {step}, without it")
    free = scheme_of(method, system.with_parameters(dict(system.parameters) | {"trap": 0.0}), bodies)
    alone = follow(free, free.start(one.q, momentum=one.p), t0=2 * SWITCHED_OFF)
    change = lambda name: np.abs(alone[name].mean.values - alone[name].mean.values[0])
    return BodiesRun(
        method,
        step,
        bodies,
        trajectories,
        warm.times,
        warm["temperature"].mean.values / TEMPERATURE,
        warm["temperature"].stderr.values / TEMPERATURE,
        alone.times - alone.times[0],
        change("energy"),
        change("momentum").max(-1),
        change("angular").max(-1),
        one,
    )


def run(quick: bool, note: Note) -> list[BodiesRun]:
    bodies, trajectories, time = (4, 128, 16.0) if quick else (8, 500, 40.0)
    system = magnetic_dipoles(bodies=bodies, inertia=INERTIA, noise=None, trap=TRAP)
    first = measure("BAOAB", system, bodies, trajectories, time, None, note)
    # Without the bath both methods start from the same state.
    second = measure("EEM", system, bodies, trajectories, time, first.state, note)
    return [first, second]


def draw(runs: list[BodiesRun]):
    """Temperatures of both methods, conservation without the bath, and the bodies."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 10))
    axes = [figure.add_subplot(2, 2, 1), figure.add_subplot(2, 2, 2)]
    for axis, one in zip(axes, runs, strict=True):
        axis.axhline(1.0, color=colour("soft"), linewidth=1, zorder=0)
        for a, (name, shade) in enumerate(zip(AXES, COLOURS, strict=True)):
            axis.plot(one.times, one.temperature[:, a], color=colour(shade), label=name, linewidth=1.3, linestyle="--" if a < 3 else "-")
        axis.set_title(f"{NAMES[one.method]}, h = {one.step:g}")
        axis.set_xlabel("time t (unit: √(mass · length²/energy))")
        axis.set_ylabel("temperature of each axis / kT")
        axis.set_ylim(0.3, 1.5)
    axes[0].legend(ncols=2, loc="lower right")
    free = figure.add_subplot(2, 2, 3)
    for one, shade in zip(runs, palette().series, strict=False):
        for values, name, dash in ((one.energy, "energy", "-"), (one.momentum, "momentum", "--"), (one.angular, "angular momentum", ":")):
            free.semilogy(one.free_times[1:], np.maximum(values[1:], 1e-16), color=shade, linestyle=dash, label=f"{name}, {SHORT[one.method]}")
    free.set_title("without the bath: change since the start")
    free.set_xlabel("time t")
    free.set_ylabel("|change| (energy, momentum in reduced units)")
    free.set_ylim(1e-17, 1e3)
    free.legend(loc="center", fontsize=8, ncols=2)
    x, R = runs[0].state.q
    draw_bodies(figure.add_subplot(2, 2, 4, projection="3d"), x, R, INERTIA)
    figure.suptitle(f"{runs[0].bodies} magnetic bodies: temperature in a bath, conservation without one")
    return figure


def table(runs: list[BodiesRun]) -> FigureTable:
    settled = [one.settled() for one in runs]
    rows = [(f"T/kT, {name}", *(f"{mean[a]:.3f} ± {2 * error[a]:.3f}" for mean, error in settled)) for a, name in enumerate(AXES)]
    for what, name in (("energy", "energy"), ("momentum", "momentum"), ("angular", "angular momentum")):
        rows.append((f"no bath: change of {name}", *(f"{getattr(one, what).max():.1e}" for one in runs)))
    columns = ("what", *(f"{SHORT[one.method]}, {one.step:g}" for one in runs))
    return FigureTable(f"{runs[0].bodies} bodies, {runs[0].trajectories} trajectories; second half of the run, two standard errors", columns, rows)


def records(runs: list[BodiesRun]) -> FigureTable:
    warm = ((o.method, "bath", t, *row, *e, "", "", "") for o in runs for t, row, e in zip(o.times, o.temperature, o.stderr, strict=True))
    none = [""] * 12
    free = ((o.method, "alone", t, *none, *row) for o in runs for t, *row in zip(o.free_times, o.energy, o.momentum, o.angular, strict=True))
    columns = [*(f"temperature_{a}" for a in range(1, 7)), *(f"stderr_{a}" for a in range(1, 7))]
    return FigureTable("", ("method", "run", "time", *columns, "energy_change", "momentum_change", "angular_change"), (*warm, *free))


def caption(runs: list[BodiesRun]) -> str:
    one = runs[0]
    return (
        f"{one.bodies} bodies of mass 1 and principal moments {INERTIA} on (ℝ³ × SO(3))^{one.bodies} with unit magnetic moments along their "
        f"third axes (C = 1) and soft cores (σ/r)¹², σ = 1; in a bath at kT = {TEMPERATURE:g} with rate {RATE:g} and a trap ½·{TRAP:g}|x|², "
        f"{one.trajectories} trajectories from a grid with Maxwell momenta (seed {SEED}), t up to {one.times[-1]:g}. Above: temperature of "
        f"each translational (dashed) and rotational axis, mean over bodies, for Langevin BAOAB at h = {STEPS['BAOAB']:g} and for "
        f"Euler–Maruyama with rotations projected back, at h = {STEPS['EEM']:g} (at {STEPS['BAOAB']:g} it blows up). Below left: one state of "
        f"the bath, its momenta times {COOLED:g}, followed without bath and trap: changes of energy, total momentum and total angular "
        "momentum (largest component). Below right: that state, bodies as their ellipsoids of inertia at 0.8 of their size, north poles "
        "vermilion."
    )


FIGURE = Figure("rigid-bodies", "Interacting magnetic bodies: temperature and conservation", run, draw, table, records, caption)
