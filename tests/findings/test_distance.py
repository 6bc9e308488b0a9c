"""The distance from Gibbs, from shadow work, on the oscillator, where everything is Gaussian.

    OBABO: ⟨q²⟩ = T/(ω²(1 − h²ω²/4)), momenta exact      BAOAB: ⟨q²⟩ exact, ⟨p²⟩ = T(1 − h²ω²/4)      ABOBA: ⟨q²⟩ exact, ⟨p²⟩ = T/(1 − h²ω²/4)

With r the ratio of variances, D(ρ‖π) = ½(r − 1 − ln r). Shadow work measures its symmetric form ½[D(ρ‖π) + D(π‖ρ)] = (1 − r)²/4r, which is D to
second order in the distance: estimate/D − 1 = ±h²ω²/12 + O(h⁴).
"""

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.final_states import native_final_states
from bismut.findings.bath import Bath
from bismut.findings.gibbs import distances
from bismut.mechanics import State, blank_ledger

KT, H, COPIES = 0.8, 0.9, 40_000
SPLITTINGS = [bm.BAOAB, bm.OBABO, bm.ABOBA]


def oscillator(splitting):
    return bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q), KT, 1.0, splitting)


def ratios(splitting, h):
    """Variances of q and p in the steady state over those of exp(−H/kT)."""
    part = 1 - h**2 / 4
    return {"OBABO": (1 / part, 1.0), "BAOAB": (1.0, part), "ABOBA": (1.0, 1 / part)}[str(splitting)]


def divergence(r):
    return 0.5 * (r - 1 - np.log(r))


def symmetric(r):
    return (1 - r) ** 2 / (4 * r)


@pytest.mark.parametrize("splitting", [*SPLITTINGS[:2], pytest.param(bm.ABOBA, marks=pytest.mark.slow)], ids=str)
def test_the_oscillator(splitting):
    """Sampled: within 4 standard errors (false alarms 6e−5 each)."""
    rng = np.random.default_rng(5)
    exact = jax.device_put(State(np.sqrt(KT) * rng.normal(size=(COPIES, 1)), np.sqrt(KT) * rng.normal(size=(COPIES, 1))))
    found = distances(oscillator(splitting), Bath(KT, 1.0), exact, step=H, seed=1, rounds=2)
    q_ratio, p_ratio = ratios(splitting, H)
    for measured, wanted in ((found.configurations, symmetric(q_ratio)), (found.phase_space, symmetric(q_ratio) + symmetric(p_ratio))):
        print(splitting, measured, wanted)
        assert abs(measured.value - wanted) < 4 * measured.error
    assert found.phase_space.error < 0.2 * symmetric(1 - H**2 / 4)


def expected_work(scheme, h, steps, variances):
    """E of shadow work over kT from a Gaussian start, exactly: it is a quadratic form of d normals, so its mean is a sum over 2d places ±√d e_i."""
    d = 2 + steps * scheme.channels
    z = np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])
    q, p = (np.sqrt(KT * variance) * z[:, i : i + 1] for i, variance in enumerate(variances))
    dW = np.sqrt(h) * z[:, 2:].reshape(len(z), steps, scheme.channels)
    start = jax.device_put(State(q, p, blank_ledger(scheme.system.dtype, (len(z),))))
    end = native_final_states(scheme, start, h, 0.0, dW, steps)
    return float(np.mean(np.asarray(end.ledger.error))) / KT


@pytest.mark.parametrize("splitting", SPLITTINGS, ids=str)
def test_it_is_right_to_second_order_in_the_distance(splitting):
    """Without sampling: the symmetric divergence to round-off, and its ratio to D is 1 ± h²/12 as h → 0."""
    scheme, off = oscillator(splitting), []
    for h in (0.6, 0.3):
        steady, steps = ratios(splitting, h), round(30 / h)
        gained = 0.5 * (expected_work(scheme, h, steps, (1.0, 1.0)) - expected_work(scheme, h, steps, steady))
        assert gained == pytest.approx(sum(map(symmetric, steady)), rel=1e-8)
        off.append((gained / sum(map(divergence, steady)) - 1) / h**2)
    sign = 1 if str(splitting) == "BAOAB" else -1
    assert off[1] == pytest.approx(sign / 12, rel=0.03)
    assert abs(off[1] - sign / 12) < 0.3 * abs(off[0] - sign / 12)
