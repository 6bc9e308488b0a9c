"""Spherical pendulum: a mass on a sphere, by a constraint.

    L = m|v|²/2 − m g x₃,      |x|² = l²,      γ = s x₃

The pivot is shaken up and down at random. Rotations about the vertical remain a symmetry, so the vertical angular momentum of every path is kept,
on the sphere as in free space; the constraint holds to round-off, and so does its rate. In a bath ⟨x₃/l⟩ = −(coth u − 1/u), u = m g l/kT.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import Verlet
from bismut.drawing import SPACE, Drawing, Line, Part
from bismut.gallery.entry import Entry, Fact
from bismut.gallery.measures import largest
from bismut.mechanics import System, left_rotation, mechanical
from bismut.mechanics.constraint import rate
from bismut.spaces import Euclidean


def spherical_pendulum(mass: float = 1.0, length: float = 1.0, gravity: float = 1.0, noise: float = 0.3) -> System:
    """A mass on a sphere of radius `length`, with gravity along −e₃ and random vertical shaking of amplitude s = `noise`."""
    return mechanical(
        Euclidean(3),
        mass=mass,
        potential=lambda x, parameters: mass * parameters["gravity"] * x[2],
        noise=lambda x, parameters: parameters["noise"] * x[2:],
        constraint=lambda x, parameters: jnp.array([x @ x - parameters["length"] ** 2]),
        symmetries={"vertical": left_rotation((0.0, 0.0, 1.0))},
        parameters={"gravity": gravity, "noise": noise, "length": length},
    )


def _leaving(trial) -> float:
    system = trial.system
    return largest(trial, lambda state: rate(system, state.q, system.velocity(state.q, state.p), 0.0))


def picture(system: System, x) -> Drawing:
    """A ball on a rod, and its path on the sphere."""
    length = float(system.parameters["length"])
    parts = [Part("ball", 0.1 * length), Part("block", 0.05 * length, body=[SPACE])]
    return Drawing(np.asarray(x)[:, None], None, parts, [Line(SPACE, 0)], trails=[(0, (0.0, 0.0, 0.0))])


ENTRY = Entry(
    "spherical-pendulum",
    __doc__,
    spherical_pendulum,
    start=lambda scheme: scheme.start(scheme.system.parameters["length"] * np.array([0.6, 0.0, -0.8]), velocity=np.array([0.0, 0.7, 0.0])),
    scheme=Verlet,
    step=0.05,
    facts=(
        Fact("the mass stays on the sphere", lambda trial: largest(trial, lambda s: trial.system.constraint(s.q)), 0.0, 1e-12),
        Fact("the velocity stays tangent to it", _leaving, 0.0, 1e-12),
    ),
    picture=picture,
)
