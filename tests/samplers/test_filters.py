"""Kernels inside other algorithms: a linear particle filter is Kalman's, and BlackJAX's sequential Monte Carlo takes a kernel as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

A, Q, S = np.array([[1.0, 0.3], [-0.2, 0.9]]), np.diag([0.1, 0.2]), 0.4  # x' = A x + N(0, Q), y = x₀ + N(0, S)
Y = np.array([0.5, -0.3, 1.2, 0.8])


def kalman():
    """Mean and covariance of x after every measurement, and the logarithm of their joint density; x begins as N(0, 1)."""
    mean, P, evidence, H = np.zeros(2), np.eye(2), 0.0, np.array([1.0, 0.0])
    for y in Y:
        mean, P = A @ mean, A @ P @ A.T + Q
        v = H @ P @ H + S
        evidence -= 0.5 * ((y - H @ mean) ** 2 / v + np.log(2 * np.pi * v))
        gain = P @ H / v
        mean, P = mean + gain * (y - H @ mean), P - np.outer(gain, H @ P)
    return mean, P, evidence


def particle_filter(key, particles):
    """The same by particles, each moved after it is drawn by a kernel that leaves p(x | its past) p(y | x) as it is."""

    def update(x, data):
        key, y = data
        spread, weigh, move = jax.random.split(key, 3)
        expected = x @ A.T
        x = expected + jax.random.normal(spread, x.shape) @ np.sqrt(Q)
        weight = -0.5 * (y - x[:, 0]) ** 2 / S - 0.5 * np.log(2 * np.pi * S)
        chosen = jax.random.categorical(weigh, weight, shape=(particles,))

        def moved(key, x, expected):
            density = lambda x: -0.5 * jnp.sum((x - expected) ** 2 / np.diag(Q)) - 0.5 * (y - x[0]) ** 2 / S
            kernel = bm.malt(bm.Euclidean(2), density, step=0.25, leapfrogs=3)
            return kernel.step(key, kernel.init(x))[0].position

        return jax.vmap(moved)(jax.random.split(move, particles), x[chosen], expected[chosen]), jax.nn.logsumexp(weight) - np.log(particles)

    first, later = jax.random.split(key)
    x, evidence = jax.lax.scan(update, jax.random.normal(first, (particles, 2)), (jax.random.split(later, len(Y)), jnp.asarray(Y)))
    return x.mean(0), jnp.cov(x.T), jnp.exp(evidence.sum())


@pytest.mark.long
def test_a_linear_particle_filter_is_that_of_kalman():
    """64 independent filters: mean, covariance and evidence within 4 of their standard errors, which are small; 6 numbers, 1 in 2600. A bias of order
    1/particles, which filters have, is a hundredth of those errors."""
    found = jax.jit(jax.vmap(lambda key: particle_filter(key, 500)))(jax.random.split(jax.random.key(4), 64))
    mean, P, evidence = kalman()
    for values, exact in zip(map(np.asarray, found), (mean, P, np.exp(evidence)), strict=True):
        error = values.std(0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(0) - exact) < 4 * error).all()
        assert (error < 0.01).all()


@pytest.mark.slow
def test_sequential_monte_carlo_of_blackjax():
    """Tempered from the uniform law on S² to exp(4 x₀): ⟨x₀⟩ = coth 4 − 1/4, over 20 runs at 4 standard errors."""
    blackjax = pytest.importorskip("blackjax")
    kappa = 4.0
    sphere = bm.Sphere(2)

    def step_fn(key, state, logdensity, **parameters):
        return bm.malt(sphere, logdensity, **parameters).step(key, state)

    def init_fn(position, logdensity):
        return bm.malt(sphere, logdensity, step=0.3).init(position)

    resampling = blackjax.smc.resampling.systematic
    smc = blackjax.tempered_smc(
        lambda x: 0.0 * x[0], lambda x: kappa * x[0], step_fn, init_fn, {"step": jnp.array([0.5])}, resampling, num_mcmc_steps=4
    )

    def run(key):
        first, later = jax.random.split(key)
        state = smc.init(jax.vmap(sphere.random)(jax.random.split(first, 400)))
        one = lambda state, data: (smc.step(data[0], state, data[1])[0], None)
        state, _ = jax.lax.scan(one, state, (jax.random.split(later, 5), jnp.linspace(0.2, 1.0, 5)))
        return jnp.sum(state.weights * state.particles[:, 0])

    means = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(2), 20)))
    assert abs(means.mean() - (1 / np.tanh(kappa) - 1 / kappa)) < 4 * means.std(ddof=1) / np.sqrt(20)
    assert means.std() < 0.02
