"""Free rigid body: Euler's top.

    L = ½ w·Iw,           dm/dt = m × w,   m = Iw                        on SO(3)

A body that nothing acts on. The spatial angular momentum R m is constant, so m moves on a sphere, along its intersections with the ellipsoid of
constant energy: stable rotation about the axes of the smallest and the largest moment, tumbling near the middle one. Noise would need a potential
that depends on the orientation and so break the symmetry: the free body is deterministic. The variational method keeps R m exactly and the energy
within a bound that does not grow.
"""

import numpy as np

from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import System, left_rotations, mechanical
from bismut.spaces import SO3


def free_rigid_body(inertia=(1.0, 2.0, 3.3)) -> System:
    """A body with principal moments `inertia`."""
    return mechanical(SO3(), mass=inertia, symmetries={"angular": left_rotations()})


def _energy_error(trial: Trial) -> float:
    from bismut.ensembles import trajectory

    run = trajectory(trial.scheme, trial.state, step=0.1, steps=4000)
    energy = 0.5 * (np.asarray(run.p) ** 2 / np.array([1.0, 2.0, 3.3])).sum(-1)
    return float(np.abs(energy / energy[0] - 1).max())


ENTRY = Entry(
    "free-rigid-body",
    __doc__,
    free_rigid_body,
    # Almost about the middle axis, so that it tumbles.
    start=lambda scheme: scheme.start(np.eye(3), velocity=np.array([0.1, 1.0, 0.1])),
    step=0.1,
    facts=(Fact("the energy stays within 0.25 % over 4000 steps of 0.1", _energy_error, 0.0, 0.0025),),
)
