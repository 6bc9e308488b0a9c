"""Derivatives through a trajectory come from the implicit function theorem and equal central differences.

A central difference with e = 1e−5 is right to e² ≈ 1e−10 and ε/e ≈ 1e−11 relative to the values; derivatives here are of order one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows.kernel import walk
from tests.flows.catalogue import once

E = 1e-5
STEP, STEPS = 0.05, 20


# A heavy top with numbers that can be differentiated: weight, tilt and strength of noise.
TOP = bm.mechanical(
    bm.SO3(),
    mass=[1.0, 2.0, 2.5],
    potential=lambda R, parameters: parameters["weight"] * R[2, 2] + parameters["tilt"] * R[2, 0],
    noise=lambda R, parameters: jnp.array([parameters["noise"] * R[2, 1] ** 2]),
    parameters={"weight": 3.0, "tilt": 0.4, "noise": 0.3},
)


def seen(m, numbers):
    """A scalar of the final state, as a function of start momentum and parameters."""
    scheme = bm.VariationalEuler(TOP.with_parameters(dict(zip(("noise", "tilt", "weight"), numbers, strict=True))))
    final = bm.trajectory(scheme, bm.State(jnp.eye(3), m), step=STEP, steps=STEPS, seed=3).final
    return final.q[0, 1] + 0.3 * final.q[2, 2] ** 2 + final.p @ jnp.array([0.2, -0.5, 1.0])


M, NUMBERS = jnp.array([0.3, 1.2, -0.7]), jnp.array([0.3, 0.4, 3.0])


value = once(seen)


def difference(f, x):
    """Central differences along every component."""
    return np.array([(float(f(x + e)) - float(f(x - e))) / (2 * E) for e in E * np.eye(3)])


DM, DN = jnp.array([0.5, -1.0, 2.0]), jnp.array([1.0, 0.7, -0.2])


def test_a_push_forward_is_the_slope_along_a_direction():
    """Forward mode, in start momentum and parameters at once."""
    here, push = once(lambda m, n: jax.jvp(seen, (m, n), (DM, DN)))(M, NUMBERS)
    slope = (value(M + E * DM, NUMBERS + E * DN) - value(M - E * DM, NUMBERS - E * DN)) / (2 * E)
    np.testing.assert_allclose(push, slope, rtol=1e-6)
    np.testing.assert_allclose(here, value(M, NUMBERS), rtol=1e-13)


@functools.cache
def gradient():
    """By start momentum and by parameters, in reverse mode."""
    return once(jax.grad(seen, (0, 1)))(M, NUMBERS)


def test_the_gradient_by_start_momentum():
    by_m, _ = gradient()
    np.testing.assert_allclose(by_m, difference(lambda m: value(m, NUMBERS), M), rtol=1e-6)
    assert np.abs(by_m).min() > 0.01


def test_the_gradient_by_parameters_of_the_system():
    _, by_n = gradient()
    np.testing.assert_allclose(by_n, difference(lambda n: value(M, n), NUMBERS), rtol=1e-6)
    assert np.abs(by_n).min() > 0.01


def test_the_derivative_by_the_step_size():
    """Step size is data too. The increments √h ζ move with it."""
    scheme = bm.VariationalEuler(TOP)
    final = lambda h: bm.trajectory(scheme, bm.State(jnp.eye(3), M), step=h, steps=STEPS, seed=3).final.p[1]
    slope = once(lambda h: jax.jvp(final, (h,), (jnp.ones_like(h),))[1])(STEP)
    run = once(final)
    np.testing.assert_allclose(slope, (run(STEP + E) - run(STEP - E)) / (2 * E), rtol=1e-6)


def test_the_mean_squared_derivative_of_the_flow():
    """E|(φ(z + δη) − φ(z))/δ − Dφ(z) η|² falls with δ², over paths of the noise: the derivative along each path is the one in mean square."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cos(q[0]), noise=lambda q: jnp.sin(2 * q)))
    h, many = 0.05, 300
    dW = np.sqrt(h) * np.random.default_rng(2).normal(size=(many, STEPS, 1))

    def end(z, dW):
        final = walk(scheme, bm.State(z[:1], z[1:]), jnp.asarray(h), dW, STEPS, 0.0)
        return jnp.concatenate([final.q, final.p])

    z, eta = jnp.array([0.4, 0.7]), jnp.array([1.0, -0.5])

    def missed(delta, dW):
        value, slope = jax.jvp(lambda z: end(z, dW), (z,), (eta,))
        return (end(z + delta * eta, dW) - value) / delta - slope

    gaps = once(jax.vmap(missed, (None, 0)))
    mean = [np.mean(np.sum(np.asarray(gaps(delta, dW)) ** 2, 1)) for delta in (0.02, 0.01)]
    assert 3.6 < mean[0] / mean[1] < 4.4
