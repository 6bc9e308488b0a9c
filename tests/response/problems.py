"""Problems whose answers are known in closed form: scheme, start, function of a state, time, answer."""

import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

import bismut as bm
from bismut.gallery.kubo_oscillator import kubo_oscillator, second_moment


def oscillator_moments(k: float, friction: float, kT: float, time: float, q0: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (q, p) of a Langevin oscillator of unit mass that starts at rest at q0."""
    A = np.array([[0.0, 1.0], [-k, -friction]])
    stationary = solve_continuous_lyapunov(A, -np.diag([0.0, 2 * friction * kT]))
    E = expm(A * time)
    return E @ np.array([q0, 0.0]), stationary - E @ stationary @ E.T


def oscillator(k=1.0, friction=1.0, kT=1.0):
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": k})
    scheme = bm.Langevin(system, temperature=kT, friction=friction)
    return scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1))


def langevin_oscillator():
    """⟨q²⟩ at t = 1; weak order 2."""
    mean, covariance = oscillator_moments(1.0, 1.0, 1.0, 1.0, 1.0)
    return *oscillator(), lambda s: s.q[0] ** 2, 1.0, float(covariance[0, 0] + mean[0] ** 2)


def shaken_spring():
    """⟨q²⟩ at t = 2 of a spring whose stiffness is noise; weak order 1."""
    scheme = bm.VariationalEuler(kubo_oscillator(1.0, 0.6))
    return scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1)), lambda s: s.q[0] ** 2, 2.0, second_moment(2.0, 1.0, 0.6)


def turning_body():
    """⟨u(0)·u(t)⟩ = e^{−2Dt} of an overdamped sphere, D = kT M."""
    system = bm.mechanical(bm.SO3(), mass=1.0, potential=lambda R: 0.0 * R[2, 2])
    scheme = bm.Brownian(system, temperature=1.0, mobility=0.5)
    return scheme, scheme.start(jnp.eye(3), velocity=jnp.zeros(3)), lambda s: s.q[2, 2], 1.0, float(np.exp(-1.0))


PROBLEMS = (langevin_oscillator, shaken_spring, turning_body)
