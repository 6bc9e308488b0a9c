"""A discrete Lagrangian written by hand gives the same flow as the action of the same formula."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError, ShapeError
from bismut.flows import end_momenta
from tests.flows.catalogue import Traced, increments, once, path, scheme, system
from tests.systems import random_state

STEP, STEPS = 0.1, 10


def midpoint_rule(q0, q1, h, dW):
    """h L((q0 + q1)/2, (q1 − q0)/h) + γ((q0 + q1)/2)·ΔW on ℝ², nothing of bismut in it."""
    q, v = (q0 + q1) / 2, (q1 - q0) / h
    kinetic = 0.5 * (1 + q[0] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2 + 0.3 * v[0] * v[1] * jnp.cos(q[1])
    L = kinetic + q[0] * v[1] - jnp.cos(q[0] + 2 * q[1])
    return h * L + jnp.sin(q[0] * q[1]) * dW[0] + (q[0] + 0.2 * q[1] ** 2) * dW[1]


def test_the_midpoint_rule_written_by_hand_is_midpoint():
    plane = system("plane")
    own, ours = bm.Discrete(bm.Euclidean(2), midpoint_rule, channels=2), scheme("plane", "midpoint")
    dW = increments(plane, STEP, STEPS, size=1.0)
    run = lambda action: once(lambda z: path(Traced(action.system, action), z, STEP, dW)[0])(random_state(plane, 6))
    a, b = run(own), run(ours)
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(a.p, b.p, rtol=0, atol=1e-12)


def test_its_momenta_are_the_derivatives_of_the_scalar():
    """p0 = −D₁S_d and p1 = D₂S_d, against central differences of the formula."""
    own = bm.Discrete(bm.Euclidean(2), midpoint_rule, channels=2)
    q0, q1, dW = np.array([0.3, -0.2]), np.array([0.35, -0.1]), np.array([0.2, -0.4])
    p0, p1 = end_momenta(own, jnp.asarray(q0), jnp.asarray(q1), jnp.asarray(STEP), jnp.asarray(dW))
    e = 1e-5
    slope = lambda f: np.array([(float(f(d)) - float(f(-d))) / (2 * e) for d in e * np.eye(2)])
    np.testing.assert_allclose(p0, -slope(lambda d: midpoint_rule(q0 + d, q1, STEP, dW)), rtol=1e-7)
    np.testing.assert_allclose(p1, slope(lambda d: midpoint_rule(q0, q1 + d, STEP, dW)), rtol=1e-7)


def test_without_a_system_there_is_no_energy_and_the_error_says_how_to_have_one():
    own = bm.Discrete(bm.Euclidean(2), midpoint_rule, channels=2)
    with pytest.raises(BismutError, match=r"no Lagrangian.*Discrete\(\.\.\., system=System"):
        own.system.energy(random_state(system("plane"), 6))


def test_a_discrete_lagrangian_that_is_not_a_number_is_refused():
    with pytest.raises(ShapeError, match=r"one number, got \(2,\)"):
        bm.Discrete(bm.Euclidean(2), lambda q0, q1, h, dW: q1 - q0)


def test_one_that_fails_on_shapes_is_refused():
    with pytest.raises(ShapeError, match=r"S_d\(q0, q1, h, dW\) fails on Euclidean\(2\) with 0 channels"):
        bm.Discrete(bm.Euclidean(2), midpoint_rule)


def test_one_that_lives_elsewhere_than_its_system_is_refused():
    with pytest.raises(ShapeError, match=r"lives on Euclidean\(3\), but its system lives on Euclidean\(2\)"):
        bm.Discrete(bm.Euclidean(3), midpoint_rule, system=system("plane"))


def test_a_force_has_no_place_in_it():
    forced = bm.mechanical(bm.Euclidean(2), force=lambda q, v: -v)
    with pytest.raises(BismutError, match="does not define where a force acts"):
        bm.Discrete(bm.Euclidean(2), lambda q0, q1, h, dW: (q1 - q0) @ (q1 - q0) / h, system=forced)


def test_channels_that_disagree_with_the_system_are_refused():
    """γ comes from the system, so the system knows how many Wiener processes there are."""
    with pytest.raises(ShapeError, match="channels = 2, but its system has 0"):
        bm.Discrete(bm.Euclidean(2), midpoint_rule, channels=2, system=bm.mechanical(bm.Euclidean(2)))
