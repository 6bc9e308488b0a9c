"""Stationary variances of the Langevin oscillator, exact in h (unit mass, T = kT, friction γ, frequency ω).

Each is within 4 standard errors of its formula, at three steps, with a standard error of at most 0.5 %. Two variances for six schemes at three
steps: a false alarm has probability 0.2 %; the seed is fixed.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

T, GAMMA, OMEGA = 0.7, 1.0, 1.0
STEPS = (0.15, 0.3, 0.6)
TRAJECTORIES, TIME = 100_000, 24.0


def oscillator(noise: float = 0.0) -> bm.System:
    amplitude = np.sqrt(2 * GAMMA * T)
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * OMEGA**2 * q @ q, noise=(lambda q: amplitude * q) if noise else None)


def bath(splitting):
    return bm.Langevin(oscillator(), temperature=T, friction=GAMMA, splitting=splitting)


def balanced(method):
    return method(bm.thermalize(oscillator(noise=1.0), T))


def d(h):
    return 1 - h * h * OMEGA**2 / 4


# scheme, ⟨q²⟩ω²/T and ⟨p²⟩/T as functions of h; None where there is no formula
EXACT = {
    "BAOAB": (lambda: bath(bm.BAOAB), lambda h: 1.0, d),
    "ABOBA": (lambda: bath(bm.ABOBA), lambda h: 1.0, lambda h: 1 / d(h)),
    "OBABO": (lambda: bath(bm.OBABO), lambda h: 1 / d(h), lambda h: 1.0),
    "explicit friction": (lambda: balanced(bm.VariationalEuler), None, lambda h: 4 / (4 - 2 * GAMMA * h - h * h * OMEGA**2)),
    "EEM": (lambda: balanced(bm.EulerMaruyama), None, lambda h: 4 * GAMMA / ((GAMMA - h * OMEGA**2) * (4 - 2 * GAMMA * h + h * h * OMEGA**2))),
    "IEM": (
        lambda: balanced(bm.ImplicitEulerMaruyama),
        None,
        lambda h: 4 * GAMMA / ((GAMMA + h * OMEGA**2) * (4 + 2 * GAMMA * h + h * h * OMEGA**2)),
    ),
}
OBSERVE = {"q2": lambda state: state.q[0] ** 2 * OMEGA**2 / T, "p2": lambda state: state.p[0] ** 2 / T}


@pytest.mark.parametrize("name", EXACT)
def test_variances(name):
    make, position, momentum = EXACT[name]
    scheme = make()
    start = scheme.start(jnp.zeros(1), temperature=T)
    for h in STEPS:
        time = TIME * (3 if name == "EEM" and h > 0.4 else 1)  # there the slow rate is 0.2
        steps = round(time / h)
        result = bm.simulate(scheme, start, step=h, steps=steps, every=steps, trajectories=TRAJECTORIES, seed=11, observe=OBSERVE)
        assert result.outcome.ok
        for observable, exact in (("q2", position), ("p2", momentum)):
            if exact is None:
                continue
            mean, error = float(result[observable].mean[-1]), float(result[observable].stderr[-1])
            assert error < 0.005 * mean
            assert abs(mean - exact(h)) < 4 * error, (name, h, observable, mean, exact(h), error)
