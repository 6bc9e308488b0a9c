"""Kubo oscillator: an oscillator whose frequency is white noise about its mean.

    H = ½ω(q² + p²),     H₁ = σ ½(q² + p²),          dz = −i z (ω dt + σ ∘ dW),   z = q + ip

The phase of an oscillator does a random walk while its energy stays (Kubo, J. Math. Phys. 4, 174 (1963)): z(t) = z(0) e^{−i(ωt + σW)}, so
averages forget the phase, ⟨z⟩ = z(0) e^{−iωt − σ²t/2}, and every single path stays on its circle. The noise moves q and p alike, so that no potential
γ(q) gives it; it is a noise Hamiltonian. It commutes with H, and the midpoint rule, which keeps quadratic invariants, keeps the energy to round-off.
"""

import numpy as np

from bismut.actions import HamiltonianMidpoint
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import ensemble_mean, spread
from bismut.mechanics import System
from bismut.spaces import Euclidean


def kubo_rotation(frequency: float = 1.0, noise: float = 0.6) -> System:
    """Mean angular frequency ω = `frequency`, noise σ = `noise` on it."""
    action = lambda q, p: 0.5 * (q @ q + p @ p)
    return System(
        Euclidean(1),
        hamiltonian=lambda q, p, parameters: parameters["frequency"] * action(q, p),
        noise_hamiltonian=lambda q, p, parameters: parameters["noise"] * action(q, p)[None],
        parameters={"frequency": frequency, "noise": noise},
    )


def _mean(trial: Trial) -> float:
    return ensemble_mean(trial.scheme, trial.state, lambda s: s.q[0], step=0.02, steps=100, trajectories=4000)


ENTRY = Entry(
    "kubo-rotation",
    __doc__,
    kubo_rotation,
    start=lambda scheme: scheme.start(np.array([1.0]), momentum=np.array([0.0])),
    scheme=HamiltonianMidpoint,
    step=0.05,
    facts=(
        Fact("the energy stays, whatever the noise", lambda trial: spread(trial, trial.system.energy), 0.0, 1e-13),
        # The spread of cos over the circle is below 0.71: five standard deviations of the mean of 4000.
        Fact("⟨q⟩ = cos t e^(−σ²t/2) at t = 2 (4000 trajectories, five standard deviations)", _mean, float(np.cos(2.0) * np.exp(-0.36)), 0.056),
    ),
)
