"""Ad is a representation, τ(Ad_g x) = g τ(x) g⁻¹, and its derivative is a Lie bracket: antisymmetric, Jacobi."""

import jax

from .catalogue import assert_close, batch_of, carried, directions, largest, law, on, over, plus, points, times, velocities


def derivative_of_ad(space, g, dg, y):
    return jax.jvp(lambda h: space.Ad(h, y), (g,), (dg,))[1]


@law
def test_ad_of_a_product_is_the_composition(space, seed):
    (g, h), (x,) = points(space, seed, 2), directions(space, seed)
    verb = on(space)
    assert_close(verb.Ad(verb.multiply(g, h), x), verb.Ad(g, verb.Ad(h, x)), condition=1 + largest(g, h))


@law
def test_tau_carries_ad_to_conjugation(space, seed):
    (g,), (x,) = points(space, seed), velocities(space, seed)
    verb = on(space)
    conjugate = verb.multiply(verb.multiply(g, verb.tau(x)), verb.inverse(g))
    assert_close(verb.tau(verb.Ad(g, x)), conjugate, condition=1 + largest(g, x))


@law
def test_the_bracket_is_antisymmetric(space, seed):
    x, y = directions(space, seed, count=2)
    assert_close(on(space).bracket(x, y), times(-1, on(space).bracket(y, x)))


@law
def test_the_bracket_satisfies_the_jacobi_identity(space, seed):
    x, y, z = directions(space, seed, count=3)
    b = on(space).bracket
    assert_close(plus(plus(b(x, b(y, z)), b(y, b(z, x))), b(z, b(x, y))), batch_of(space.zero()))


@law
def test_the_bracket_is_the_derivative_of_ad(space, seed):
    x, y = directions(space, seed, count=2)
    one, zero = batch_of(space.origin()), batch_of(space.zero())
    derivative = over(derivative_of_ad, space.using("cayley"))(one, carried(space, x, one, zero), y)
    assert_close(on(space).bracket(x, y), derivative)


@law
def test_ad_is_an_automorphism_of_the_bracket(space, seed):
    (g,), (x, y) = points(space, seed), directions(space, seed, count=2)
    verb = on(space)
    assert_close(verb.bracket(verb.Ad(g, x), verb.Ad(g, y)), verb.Ad(g, verb.bracket(x, y)), condition=(1 + largest(g)) ** 2)
