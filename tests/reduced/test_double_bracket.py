"""Dissipation that keeps Casimirs, balanced by noise: exp(−H/kT) on the coadjoint orbit."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.findings.orbit_temperature import orbit_temperature
from bismut.programs.evaluation import evaluate
from tests.findings.studies import study

INERTIA, KT, THETA = np.array([1.0, 2.0, 3.3]), 0.25, 0.4


def body() -> bm.System:
    """A body in a double-bracket bath, asymmetric and in a field, so that its mean momentum is not 0."""
    H = lambda mu: 0.5 * mu @ (mu / INERTIA) + 0.3 * mu[0]
    return bm.thermalize(bm.LiePoisson(bm.SO3(), H, noise=lambda mu: jnp.sqrt(2 * THETA * KT) * mu), temperature=KT)


def test_it_is_the_double_bracket():
    """The drift of the Wiener processes moves μ by θ μ × (μ × ∇H)."""
    system, mu = body(), jnp.array([0.3, 1.0, -0.5])
    rates = evaluate(lambda mu: system.dissipation.rates(system, (), mu, 0.0), mu)
    slope = np.asarray(mu) / INERTIA + np.array([0.3, 0.0, 0.0])
    drift = np.cross(np.asarray(mu), np.sqrt(2 * THETA * KT) * np.asarray(rates))
    np.testing.assert_allclose(drift, THETA * np.cross(mu, np.cross(mu, slope)), atol=1e-14)


def averages(radius: float) -> np.ndarray:
    """⟨μ_i⟩, ⟨μ_i²⟩ and ⟨H⟩ of exp(−H/kT) on the sphere, by quadrature."""
    z, weights = np.polynomial.legendre.leggauss(80)
    phi, ring = 2 * np.pi * np.arange(160) / 160, np.sqrt(1 - z**2)[:, None]
    mu = radius * np.stack(np.broadcast_arrays(ring * np.cos(phi), ring * np.sin(phi), z[:, None]), -1)
    H = 0.5 * (mu**2 / INERTIA).sum(-1) + 0.3 * mu[..., 0]
    density = weights[:, None] * np.exp(-H / KT)
    return np.einsum("ab,abi->i", density / density.sum(), np.concatenate([mu, mu**2, H[..., None]], -1))


def test_the_gibbs_measure_on_the_sphere_is_invariant():
    """4000 trajectories after 12 relaxation times against quadrature over |μ| = 1.2: five standard errors, a false alarm in 2e5, and the bias of
    h = 0.02, below 0.004."""
    radius, scheme = 1.2, bm.HamiltonianMidpoint(body())
    want = averages(radius)
    start = scheme.start(momentum=jnp.array([0.0, 0.0, radius]))
    observe = {"moments": lambda s: jnp.concatenate([s.p, s.p**2, scheme.system.energy(s)[None]]), "C": bm.invariant("mu_mu")}
    run = bm.simulate(scheme, start, step=0.02, steps=3000, trajectories=4000, seed=3, observe=observe, every=3000, mode="native", progress=False)
    found, error = (np.asarray(part[-1]) for part in (run["moments"].mean, run["moments"].stderr))
    assert (np.abs(found - want) < 5 * error + 0.004).all(), (found, want, error)
    assert abs(want[0]) > 0.2
    assert max(float(run["C"].max.max()) - radius**2, radius**2 - float(run["C"].min.min())) < 1e-12


def test_verify_measures_the_temperature_on_the_orbit():
    """⟨Σ{H, H_i}²⟩ = kT⟨Σ{{H, H_i}, H_i}⟩, and another kT is found to be wrong; tolerance 5 %, at an alarm of 1e−3."""
    scheme = bm.HamiltonianMidpoint(body())
    start = scheme.start(momentum=jnp.array([0.0, 0.3, 1.2]))
    held, wrong = (orbit_temperature(study(scheme, start, 0.02, 1, budget=1.0, tolerance=0.05, temperature=kT)) for kT in (None, 1.3 * KT))
    assert abs(held.measured - 1) < 0.05 + 4 * held.error
    assert wrong.alarm < 1e-3


def test_what_cannot_be_balanced_is_refused():
    forced = bm.System(bm.Euclidean(1), hamiltonian=lambda q, p: 0.5 * p @ p, random_force=lambda q, v: jnp.ones((1, 1)))
    with pytest.raises(BismutError, match="no Hamiltonian to balance"):
        bm.thermalize(forced, temperature=1.0)
