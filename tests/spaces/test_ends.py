"""The covectors at both ends of a displacement x = q1 ⊖ q0 are its derivative:  ⟨a, δx⟩ = ⟨a0, δq0⟩ + ⟨a1, δq1⟩."""

import pytest

from bismut.spaces import SE3, SO3, Euclidean, Space

from .catalogue import assert_close, carried, directions, largest, law, on, over, paired, plus, points, times, velocities
from .test_retraction import derivative_of_tau


def default_ends(space, q0, q1, x, a):
    return Space.ends(space, q0, q1, x, a)


@law
def test_ends_are_the_derivative_of_subtract(space, seed):
    """When the ends move with velocities e0 and e1, τ(x) = q0⁻¹ q1 changes by τ(x) e1 − e0 τ(x): that determines δx."""
    (q0,), (x,), (a, e0, e1) = points(space, seed), velocities(space, seed), directions(space, seed, count=3)
    verb, condition = on(space), (1 + largest(x)) ** 2
    g = verb.tau(x)
    change = verb.dtau_inv(x, plus(verb.Ad(g, e1), times(-1, e0)))
    assert_close(over(derivative_of_tau, space)(x, change), carried(space, times(-1, e0), g, e1), condition)
    a0, a1 = verb.ends(q0, verb.move(q0, x), x, a)
    assert_close(paired(a, change), paired(a0, e0) + paired(a1, e1), condition)


@pytest.mark.parametrize("space", [SO3(), SE3(), Euclidean(3) * SO3()], ids=str)
def test_closed_form_equals_the_default_of_a_space_that_has_none(space):
    """What `Space.ends` derives from move and subtract alone is what a group says in closed form."""
    (q0,), (v,), (a,) = points(space, 1), velocities(space, 1), directions(space, 1)
    q1 = on(space).move(q0, v)
    closed, derived = on(space).ends(q0, q1, v, a), over(default_ends, space)(q0, q1, v, a)
    assert_close(closed, derived, condition=(1 + largest(v)) ** 2 * (1 + largest(q0)))


@law
def test_moving_both_ends_together_does_nothing(space, seed):
    """q1 ⊖ q0 does not change under q → gq, so ⟨a0, Ad_{q0⁻¹} η⟩ + ⟨a1, Ad_{q1⁻¹} η⟩ = 0."""
    (q0,), (v,), (a, eta) = points(space, seed), velocities(space, seed), directions(space, seed, count=2)
    verb = on(space)
    q1 = verb.move(q0, v)
    a0, a1 = verb.ends(q0, q1, v, a)
    first, last = paired(a0, verb.Ad(verb.inverse(q0), eta)), paired(a1, verb.Ad(verb.inverse(q1), eta))
    assert_close(first, -last, condition=(1 + largest(v)) ** 2 * (1 + largest(q0)) ** 2)
