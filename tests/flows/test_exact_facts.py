"""Facts of the theory that hold exactly, or to a stated band, without tuning."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows import flow
from tests import systems
from tests.flows.catalogue import once


def test_free_body_keeps_its_energy():
    """The sign that the printed paper has wrong: I = (1, 2, 3.3) at h = 0.1 stays within 0.25 % over 4000 steps, as printed it loses 36 %."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.3]))
    for v in ([0.5, 1.0, -0.7], [0.3, 0.2, 1.0], [1.0, 0.1, 0.1]):
        run = bm.trajectory(scheme, scheme.start(jnp.eye(3), velocity=jnp.array(v)), step=0.1, steps=4000, every=10)
        energy = np.asarray(once(jax.vmap(scheme.system.energy))(run.states))
        assert np.abs(energy / energy[0] - 1).max() < 0.0025


def test_rotation_stays_orthogonal():
    """|RᵀR − 1| < 1e−12 after 10⁶ noisy steps."""
    scheme = bm.VariationalEuler(systems.heavy_top())
    start = systems.random_state(scheme.system)
    (R,) = np.asarray(bm.simulate(scheme, start, step=0.01, steps=10**6, trajectories=1, seed=2, mode="native", progress=False).final.q)
    assert np.abs(R.T @ R - np.eye(3)).max() < 1e-12


def test_modified_energy_of_the_oscillator_grows_exactly():
    """dq = p dt, dp = −ω²q dt + s dW under variational Euler: E[H̃] grows by s²h/2 a step, H̃ = H − (h/2)ω²qp, whatever the state and the step.

    H̃ is quadratic, so three Gauss–Hermite points give the expectation exactly.
    """
    omega, s, h = 1.3, 0.7, 0.4
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * omega**2 * q @ q, noise=lambda q: s * q))
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()

    def modified(state):
        q, p = state.q[0], state.p[0]
        return 0.5 * p**2 + 0.5 * omega**2 * q**2 - 0.5 * h * omega**2 * q * p

    start = bm.State(jnp.array([0.8]), jnp.array([-0.3]))
    after = once(jax.vmap(lambda z: modified(flow(scheme).advance(start, h, jnp.sqrt(h) * z[None], 0.0)[0])))(jnp.asarray(nodes))
    mean = float(weights @ np.asarray(after))
    assert np.isclose(mean, float(modified(start)) + 0.5 * s**2 * h, rtol=1e-14)


def test_strong_error_of_the_kicked_free_particle():
    """L = ½v², γ = s q: RMS(q_N − q(T)) = s h √(T/3) exactly.

    The error is linear in the fine increments, so its variance is a sum over them: with n fine steps a step the exact value is s h √(T/3) √(1 − 1/n²)
    (the path between fine points is not seen). Sampled with 4000 trajectories; 4 standard errors of an RMS are 4.5 %.
    """
    s, T, coarse, fine = 0.9, 1.0, 8, 64
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), noise=lambda q: s * q))
    start = scheme.start(jnp.zeros(1), velocity=jnp.zeros(1))
    # The exact solution at the fine level: q(T) = s Σ (T − t_k − h_f/2) ΔW_k in the mean over the unseen bridge.
    path = bm.Wiener(3)
    n = coarse * fine
    dW = np.asarray(path.increments(np.arange(4000), n, 1, T / n))[..., 0]
    exact = s * ((T - (np.arange(n) + 0.5) * T / n)[:, None] * dW).sum(0)
    run = bm.simulate(scheme, start, step=T / coarse, steps=coarse, trajectories=4000, path=bm.Wiener(3, substeps=fine))
    rms = np.sqrt(np.mean((np.asarray(run.final.q)[:, 0] - exact) ** 2))
    h = T / coarse
    # The scheme sees a kick at the left end of the step: it leads the mean position of a kick by h/2 and is off by the place within the step.
    lead = np.repeat(np.arange(coarse) * h, fine) - (np.arange(n) + 0.5) * T / n
    assert np.isclose(s * np.sqrt(np.sum(lead**2) * T / n), s * h * np.sqrt(T / 3), rtol=1e-3)
    assert abs(rms / (s * h * np.sqrt(T / 3)) - 1) < 0.045
