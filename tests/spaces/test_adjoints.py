"""Starred maps are adjoints:  ⟨A* μ, y⟩ = ⟨μ, A y⟩  for A = Ad_g, ad_x and dτ⁻¹_x."""

from .catalogue import assert_close, directions, largest, law, on, paired, points, velocities


@law
def test_ad_star_of_a_point(space, seed):
    (g,), (y, mu) = points(space, seed), directions(space, seed, count=2)
    assert_close(paired(on(space).Ad_star(g, mu), y), paired(mu, on(space).Ad(g, y)), condition=1 + largest(g))


@law
def test_ad_star_of_a_velocity(space, seed):
    (x,), (y, mu) = velocities(space, seed), directions(space, seed, count=2)
    assert_close(paired(on(space).ad_star(x, mu), y), paired(mu, on(space).bracket(x, y)), condition=1 + largest(x))


@law
def test_adjoint_of_dtau_inv(space, seed):
    (x,), (y, mu) = velocities(space, seed), directions(space, seed, count=2)
    assert_close(paired(on(space).dtau_inv_adjoint(x, mu), y), paired(mu, on(space).dtau_inv(x, y)), condition=(1 + largest(x)) ** 2)
