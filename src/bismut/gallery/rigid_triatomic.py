"""Rigid triatomic molecule: three atoms held by three bonds, in a random electric field.

    L = Σ ½ m_i |v_i|²,      |x_i − x_j|² = l_ij²,      γ_a = s Σ_i e_i x_ia,   a = 1, 2, 3

Water as simulations like it: geometry fixed by constraints, charges e_i that add up to nothing. A uniform random field turns the molecule but does
not push it, so its total momentum is kept on every path while its energy of rotation grows. The constrained atoms move as a rigid body would: the
moments of inertia are those of the cloud of atoms.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import Verlet
from bismut.drawing import Drawing, Line, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import largest
from bismut.mechanics import Scheme, State, System, body, mechanical, translations
from bismut.spaces import Euclidean

_PAIRS = ((0, 1), (0, 2), (1, 2))


def rigid_triatomic(masses=(16.0, 1.0, 1.0), bond: float = 1.0, angle: float = 1.9106, charges=(-0.8, 0.4, 0.4), noise: float = 1.0) -> System:
    """The middle atom first; `bond` to each of the others, with `angle` (radians) between; field amplitude s = `noise`."""
    shape = geometry(bond, angle)

    def constraint(x, parameters):
        squared_distances = lambda y: jnp.stack([(y[i] - y[j]) @ (y[i] - y[j]) for i, j in _PAIRS])
        return squared_distances(x) - squared_distances(parameters["shape"])

    return mechanical(
        Euclidean(3) ** 3,
        mass=np.asarray(masses, float)[:, None],
        noise=lambda x, parameters: parameters["noise"] * parameters["charges"] @ x,
        constraint=constraint,
        symmetries={"momentum": translations()},
        parameters={"charges": np.asarray(charges, float), "noise": noise, "shape": shape},
    )


def geometry(bond: float, angle: float) -> np.ndarray:
    """Places of the three atoms in a plane."""
    s, c = bond * np.sin(angle / 2), bond * np.cos(angle / 2)
    return np.array([[0.0, 0.0, 0.0], [s, c, 0.0], [-s, c, 0.0]])


def turning(scheme: Scheme) -> State:
    """The molecule drifting and turning about an axis that is none of its own."""
    x = np.asarray(scheme.system.parameters["shape"])
    start = scheme.start(x, velocity=np.cross([0.5, 1.0, 0.3], x) + np.array([0.1, 0.0, -0.1]))
    assert isinstance(start, State)
    return start


def _inertia(trial: Trial) -> float:
    """The kinetic energy of the constrained molecule at the start over that of the rigid body made of its atoms."""
    x, masses, w = np.asarray(trial.system.parameters["shape"]), np.array([16.0, 1.0, 1.0]), np.array([0.5, 1.0, 0.3])
    molecule = body(x, masses)
    centre = np.cross(w, molecule.centre) + np.array([0.1, 0.0, -0.1])
    rigid = 0.5 * molecule.mass * centre @ centre + 0.5 * w @ molecule.inertia @ w
    return float(trial.system.kinetic_energy(trial.state)) / float(rigid)


def picture(system: System, x) -> Drawing:
    """Three atoms, the first one large, and their bonds."""
    bonds = np.asarray(_PAIRS)
    return Drawing(x, None, [Part("ball", 0.3, body=[0]), Part("ball", 0.18, body=[1, 2])], [Line(bonds[:, 0], bonds[:, 1])])


ENTRY = Entry(
    "rigid-triatomic",
    __doc__,
    rigid_triatomic,
    start=turning,
    scheme=Verlet,
    step=0.02,
    facts=(
        Fact("bonds keep their lengths", lambda trial: largest(trial, lambda s: trial.system.constraint(s.q)), 0.0, 1e-12),
        Fact("three constrained atoms have the kinetic energy of a rigid body (ratio)", _inertia, 1.0, 1e-12),
    ),
    picture=picture,
)
