"""Multiplication is associative, the origin is its identity, and g g⁻¹ = g⁻¹ g = 1."""

from .catalogue import assert_close, batch_of, largest, law, on, points


@law
def test_associative(space, seed):
    g, h, k = points(space, seed, 3)
    product = on(space).multiply
    assert_close(product(product(g, h), k), product(g, product(h, k)))


@law
def test_identity(space, seed):
    (g,), one = points(space, seed), batch_of(space.origin())
    assert_close(on(space).multiply(g, one), g)
    assert_close(on(space).multiply(one, g), g)


@law
def test_inverse(space, seed):
    (g,), one = points(space, seed), batch_of(space.origin())
    product, inverse = on(space).multiply, on(space).inverse
    assert_close(product(g, inverse(g)), one, condition=1 + largest(g))
    assert_close(product(inverse(g), g), one, condition=1 + largest(g))
    assert_close(inverse(inverse(g)), g)
