"""Rigid body in a magnetic potential, with moments I = (2, 2, 4).

    L = ½ w·Iw − κ ( 1/|l u − c| − 1/|l u + c| ),      u = R e₃,   c = d e₃

A bar magnet that turns about its middle in the field of one magnetic pole at c: its own poles sit at ±l u. The body is symmetric about its magnet, so
the body momentum m₃ is kept, and the field is symmetric about c, so the spatial momentum along c is kept: two momentum maps, and energy within a
bound. On problems of this kind Newmark methods that are not variational lose energy and momenta (Bou-Rabee and Marsden, Found. Comput. Math. 9,
197 (2009)). A random strength of the field, γ = s (1/|l u − c| − 1/|l u + c|), keeps both symmetries.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import SPACE, Drawing, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import System, left_rotation, mechanical, right_rotation
from bismut.spaces import SO3


def magnetic_rigid_body(inertia=(2.0, 2.0, 4.0), strength: float = 1.0, arm: float = 0.5, distance: float = 1.5, noise: float = 0.2) -> System:
    """Poles at l = `arm` from the centre, a fixed pole at d = `distance`, coupling κ = `strength`, noise s = `noise` on the coupling."""

    def field(R, parameters):
        u, c = parameters["arm"] * R[:, 2], parameters["distance"] * jnp.array([0.0, 0.0, 1.0], R.dtype)
        return 1 / jnp.sqrt((u - c) @ (u - c)) - 1 / jnp.sqrt((u + c) @ (u + c))

    return mechanical(
        SO3(),
        mass=inertia,
        potential=lambda R, parameters: parameters["strength"] * field(R, parameters),
        noise=lambda R, parameters: parameters["noise"] * field(R, parameters)[None],
        symmetries={"vertical": left_rotation((0.0, 0.0, 1.0)), "spin": right_rotation((0.0, 0.0, 1.0))},
        parameters={"strength": strength, "arm": arm, "distance": distance, "noise": noise},
    )


def _drift(trial: Trial) -> float:
    """Change of the mean energy from the first to the last quarter of a long run without noise."""
    from bismut.ensembles import trajectory

    quiet = trial.entry.scheme(trial.system.with_parameters({"strength": 1.0, "arm": 0.5, "distance": 1.5, "noise": 0.0}))
    run = trajectory(quiet, trial.state, step=0.1, steps=8000)
    U = lambda R: 1 / np.linalg.norm(0.5 * R[..., 2] - [0, 0, 1.5], axis=-1) - 1 / np.linalg.norm(0.5 * R[..., 2] + [0, 0, 1.5], axis=-1)
    energy = 0.5 * (np.asarray(run.p) ** 2 / np.array([2.0, 2.0, 4.0])).sum(-1) + U(np.asarray(run.q))
    return float((energy[-2000:].mean() - energy[:2000].mean()) / energy.mean())


def picture(system: System, R) -> Drawing:
    """A bar with its two poles, and the pole in whose field it turns."""
    arm, distance = float(system.parameters["arm"]), float(system.parameters["distance"])
    ends = Part("ball", 0.16 * arm * np.ones(3), body=[0, 0], at=[[0.0, 0.0, arm], [0.0, 0.0, -arm]], colour="ink")
    pole = Part("ball", 0.2 * arm, body=[SPACE], at=(0.0, 0.0, distance), colour="vermilion")
    bar = Part("block", np.array([0.25, 0.12, 1.0]) * arm)
    return Drawing(np.zeros((len(R), 1, 3)), np.asarray(R)[:, None], [bar, ends, pole], trails=[(0, (0.0, 0.0, arm))])


ENTRY = Entry(
    "magnetic-rigid-body",
    __doc__,
    magnetic_rigid_body,
    start=lambda scheme: scheme.start(SO3().from_rotation_vector(np.array([1.0, 0.4, 0.0])), velocity=np.array([0.3, -0.2, 0.5])),
    step=0.05,
    facts=(Fact("without noise the energy does not drift in 8000 steps of 0.1 (relative)", _drift, 0.0, 1e-3),),
    picture=picture,
)
