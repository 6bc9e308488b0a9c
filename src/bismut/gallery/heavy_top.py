"""Heavy top with stochastic potentials.

    L = ½ w·Iw − m g l e₃·R e₃,      γ₁ = s₁ R₃₃,   γ₂ = s₂ R₃₃²

A rigid body turning about a fixed point under gravity, shaken by random vertical fields. Potential and noise are unchanged by rotations about the
vertical, so the vertical component of the spatial angular momentum R m is conserved on every path, however strong the noise.
"""

import jax.numpy as jnp

from bismut.gallery.entry import Entry
from bismut.mechanics import System, left_rotation, mechanical
from bismut.spaces import SO3


def heavy_top(inertia=(1.0, 2.0, 3.0), weight: float = 3.0, noise=(0.5, 0.3)) -> System:
    """The top with principal moments `inertia`, m g l = `weight` and noise amplitudes s₁, s₂."""
    return mechanical(
        SO3(),
        mass=inertia,
        potential=lambda R, parameters: parameters["weight"] * R[2, 2],
        noise=lambda R, parameters: parameters["noise"] * jnp.stack([R[2, 2], R[2, 2] ** 2]),
        symmetries={"vertical": left_rotation((0.0, 0.0, 1.0))},
        parameters={"weight": weight, "noise": jnp.asarray(noise)},
    )


ENTRY = Entry("heavy-top", __doc__, heavy_top)
