"""The covectors at both ends of a displacement in closed form equal those of automatic differentiation of q1 ⊖ q0."""

from bismut.spaces import Space

from .catalogue import assert_close, compiled, directions, largest, law, on, paired, points, velocities


def derived(space, q0, q1, x, a):
    return Space.ends(space, q0, q1, x, a)


@law
def test_closed_form_equals_automatic_differentiation(space, seed):
    (q0,), (v,), (a,) = points(space, seed), velocities(space, seed), directions(space, seed)
    q1 = on(space).move(q0, v)
    assert_close(on(space).ends(q0, q1, v, a), compiled(derived, space)(q0, q1, v, a), condition=(1 + largest(v)) ** 2 * (1 + largest(q0)))


@law
def test_moving_both_ends_together_does_nothing(space, seed):
    """q1 ⊖ q0 does not change under q → gq, so ⟨a0, Ad_{q0⁻¹} η⟩ + ⟨a1, Ad_{q1⁻¹} η⟩ = 0."""
    (q0,), (v,), (a, eta) = points(space, seed), velocities(space, seed), directions(space, seed, count=2)
    verb = on(space)
    q1 = verb.move(q0, v)
    a0, a1 = verb.ends(q0, q1, v, a)
    first, last = paired(a0, verb.Ad(verb.inverse(q0), eta)), paired(a1, verb.Ad(verb.inverse(q1), eta))
    assert_close(first, -last, condition=(1 + largest(v)) ** 2 * (1 + largest(q0)) ** 2)
