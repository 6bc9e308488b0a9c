"""Ad is a representation, τ(Ad_g x) = g τ(x) g⁻¹, and its derivative is a Lie bracket: antisymmetric, Jacobi."""

import jax

from bismut.spaces import scale

from .catalogue import assert_close, compiled, largest, law, on, plus, points, times, velocities


def derivative_of_ad(space, x, y):
    return jax.jvp(lambda t: space.Ad(space.tau(scale(t, x)), y), (0.0,), (1.0,))[1]


@law
def test_ad_of_a_product_is_the_composition(space, seed, size):
    (g, h), (x,) = points(space, seed, 2), velocities(space, seed, size)
    verb = on(space)
    assert_close(verb.Ad(verb.multiply(g, h), x), verb.Ad(g, verb.Ad(h, x)), condition=1 + largest(g, h))


@law
def test_tau_carries_ad_to_conjugation(space, seed, size):
    (g,), (x,) = points(space, seed), velocities(space, seed, size)
    verb = on(space)
    conjugate = verb.multiply(verb.multiply(g, verb.tau(x)), verb.inverse(g))
    assert_close(verb.tau(verb.Ad(g, x)), conjugate, condition=1 + largest(g, x))


@law
def test_the_bracket_is_antisymmetric(space, seed, size):
    x, y = velocities(space, seed, size, count=2)
    assert_close(on(space).bracket(x, y), times(-1, on(space).bracket(y, x)))


@law
def test_the_bracket_satisfies_the_jacobi_identity(space, seed, size):
    x, y, z = velocities(space, seed, size, count=3)
    b = on(space).bracket
    assert_close(plus(plus(b(x, b(y, z)), b(y, b(z, x))), b(z, b(x, y))), space.zero(), condition=1 + size**3)


@law
def test_the_bracket_is_the_derivative_of_ad(space, seed, size):
    x, y = velocities(space, seed, size, count=2)
    assert_close(on(space).bracket(x, y), compiled(derivative_of_ad, space)(x, y))


@law
def test_ad_is_an_automorphism_of_the_bracket(space, seed, size):
    (g,), (x, y) = points(space, seed), velocities(space, seed, size, count=2)
    verb = on(space)
    assert_close(verb.bracket(verb.Ad(g, x), verb.Ad(g, y)), verb.Ad(g, verb.bracket(x, y)), condition=(1 + largest(g)) ** 2)
