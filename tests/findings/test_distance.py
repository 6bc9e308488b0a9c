"""The distance from Gibbs, from shadow work, is that of the closed form on the oscillator.

    OBABO: ⟨q²⟩ = T/(ω²(1 − h²ω²/4)), momenta exact      BAOAB: ⟨q²⟩ exact, ⟨p²⟩ = T(1 − h²ω²/4)

D of two Gaussians whose variances have the ratio r is ½(r − 1 − ln r). The estimate is right to second order in the distance, so a tenth of it is
allowed beside 4 standard errors (false alarms 6e−5).
"""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.bath import Bath
from bismut.findings.distance import distances
from bismut.mechanics import State

KT, H, COPIES = 0.8, 0.9, 40_000


@pytest.mark.parametrize("splitting", [bm.OBABO, bm.BAOAB, pytest.param(bm.ABOBA, marks=pytest.mark.slow)], ids=str)
def test_the_oscillator(splitting):
    rng = np.random.default_rng(5)
    exact = State(jnp.asarray(np.sqrt(KT) * rng.normal(size=(COPIES, 1))), jnp.asarray(np.sqrt(KT) * rng.normal(size=(COPIES, 1))))
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q), KT, 1.0, splitting)
    found = distances(scheme, Bath(KT, 1.0), exact, step=H, seed=1, rounds=2)
    between = lambda r: 0.5 * (r - 1 - np.log(r))
    part = 1 - H**2 / 4
    q_ratio, p_ratio = {"OBABO": (1 / part, 1.0), "BAOAB": (1.0, part), "ABOBA": (1.0, 1 / part)}[str(splitting)]
    for measured, wanted in ((found.configurations, between(q_ratio)), (found.phase_space, between(q_ratio) + between(p_ratio))):
        print(splitting, measured, wanted)
        assert abs(measured.value - wanted) < 4 * measured.error + 0.1 * wanted
    assert found.phase_space.error < 0.2 * between(part)
