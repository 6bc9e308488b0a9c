"""Phase volume of one step: (1 − hγ)^d for explicit friction, e^{−h tr ΓM⁻¹} for the splittings; rank one too."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.structure import volume_factor
from bismut.programs.evaluation import evaluate
from tests.systems import heavy_top, random_state, separable

H = 0.1
slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)


def factor(scheme, seed=3):
    dW = jnp.sqrt(H) * jnp.linspace(-1.0, 1.0, scheme.channels)
    return float(evaluate(lambda s: volume_factor(scheme, s, H, dW, 0.0), random_state(scheme.system, seed)))


def test_explicit_friction():
    """Γ = c 1 on unit masses, from noises γ_i = √(2ckT) q_i."""
    c, d = 0.7, 3
    free = bm.mechanical(bm.Euclidean(d), potential=lambda q: jnp.cos(q[0] + q[1] * q[2]), noise=lambda q: np.sqrt(2 * c) * q)
    assert abs(factor(bm.VariationalEuler(bm.thermalize(free, 1.0))) - (1 - H * c) ** d) < 1e-13


@pytest.mark.parametrize("splitting", [bm.BAOAB, slow(bm.ABOBA), slow(bm.OBABO), slow(bm.GLA(bm.Verlet)), bm.GLA(bm.VariationalEuler)], ids=str)
def test_splittings(splitting):
    masses, friction = np.array([1.0, 2.0, 0.5]), np.array([0.4, 0.0, 1.1])
    exact = np.exp(-H * np.sum(friction / masses))
    assert abs(factor(bm.Langevin(separable(), 0.8, friction, splitting)) - exact) < 1e-12


@pytest.mark.parametrize("splitting", [slow(bm.BAOAB)], ids=str)
def test_on_a_group(splitting):
    exact = np.exp(-H * 0.9 * 3)
    assert abs(factor(bm.Langevin(heavy_top(), 0.8, rate=0.9, splitting=splitting)) - exact) < 1e-12


def test_rank_one():
    """The sliding disk: Γ = c (1, 1)ᵀ(1, 1), so tr ΓM⁻¹ = c (1 + 1/σ); explicitly det(1 − hΓM⁻¹) = 1 − hc(1 + 1/σ)."""
    c, kT, sigma = 0.3, 0.5, 0.5
    disk = bm.mechanical(
        bm.Euclidean(2), mass=[1.0, sigma], potential=lambda q: 1 - jnp.cos(q[0]), noise=lambda q: jnp.sqrt(2 * c * kT) * (q[0] + q[1])[None]
    )
    assert abs(factor(bm.Langevin(disk, kT)) - np.exp(-H * c * (1 + 1 / sigma))) < 1e-12
    assert abs(factor(bm.VariationalEuler(bm.thermalize(disk, kT))) - (1 - H * c * (1 + 1 / sigma))) < 1e-13
