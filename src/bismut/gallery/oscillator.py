"""Stochastic oscillator: a mass on a spring, pushed by white noise.

    L = v²/2 − ω²q²/2,      γ = s q,          dq = p dt,   dp = −ω²q dt + s dW

The simplest system that noise drives. Its mean energy grows at the rate s²/2, whatever the state: E H(t) = H(0) + s²t/2. The variational Euler
method keeps the modified energy H̃ = H − (h/2) ω² q p of a step without noise, and so the mean of H̃ grows by exactly s²/2 per unit time,
for every step h (Strømmen Melbø and Higham, Appl. Numer. Math. 51, 89 (2004), for the linear growth; Bou-Rabee and Owhadi, arXiv:0708.2187).
"""

import numpy as np

from bismut.drawing import SPACE, Drawing, Line, Part, in_space
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean, ensemble_mean
from bismut.mechanics import System, mechanical
from bismut.spaces import Euclidean


def oscillator(frequency: float = 1.0, noise: float = 0.5) -> System:
    """The oscillator with unit mass, angular frequency ω = `frequency` and noise amplitude s = `noise`."""
    return mechanical(
        Euclidean(1),
        potential=lambda q, parameters: 0.5 * parameters["frequency"] ** 2 * q @ q,
        noise=lambda q, parameters: parameters["noise"] * q,
        parameters={"frequency": frequency, "noise": noise},
    )


def modified_energy(state, h: float, frequency):
    """H̃ = p²/2 + ω²q²/2 − (h/2)ω²qp, which a step of variational Euler without noise keeps."""
    q, p, w2 = state.q[0], state.p[0], frequency**2
    return 0.5 * p * p + 0.5 * w2 * q * q - 0.5 * h * w2 * q * p


def _modified_growth(trial: Trial) -> float:
    h = 0.3  # a large step: the law holds at every h
    H = lambda state: modified_energy(state, h, trial.system.parameters["frequency"])
    return (coin_mean(trial.scheme, trial.state, h, H) - float(H(trial.state))) / h


def _growth(trial: Trial) -> float:
    T, h = 20.0, 0.05
    energy = ensemble_mean(trial.scheme, trial.state, lambda s: modified_energy(s, h, 1.0), step=h, steps=round(T / h), trajectories=4000)
    return (energy - float(modified_energy(trial.state, h, 1.0))) / T


def picture(system: System, q) -> Drawing:
    """A mass on the line, and its spring to the place of rest."""
    return Drawing(in_space(np.asarray(q)[:, None]), None, [Part("ball", 0.12), Part("block", 0.05, body=[SPACE])], [Line(SPACE, 0)], flat=True)


ENTRY = Entry(
    "oscillator",
    __doc__,
    oscillator,
    start=lambda scheme: scheme.start(np.array([1.0]), velocity=np.array([0.0])),
    step=0.05,
    facts=(
        Fact("the mean of the modified energy grows by s²/2 per unit time, exactly (one step, h = 0.3)", _modified_growth, 0.125, 1e-14),
        # The spread of the energy at t = 20 is about 3.5, so this is 4 standard errors of the rate.
        Fact("mean energy grows by s²/2 per unit time (4000 trajectories up to t = 20)", _growth, 0.125, 0.011),
    ),
    picture=picture,
)
