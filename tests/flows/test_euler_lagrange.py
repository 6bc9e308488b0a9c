"""The two-step form D₂S_d(q_{k−1}, q_k) + D₁S_d(q_k, q_{k+1}) = 0 and the one-step form in (q, p) give one path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.flows import discrete_symplectic_form, end_momenta, euler_lagrange
from tests.flows.catalogue import increments, once, path, scheme, system, traced
from tests.systems import random_state

STEP, STEPS = 0.05, 20


@pytest.mark.parametrize(("space", "name"), [("plane", "midpoint"), ("heavy_top", "euler left"), ("heavy_top", "verlet")])
def test_two_points_and_a_point_with_momentum_lead_to_one_path(space, name):
    """The two-step form recovers p from points h apart, which costs ε/h a step: 20 steps stay below 1e−12."""
    action, dW = scheme(space, name), increments(system(space), STEP, STEPS, size=1.0)
    states, solved = once(lambda z: path(traced(space, name), z, STEP, dW))(random_state(system(space), 6, 0.5))
    assert solved
    first, second = (jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], states.q) for k in (0, 1))
    points = once(lambda a, b: euler_lagrange(action, a, b, STEP, dW))(first, second)
    np.testing.assert_allclose(points, states.q, rtol=0, atol=1e-11)


def test_the_discrete_symplectic_form_is_the_mixed_derivative_of_the_action():
    """−D₁D₂S_d: how p0 answers to q1, and transposed with the other sign how p1 answers to q0. On ℝⁿ both frames are fixed."""
    action = scheme("plane", "midpoint")
    q0, q1, dW = jnp.array([0.3, -0.2]), jnp.array([0.35, -0.1]), increments(action.system, STEP)[0]
    form = discrete_symplectic_form(action, q0, q1, STEP, dW)
    other = np.asarray(once(jax.jacfwd(lambda q: end_momenta(action, q, q1, STEP, dW)[1]))(q0))
    np.testing.assert_allclose(form, -other.T, rtol=0, atol=1e-12 / STEP)
    assert abs(np.linalg.det(form)) > 1
