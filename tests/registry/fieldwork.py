"""An extension as another package would publish it: one of each kind, named in entry_points.txt."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.ensembles import Observable, Report, Watcher
from bismut.ensembles.observable import value_of
from bismut.figures import Figure, FigureTable
from bismut.findings import check
from bismut.findings.finding import at_most
from bismut.flows.splitting import WordSplitting
from bismut.gallery import Entry, Fact
from bismut.sharing.formats import Format


@dataclass(frozen=True)
class Positive(bm.Space):
    """q > 0, with v = (dq/dt)/q."""

    def origin(self, dtype=float):
        return jnp.ones(1, dtype)

    def zero(self, dtype=float):
        return jnp.zeros(1, dtype)

    def move(self, q, velocity, time=1.0):
        return q * jnp.exp(time * velocity)

    def subtract(self, q1, q0):
        return jnp.log(q1 / q0)


class Leaning(bm.Action):
    """Both ends, weighed: S_d = h [(1 − s) L(q0, v) + s L(q1, v)] + ..."""

    share: float = 2 / 3
    claims = bm.Claims(order=1, symplectic=True, momentum_maps=True)

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        a, b = 1 - self.share, self.share
        return h * (a * L(q0, v, t) + b * L(q1, v, t + h)) + (a * gamma(q0, t) + b * gamma(q1, t + h)) @ dW


class Doubled(bm.Path):
    """Twice the white noise of bismut."""

    scale: float
    white: bm.Wiener

    def __init__(self, seed=0, *, scale: float = 2.0):
        self.scale, self.white = float(scale), bm.Wiener(seed)

    def change(self, trajectory, step, channel, h):
        return self.scale * self.white.change(trajectory, step, channel, h)


AOBOA = WordSplitting("AOBOA", "A½ O½ B O½ A½.")
radius = Observable("radius", lambda system, state, t: state.q[0], "q itself.")


class Crossings(Watcher):
    """How often a quantity changes sign."""

    of: object = eqx.field(static=True)

    def begin(self, scheme, state, t):
        return value_of(self.of, scheme, state, t) > 0, jnp.zeros((), jnp.int32)

    def look(self, memory, scheme, state, t):
        side, count = memory
        now = value_of(self.of, scheme, state, t) > 0
        return (now, count + (now != side)), ()

    def close(self, tally, memory, ended):
        return memory[1][ended.finished].sum(), ended.finished.sum()

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def report(self, name, summary, clock):
        count, trajectories = map(np.asarray, summary)
        return Report(name, {"count": ((), count)}, {}, f"{count} crossings of {trajectories} trajectories")


def crossings(of, *, every: int = 1):
    """How often a quantity changes sign, over all trajectories."""
    return Crossings(of, every=every)


def morse(depth: float = 1.0):
    """Morse potential between all pairs of bodies."""
    return bm.pair_potential(lambda a, b: depth * (1 - jnp.exp(1 - jnp.linalg.norm(b.x - a.x))) ** 2)


def write(sheets, place):
    place.write_text(type(sheets).__name__, encoding="utf-8")
    return [place]


NOTES = Format("notes", (".notes",), "one word", False, write)


def bubble(pressure: float = 1.0):
    squeeze = lambda q, parameters: parameters["pressure"] * q[0] ** 3 / 3 + q[0] ** -3 / 3
    return bm.mechanical(Positive(), potential=squeeze, noise=lambda q: 0.1 * q**3, parameters={"pressure": pressure})


ENTRY = Entry(
    "bubble",
    "Bubble: it breathes, and sound shakes it.",
    bubble,
    start=lambda scheme: scheme.start(jnp.array([1.2]), velocity=jnp.array([0.1])),
    scheme=Leaning,
    step=0.02,
    facts=(Fact("it begins at 1.2", lambda trial: trial.state.q[0], 1.2),),
)


@check("structure", ("positive radius",), cost=1.0, applies=lambda scheme: isinstance(scheme.space, Positive))
def positive_radius(study):
    """q > 0 along a path."""
    return [at_most("positive radius", -float(study.run.states.q.min()), 0.0, True, "largest −q of a path")]


def breathe(quick, note):
    note("a bubble")
    scheme = ENTRY.scheme(bubble())
    return bm.trajectory(scheme, ENTRY.start(scheme), step=ENTRY.step, steps=20 if quick else 200, seed=0)


def draw(path):
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots()
    axes.plot(path.times, path.q[:, 0])
    return picture


FIGURE = Figure(
    "breathing",
    "A bubble breathes",
    run=breathe,
    draw=draw,
    table=lambda path: FigureTable("radius", ("least", "largest"), [(path.q.min(), path.q.max())]),
    records=lambda path: FigureTable("radius", ("t", "q"), zip(path.times, path.q[:, 0], strict=True)),
    caption=lambda path: f"One path of {len(path.times) - 1} steps.",
)
