"""The stochastic oscillator dq = p dt, dp = −ω²q dt + s dW gains energy at the rate s²/2:  E H(t) = H0 + s²t/2."""

import jax.numpy as jnp
import numpy as np

import bismut as bm

OMEGA, S, STEP, STEPS, PATHS = 1.3, 0.7, 0.05, 100, 4096


def test_the_mean_energy_grows_at_the_rate_of_the_noise():
    """Within 4 standard errors at the end (false alarm 6e−5; the seed is fixed), for H̃ = H − (h/2)ω²qp without bias and for H up to its offset.

    E H differs from E H̃ by (h/2)ω² E qp, and |E qp| ≤ E H/ω: a bias of at most (h ω/2) E H, which is 3 % here.
    """
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * OMEGA**2 * q @ q, noise=lambda q: S * q))
    start = scheme.start(jnp.array([0.8]), velocity=jnp.array([-0.3]))
    modified = lambda z: 0.5 * z.p[0] ** 2 + 0.5 * OMEGA**2 * z.q[0] ** 2 - 0.5 * STEP * OMEGA**2 * z.q[0] * z.p[0]
    observe = {"energy": bm.energy, "modified": modified}
    result = bm.simulate(scheme, start, step=STEP, steps=STEPS, trajectories=PATHS, seed=11, observe=observe, every=STEPS)
    gained = S**2 * STEP * STEPS / 2

    H = result.modified.mean.values
    assert abs(H[1] - H[0] - gained) < 4 * result.modified.stderr.values[1]
    E = result.energy.mean.values
    assert abs(E[1] - E[0] - gained) < 4 * result.energy.stderr.values[1] + STEP * OMEGA / 2 * (E[0] + E[1])


def test_without_noise_the_modified_energy_is_kept():
    """The same H̃ is an invariant of the deterministic map: to round-off over 10³ steps."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * OMEGA**2 * q @ q))
    run = bm.trajectory(scheme, scheme.start(jnp.array([0.8]), velocity=jnp.array([-0.3])), step=STEP, steps=1000, every=10)
    q, p = np.asarray(run.q)[:, 0], np.asarray(run.p)[:, 0]
    H = 0.5 * p**2 + 0.5 * OMEGA**2 * q**2 - 0.5 * STEP * OMEGA**2 * q * p
    np.testing.assert_allclose(H, H[0], rtol=1e-12)
