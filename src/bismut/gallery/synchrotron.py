"""Synchrotron oscillations of a particle in a storage ring.

    H = p²/2 − ω² cos q,     H₁ = σ₁ ω² sin q,   H₂ = −σ₂ ω² cos q          dq = p dt,   dp = −ω² (sin q dt + σ₁ cos q ∘ dW₁ + σ₂ sin q ∘ dW₂)

The phase q of a particle against the accelerating field is a pendulum; noise in the phase of the field (σ₁) and in its amplitude (σ₂) shakes it and
drives particles out of the bucket in the long run (Seeßelberg et al., Z. Phys. C 62, 63 (1994)). Both noises see q alone, so they commute and the
trapezoid generating function is explicit: the Störmer–Verlet method. Over short times the energy grows by ½ω⁴⟨σ₁² cos² q + σ₂² sin² q⟩ per unit time.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import HamiltonianVerlet
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean
from bismut.mechanics import System
from bismut.spaces import Circle


def synchrotron(frequency: float = 1.0, phase_noise: float = 0.2, amplitude_noise: float = 0.3) -> System:
    """Small oscillations of angular frequency ω = `frequency`; noise σ₁ = `phase_noise` of the phase, σ₂ = `amplitude_noise` of the amplitude."""
    square = lambda parameters: parameters["frequency"] ** 2
    return System(
        Circle(),
        hamiltonian=lambda q, p, parameters: 0.5 * jnp.sum(p**2) - square(parameters) * jnp.sum(jnp.cos(q)),
        noise_hamiltonian=lambda q, p, parameters: (
            square(parameters) * jnp.stack([parameters["phase_noise"] * jnp.sum(jnp.sin(q)), -parameters["amplitude_noise"] * jnp.sum(jnp.cos(q))])
        ),
        parameters={"frequency": frequency, "phase_noise": phase_noise, "amplitude_noise": amplitude_noise},
    )


def _growth(trial: Trial) -> float:
    h, q = 1e-3, trial.state.q
    rate = 0.5 * float(jnp.sum((0.2 * jnp.cos(q)) ** 2 + (0.3 * jnp.sin(q)) ** 2))
    return (coin_mean(trial.scheme, trial.state, h, trial.system.energy) - float(trial.system.energy(trial.state))) / (h * rate)


ENTRY = Entry(
    "synchrotron",
    __doc__,
    synchrotron,
    start=lambda scheme: scheme.start(np.asarray(0.5, float), momentum=np.asarray(0.0, float)),
    scheme=HamiltonianVerlet,
    step=0.05,
    facts=(Fact("the energy grows by ½(σ₁² cos² q + σ₂² sin² q) per unit time (ratio after one step of 0.001)", _growth, 1.0, 0.01),),
)
