"""The covectors at both ends of a displacement x = q1 ⊖ q0 are its derivative:  ⟨a, δx⟩ = ⟨a0, δq0⟩ + ⟨a1, δq1⟩."""

import jax
import pytest

from bismut.spaces import SE3, SO3, Euclidean, Space, Torus, scale

from .catalogue import assert_close, compiled, directions, largest, law, on, paired, points, velocities


def change_of_displacement(space, q0, q1, e0, e1):
    """δx when both ends move with velocities e0 and e1, by automatic differentiation."""
    return jax.jvp(lambda s: space.subtract(space.move(q1, scale(s, e1)), space.move(q0, scale(s, e0))), (0.0,), (1.0,))[1]


def default_ends(space, q0, q1, x, a):
    return Space.ends(space, q0, q1, x, a)


@law
def test_ends_are_the_derivative_of_subtract(space, seed):
    (q0,), (v,), (a, e0, e1) = points(space, seed), velocities(space, seed), directions(space, seed, count=3)
    q1 = on(space).move(q0, v)
    a0, a1 = on(space).ends(q0, q1, v, a)
    change = compiled(change_of_displacement, space)(q0, q1, e0, e1)
    assert_close(paired(a, change), paired(a0, e0) + paired(a1, e1), condition=(1 + largest(v)) ** 2 * (1 + largest(q0)))


@pytest.mark.parametrize("space", [Torus(2), SO3(), SE3(), (Euclidean(3) * SO3("exp")) ** 2], ids=str)
def test_closed_form_equals_the_default_of_a_space_that_has_none(space):
    """What `Space.ends` derives from move and subtract alone is what a group says in closed form."""
    (q0,), (v,), (a,) = points(space, 1), velocities(space, 1), directions(space, 1)
    q1 = on(space).move(q0, v)
    closed, derived = on(space).ends(q0, q1, v, a), compiled(default_ends, space)(q0, q1, v, a)
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
