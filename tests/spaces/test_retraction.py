"""τ(−x) = τ(x)⁻¹, and dτ⁻¹ inverts the right-trivialised tangent (d/dε τ(x + εy)) τ(x)⁻¹ = dτ_x y."""

import jax
import pytest

from .catalogue import GROUP_VERBS, SPACES, assert_close, batch_of, carried, directions, largest, law, on, over, plus, times, velocities


def derivative_of_tau(space, x, y):
    return jax.jvp(space.tau, (x,), (y,))[1]


@pytest.mark.parametrize("space", [space for space in SPACES if space != space.using("cayley")], ids=str)
def test_the_group_does_not_depend_on_the_retraction(space):
    """Verbs of the group alone are the same program for every retraction."""
    g, x = space.origin(), space.zero()
    arguments = {"multiply": (g, g), "inverse": (g,), "Ad": (g, x), "Ad_star": (g, x), "bracket": (x, x), "ad_star": (x, x), "project": (g,)}
    arguments |= {"flatten": (x,), "unflatten": (space.flatten(x),), "random": (jax.random.key(1),)}
    assert set(arguments) == set(GROUP_VERBS)
    for verb, values in arguments.items():
        assert str(jax.make_jaxpr(getattr(space, verb))(*values)) == str(jax.make_jaxpr(getattr(space.using("cayley"), verb))(*values))


@law
def test_tau_begins_at_the_origin_with_unit_slope(space, seed):
    (y,), zero, one = directions(space, seed), batch_of(space.zero()), batch_of(space.origin())
    assert_close(on(space).tau(zero), one)
    assert_close(on(space).tau_inv(one), zero)
    assert_close(on(space).dtau_inv(zero, y), y)


@law
def test_the_opposite_velocity_leads_back(space, seed):
    (x,) = velocities(space, seed)
    assert_close(on(space).tau(times(-1, x)), on(space).inverse(on(space).tau(x)))


@law
def test_dtau_inv_inverts_the_derivative_of_tau(space, seed):
    """d/dε τ(x + εy) = η τ(x) for y = dτ⁻¹_x η."""
    (x,), (eta,) = velocities(space, seed), directions(space, seed)
    y = on(space).dtau_inv(x, eta)
    moved = over(derivative_of_tau, space)(x, y)
    assert_close(moved, carried(space, eta, on(space).tau(x), batch_of(space.zero())), condition=(1 + largest(x)) ** 2)


@law
def test_dtau_inv_at_the_opposite_velocity(space, seed):
    """dτ⁻¹_{−x} = dτ⁻¹_x Ad_τ(x)."""
    (x,), (y,) = velocities(space, seed), directions(space, seed)
    verb = on(space)
    assert_close(verb.dtau_inv(times(-1, x), y), verb.dtau_inv(x, verb.Ad(verb.tau(x), y)), condition=(1 + largest(x)) ** 2)


@law
def test_the_odd_part_of_dtau_inv(space, seed):
    """dτ⁻¹_x − dτ⁻¹_{−x} = −ad_x, for exp and cay alike."""
    (x,), (y,) = velocities(space, seed), directions(space, seed)
    verb = on(space)
    difference = plus(verb.dtau_inv(x, y), times(-1, verb.dtau_inv(times(-1, x), y)))
    assert_close(difference, times(-1, verb.bracket(x, y)), condition=(1 + largest(x)) ** 2)
