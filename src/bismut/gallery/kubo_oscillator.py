"""Oscillator of Kubo type: a spring whose stiffness is white noise about its mean.

    L = v²/2 − ω²q²/2,      γ = −½ s q²,          dq = p dt,   dp = −ω²q dt − s q dW

Noise multiplies the state, so the origin stays at rest and everything else is driven: parametric amplification. Second moments close among
themselves, d⟨q²⟩ = 2⟨qp⟩ dt, d⟨qp⟩ = (⟨p²⟩ − ω²⟨q²⟩) dt, d⟨p²⟩ = (s²⟨q²⟩ − 2ω²⟨qp⟩) dt, and grow exponentially however weak the noise. Every path is
a linear symplectic map of its start: areas in phase space do not change (Kubo, J. Math. Phys. 4, 174 (1963), for a random frequency).
"""

import numpy as np

from bismut.drawing import SPACE, Drawing, Line, Part, in_space
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean, ensemble_mean
from bismut.gallery.oscillator import modified_energy
from bismut.mechanics import System, mechanical
from bismut.spaces import Euclidean


def kubo_oscillator(frequency: float = 1.0, noise: float = 0.4) -> System:
    """Unit mass, mean angular frequency ω = `frequency`, noise s = `noise` on the stiffness."""
    return mechanical(
        Euclidean(1),
        potential=lambda q, parameters: 0.5 * parameters["frequency"] ** 2 * q @ q,
        noise=lambda q, parameters: -0.5 * parameters["noise"] * q**2,
        parameters={"frequency": frequency, "noise": noise},
    )


def second_moment(time: float, frequency: float = 1.0, noise: float = 0.4) -> float:
    """⟨q²⟩ at a time, from q = 1 at rest: the exponential of the matrix that moves second moments."""
    from scipy.linalg import expm

    w2 = frequency**2
    rates = np.array([[0.0, 2.0, 0.0], [-w2, 0.0, 1.0], [noise**2, -2 * w2, 0.0]])
    return float((expm(time * rates) @ np.array([1.0, 0.0, 0.0]))[0])


def _modified_growth(trial: Trial) -> float:
    h = 0.3
    H = lambda state: modified_energy(state, h, 1.0)
    q = float(trial.state.q[0])
    return (coin_mean(trial.scheme, trial.state, h, H) - float(H(trial.state))) / (h * 0.5 * 0.4**2 * q**2)


def _second_moment(trial: Trial) -> float:
    h, T = 0.01, 6.0
    return ensemble_mean(trial.scheme, trial.state, lambda s: s.q[0] ** 2, step=h, steps=round(T / h), trajectories=4000)


def picture(system: System, q) -> Drawing:
    """A mass on the line, and its spring to the place of rest."""
    return Drawing(in_space(np.asarray(q)[:, None]), None, [Part("ball", 0.12), Part("block", 0.05, body=[SPACE])], [Line(SPACE, 0)], flat=True)


ENTRY = Entry(
    "kubo-oscillator",
    __doc__,
    kubo_oscillator,
    start=lambda scheme: scheme.start(np.array([1.0]), velocity=np.array([0.0])),
    step=0.02,
    facts=(
        Fact("the mean of the modified energy grows by s²q²/2 per unit time, exactly (ratio after one step, h = 0.3)", _modified_growth, 1.0, 1e-13),
        Fact("⟨q²⟩ at t = 6 is that of the closed equations (4000 trajectories)", _second_moment, second_moment(6.0), 0.1),
    ),
    picture=picture,
)
