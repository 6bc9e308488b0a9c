"""Charged particle in a random magnetic field.

    H = |p|²/2 + ½ω²|q|²,     H_i = −σ_i A_i(q)·p,   A_i = ½ e_i × q,       dq = p dt − Σ σ_i A_i(q) ∘ dW_i

A fluctuating vector potential A(q) ∘ dW couples to the momentum, so its noise is a noise Hamiltonian. Uniform fields along fixed axes e_i give
H_i = −½σ_i e_i·(q × p): they turn the plane of the orbit at random. Two axes do not commute, {L₁, L₂} = L₃, and plain increments give strong order ½.
In an isotropic trap rotations commute with H, so every path keeps its energy and |L|², while the direction of L = q × p wanders over its sphere. The
midpoint rule keeps the energy, which is quadratic, to round-off; |L|², which is not, as well as its step allows.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import HamiltonianMidpoint
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean, spread
from bismut.mechanics import System, left_rotation
from bismut.spaces import Euclidean


def random_magnetic_field(frequency: float = 1.0, noise=(0.5, 0.4)) -> System:
    """Unit charge and mass in a trap of angular frequency ω = `frequency`; fields along the first two axes, of strengths σ_i = `noise`."""
    return System(
        Euclidean(3),
        hamiltonian=lambda q, p, parameters: 0.5 * (p @ p + parameters["frequency"] ** 2 * q @ q),
        noise_hamiltonian=lambda q, p, parameters: -0.5 * parameters["noise"] * jnp.cross(q, p)[:2],
        symmetries={"third": left_rotation((0.0, 0.0, 1.0))},
        parameters={"frequency": frequency, "noise": jnp.asarray(noise, float)},
    )


def _angular(state):
    return jnp.cross(state.q, state.p)


def _decay(trial: Trial) -> float:
    h, L3 = 1e-3, float(_angular(trial.state)[2])
    return -(coin_mean(trial.scheme, trial.state, h, lambda s: _angular(s)[2]) / L3 - 1) / (h * 0.125 * (0.5**2 + 0.4**2))


ENTRY = Entry(
    "random-magnetic-field",
    __doc__,
    random_magnetic_field,
    start=lambda scheme: scheme.start(np.array([1.0, 0.0, 0.2]), momentum=np.array([0.1, 0.8, 0.0])),
    scheme=HamiltonianMidpoint,
    step=0.05,
    facts=(
        Fact("every path keeps its energy", lambda trial: spread(trial, trial.system.energy), 0.0, 1e-12),
        Fact("every path nearly keeps |L|²", lambda trial: spread(trial, lambda s: jnp.sum(_angular(s) ** 2)), 0.0, 1e-3),
        Fact("⟨L₃⟩ decays at the rate (σ₁² + σ₂²)/8 (ratio after one step of 0.001)", _decay, 1.0, 0.01),
    ),
    kept=(),
)
