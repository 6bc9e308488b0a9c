"""Ballistic pendulum: a sliding disk in a pendulum potential, touched by heat in one direction only.

    L = v²/2 + σω²/2 − (1 − cos x),    γ = α(x + θ),    F = −c(v + ω)(1, 1),    kT = α²/2c

The disk slides (x) and turns (θ); friction and noise act only on the velocity v + ω of the point of contact. The bath has rank one, and yet both
momenta come to the same temperature. Long ballistic flights occur when the contact point is nearly at rest.
"""

import jax.numpy as jnp
import numpy as np

from bismut.gallery.entry import Entry
from bismut.mechanics import System, mechanical
from bismut.spaces import Euclidean


def ballistic_pendulum(sigma: float = 0.5, friction: float = 0.1, temperature: float = 0.5) -> System:
    """The sliding disk at a uniform temperature kT; `friction` is c and `sigma` the moment of inertia."""
    contact = jnp.array([1.0, 1.0])
    return mechanical(
        Euclidean(2),
        mass=[1.0, sigma],
        potential=lambda q: 1 - jnp.cos(q[0]),
        noise=lambda q, parameters: jnp.array([jnp.sqrt(2 * parameters["friction"] * parameters["temperature"]) * (q @ contact)]),
        force=lambda q, v, parameters: -parameters["friction"] * (v @ contact) * contact,
        parameters={"friction": friction, "temperature": temperature},
    )


def equilibrium_points(temperature: float, trajectories: int, seed: int) -> np.ndarray:
    """Positions from exp(−U/kT), a von Mises law in x; θ is free."""
    x = np.random.default_rng(seed).vonmises(0.0, 1 / temperature, trajectories)
    return np.stack([x, np.zeros(trajectories)], axis=1)


ENTRY = Entry("ballistic-pendulum", __doc__, ballistic_pendulum)
