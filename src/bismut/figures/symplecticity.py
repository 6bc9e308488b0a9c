"""A disk of initial conditions carried along by each method on one Wiener path: its area.

    pendulum  L = v²/2 + cos q,   γ = s sin q;      dq ∧ dp is kept by the flow, so the area of every disk is

The boundary of a disk is moved point by point with the same noise. The variational step keeps its area for ever; explicit Euler–Maruyama blows it
up, implicit Euler–Maruyama shrinks it.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions import VariationalEuler
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import look, name_of
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama, flow
from bismut.gallery.pendulum import pendulum
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener

METHODS = {"SVI": VariationalEuler, "EEM": EulerMaruyama, "IEM": ImplicitEulerMaruyama}
STEP, TIME, NOISE, SEED = 0.1, 12.0, 0.5, 4
CENTRE, RADIUS = (0.0, 1.2), 0.4
SHOWN = (0.0, 3.0, 6.0)


@dataclass(frozen=True)
class BoundaryPath:
    """The boundary at every step, as points (times, points, 2) of phase space with the angle unrolled, and its area."""

    method: str
    times: np.ndarray
    boundary: np.ndarray
    area: np.ndarray


@eqx.filter_jit
def carry(scheme: Scheme, state: State, dW, h):
    """All points moved by the same increments; the angle is followed by the velocity of each step, so that it does not jump."""
    step, space = flow(scheme), scheme.space

    def one(carried, increment):
        state, angle = carried
        new = jax.vmap(lambda s: step.advance(s, h, increment, 0.0)[0])(state)
        angle = angle + jax.vmap(space.subtract)(new.q, state.q)
        return (new, angle), (angle, new.p)

    return jax.lax.scan(one, (state, state.q), dW)[1]


def area(boundary: np.ndarray) -> np.ndarray:
    """The area inside closed polygons (..., points, 2)."""
    x, y = boundary[..., 0], boundary[..., 1]
    return 0.5 * np.abs((x * np.roll(y, -1, -1) - y * np.roll(x, -1, -1)).sum(-1))


def run(quick: bool, note: Note) -> list[BoundaryPath]:
    points, system = (2000 if quick else 20_000), pendulum(noise=NOISE)
    turn = 2 * np.pi * np.arange(points) / points
    q, p = CENTRE[0] + RADIUS * np.cos(turn), CENTRE[1] + RADIUS * np.sin(turn)
    steps = round(TIME / STEP)
    dW = Wiener(SEED).increments(0, steps, 1, STEP)
    boundaries = []
    for method, make in METHODS.items():
        note(name_of(method))
        angle, momentum = carry(make(system), State(jnp.asarray(q), jnp.asarray(p)), dW, jnp.asarray(STEP))
        boundary = np.concatenate([np.stack([q, p], -1)[None], np.stack([np.asarray(angle), np.asarray(momentum)], -1)])
        boundaries.append(BoundaryPath(method, STEP * np.arange(steps + 1), boundary, area(boundary)))
    return boundaries


def draw(boundaries: list[BoundaryPath]):
    """Three panels of the disk on its way, one of its area."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 8.5))
    for axis, one in zip(axes.flat, boundaries, strict=False):
        for time in SHOWN:
            k = round(time / STEP)
            shape = one.boundary[k]
            axis.fill(shape[:, 0], shape[:, 1], facecolor=look(one.method)["color"], alpha=0.3, edgecolor=look(one.method)["color"], linewidth=1.3)
            # The first label goes below its disk, where no later one comes.
            edge, shift = (np.argmin(shape[:, 1]), -16) if time == 0 else (np.argmax(shape[:, 1]), 6)
            axis.annotate(f"t = {time:g}", shape[edge], textcoords="offset points", xytext=(0, shift), ha="center")
        axis.set_title(name_of(one.method))
        axis.set_xlabel("angle q (radians)")
        axis.set_ylabel("momentum p")
    limits = np.concatenate([one.boundary[[round(t / STEP) for t in SHOWN]].reshape(-1, 2) for one in boundaries])
    low, high = limits.min(0), limits.max(0)
    for axis in axes.flat[:3]:
        axis.set_xlim(low[0] - 0.3, high[0] + 0.3)
        axis.set_ylim(low[1] - 0.3, high[1] + 0.6)
    last = axes[1, 1]
    for one in boundaries:
        last.plot(one.times, one.area / one.area[0], **look(one.method), label=name_of(one.method))
    last.set_title("area of the disk")
    last.set_xlabel("time t (unit: 1/frequency of small swings)")
    last.set_ylabel("area / area at the start")
    last.set_ylim(0.9 * min(one.area.min() / one.area[0] for one in boundaries), 1.25 * max(one.area.max() / one.area[0] for one in boundaries))
    last.legend(loc="upper left")
    figure.suptitle("Symplecticity: a disk of pendulums on one Wiener path")
    return figure


def table(boundaries: list[BoundaryPath]) -> FigureTable:
    at = lambda one, time: one.area[round(time / STEP)] / one.area[0]
    rows = [(name_of(one.method), *(f"{at(one, t):.6f}" for t in (*SHOWN[1:], TIME))) for one in boundaries]
    return FigureTable(f"Area / area at the start, h = {STEP:g}", ("method", *(f"t = {t:g}" for t in (*SHOWN[1:], TIME))), rows)


def records(boundaries: list[BoundaryPath]) -> FigureTable:
    areas = ((one.method, "area", t, "", "", a) for one in boundaries for t, a in zip(one.times, one.area, strict=True))
    shapes = ((one.method, "boundary", t, *point, "") for one in boundaries for t in SHOWN for point in one.boundary[round(t / STEP)][::10])
    return FigureTable("", ("method", "what", "time", "q", "p", "area"), (*areas, *shapes))


def caption(boundaries: list[BoundaryPath]) -> str:
    return (
        f"A disk of radius {RADIUS:g} about (q, p) = {CENTRE} in the phase plane of the pendulum L = v²/2 + cos q, γ = {NOISE:g} sin q, its "
        f"boundary of {boundaries[0].boundary.shape[1]} points moved by each method with step h = {STEP:g} on one Wiener path (seed {SEED}) up to "
        f"t = {TIME:g}. The variational step is symplectic on every path, so the disk keeps its area (what is left is the error of a "
        "polygon); explicit Euler–Maruyama expands it, implicit Euler–Maruyama contracts it."
    )


FIGURE = Figure("symplecticity", "Symplecticity: the area of a disk of initial conditions", run, draw, table, records, caption)
