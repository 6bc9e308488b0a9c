"""Heavy top with stochastic potentials.

    L = ½ w·Iw − m g l e₃·R e₃,      γ₁ = s₁ R₃₃,   γ₂ = s₂ R₃₃²,   and if asked for   γ₃ = s₃ R₁₃

A rigid body turning about a fixed point under gravity, shaken by random fields. Potential and vertical noise are unchanged by rotations about the
vertical, so the vertical component of the spatial angular momentum R m is conserved on every path, however strong the noise. A horizontal random
field s₃ breaks the symmetry, and J₃ changes in each step by exactly −s₃ R₂₃ ΔW, the work of the field on a turn about the vertical.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import VariationalEuler
from bismut.drawing import SPACE, Drawing, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import step
from bismut.mechanics import State, System, left_rotation, mechanical
from bismut.spaces import SO3


def heavy_top(inertia=(1.0, 2.0, 3.0), weight: float = 3.0, noise=(0.5, 0.3), sideways: float | None = None) -> System:
    """The top with principal moments `inertia`, m g l = `weight`, vertical noise s₁, s₂ and, unless None, horizontal noise s₃ = `sideways`."""

    def potentials(R, parameters):
        vertical = parameters["noise"] * jnp.stack([R[2, 2], R[2, 2] ** 2])
        return vertical if sideways is None else jnp.concatenate([vertical, parameters["sideways"] * R[0, 2][None]])

    return mechanical(
        SO3(),
        mass=inertia,
        potential=lambda R, parameters: parameters["weight"] * R[2, 2],
        noise=potentials,
        symmetries={"vertical": left_rotation((0.0, 0.0, 1.0))},
        parameters={"weight": weight, "noise": jnp.asarray(noise)} | ({} if sideways is None else {"sideways": sideways}),
    )


def _broken(trial: Trial) -> float:
    """The change of J₃ in one step of a top that a horizontal field shakes, over what it should be."""
    scheme = VariationalEuler(heavy_top(sideways=0.4))
    R = SO3().from_rotation_vector(jnp.array([0.8, -0.3, 0.5]))
    state = scheme.start(R, velocity=np.array([0.3, 0.2, 1.0]))
    assert isinstance(state, State)
    dW = jnp.array([0.2, -0.1, 0.3])
    new = step(scheme, state, 0.1, dW)
    J = lambda state: scheme.system.momentum_map("vertical", state)
    return float((J(new) - J(state)) / (-0.4 * R[1, 2] * dW[2]))


def picture(system: System, R) -> Drawing:
    """A top on its tip; two spots on its rim show how it turns, a line where its axis has been."""
    spots = Part("ball", 0.09, body=[0, 0], at=[[0.62, 0.0, 0.58], [-0.62, 0.0, 0.58]], colour="ink")
    top = Part("top", (0.65, 0.65, 1.1))
    post = Part("rod", (0.04, 0.04, 0.6), body=[SPACE], at=(0.0, 0.0, -0.6))
    return Drawing(np.zeros((len(R), 1, 3)), np.asarray(R)[:, None], [top, spots, post], trails=[(0, (0.0, 0.0, 1.1))])


ENTRY = Entry(
    "heavy-top",
    __doc__,
    heavy_top,
    start=lambda scheme: scheme.start(np.eye(3), velocity=np.array([0.3, 0.2, 1.0])),
    step=0.01,
    facts=(Fact("a horizontal field changes J₃ in a step by −s₃ R₂₃ ΔW (ratio)", _broken, 1.0, 1e-11),),
    picture=picture,
)
