"""Own forces and torques instead of derivatives: the same trajectories where they are right, an error where they are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError, ShapeError
from bismut.flows import VariationalFlow
from bismut.mechanics import inventory
from bismut.programs.evaluation import evaluate
from tests.mechanics.bodies.configurations import scattered

COUNT = 3
MOMENT, FIELD = jnp.array([0.2, -0.4, 1.0]), jnp.array([0.5, 1.0, -0.3])
SPRING, WEIGHT = 0.7, 0.2


def energy(x, R, parameters):
    """Dipoles in a field that grows along z, on springs to the origin that are not linear."""
    m = R @ MOMENT
    return -jnp.sum((m @ FIELD) * (1 + parameters * x[:, 2])) + 0.5 * SPRING * jnp.sum(x**2) + WEIGHT * jnp.sum(x[:, 0] ** 4)


def forces(x, R, parameters):
    """F and τ = m × B, by hand, in the axes of space."""
    m = R @ MOMENT
    force = jnp.outer(parameters * (m @ FIELD), jnp.array([0.0, 0.0, 1.0])) - SPRING * x - 4 * WEIGHT * x**3 * jnp.array([1.0, 0.0, 0.0])
    return force, jnp.cross(m, FIELD) * (1 + parameters * x[:, 2:])


def in_the_body(x, R, parameters):
    force, torque = forces(x, R, parameters)
    return force, jnp.einsum("kji,kj->ki", R, torque)


def system(parameters=0.4, potential=energy, **own) -> bm.System:
    return bm.rigid_bodies(
        mass=[1.0, 2.0, 1.5],
        inertia=[[1.0, 2.0, 2.5], [1.0, 1.0, 1.5], [1.0, 1.0, 1.0]],
        potential=potential,
        noise=bm.orientation_noise(0.1),
        parameters=parameters,
        **own,
    )


def steps(one: bm.System, make) -> bm.State:
    """The state after five noisy steps."""
    scheme, (x, R) = make(one), scattered(COUNT)
    start = scheme.start((x, R), velocity=(0.3 * x, R[:, 0]))
    dW = 0.2 * jnp.asarray(np.random.default_rng(4).normal(size=(5, one.channels)))
    return evaluate(
        lambda state: jax.lax.scan(lambda now, dw: (VariationalFlow(scheme).advance(now, 0.05, dw, 0.0)[0], None), state, dW)[0], start.state
    )


def slopes(one: bm.System):
    q = tuple(map(jnp.asarray, scattered(COUNT)))
    return evaluate(jax.grad(lambda e: one.potential(one.space.nudge(q, e))), one.space.zero())


@pytest.mark.parametrize(
    ("make", "own"),
    [(bm.VariationalEuler, {"forces": in_the_body, "torque_frame": "body"}), (bm.Verlet, {"forces": forces}), (bm.Midpoint, {"forces": forces})],
)
def test_own_forces_give_the_trajectory_of_the_potential(make, own):
    """Midpoint differentiates them once more in Newton's method."""
    found, given = steps(system(), make), steps(system(**own), make)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(given), strict=True):
        np.testing.assert_allclose(b, a, atol=1e-12)


def test_own_forces_are_what_is_used():
    """Also where they are not those of the potential and the check is switched off."""
    one = system(forces=lambda x, R: (-x, jnp.cos(x)), check_forces=False, torque_frame="body")
    x = scattered(COUNT)[0]
    np.testing.assert_allclose(slopes(one), (x, -np.cos(x)), rtol=1e-13)


def test_derivatives_by_parameters_are_still_found():
    """dU/dparameters comes from the potential, not from the forces."""
    q = tuple(map(jnp.asarray, scattered(COUNT)))
    slope = lambda one: evaluate(jax.grad(lambda value: one.with_parameters(value).potential(q)), 0.4)
    np.testing.assert_allclose(slope(system(forces=forces)), slope(system()), rtol=1e-13)


def test_own_forces_of_one_term_add_to_the_others():
    other = bm.soft_spheres(0.8)
    found, given = (slopes(system(potential=one + other)) for one in (bm.Potential(energy), bm.with_forces(energy, forces)))
    np.testing.assert_allclose(given, found, atol=1e-12)


def wrong_force(x, R, parameters):
    force, torque = forces(x, R, parameters)
    return force.at[1, 2].add(0.01), torque


@pytest.mark.parametrize(
    ("own", "error", "words"),
    [
        ({"forces": wrong_force}, DomainError, "the force on body 1 should be"),
        ({"forces": lambda x, R, parameters: tuple(-f for f in forces(x, R, parameters))}, DomainError, "wrong sign"),
        ({"forces": in_the_body}, DomainError, 'say torque_frame="body"'),
        ({"forces": forces, "torque_frame": "body"}, DomainError, 'say torque_frame="space"'),
        ({"forces": forces, "torque_frame": "world"}, DomainError, 'must be "space" or "body"'),
        ({"forces": lambda x, R: -x}, ShapeError, r"must return \(force, torque\)"),
        ({"forces": forces, "potential": None}, ShapeError, "forces need a potential too"),
    ],
)
def test_forces_that_do_not_belong_to_the_potential_are_refused(own, error, words):
    with pytest.raises(error, match=words):
        system(**own)


def test_what_is_known_of_bodies_is_known_with_own_forces():
    """Sites, box and names; a box given around pair terms that have their forces already is refused, as neither would see it."""
    pairs = bm.sites([[0.1, 0, 0], [-0.1, 0, 0]], charges=[0.5, -0.5], cutoff=1.5, names=("H", "F"))
    bodies = {"mass": [1.0, 1.0], "inertia": np.ones((2, 3))}
    still = lambda x, R: (0 * x, 0 * x)
    plain = bm.rigid_bodies(potential=pairs, box=4.0, **bodies)
    given = bm.rigid_bodies(potential=pairs, box=4.0, forces=still, check_forces=False, **bodies)
    assert str(inventory(given).data()) == str(inventory(plain).data())
    assert inventory(given).molecules[0].names == ("H", "F")
    before = bm.rigid_bodies(potential=2.0 * bm.with_forces(pairs.inside((4.0, 4.0, 4.0)), still), box=4.0, **bodies)
    assert inventory(before).box == bm.Box((4.0, 4.0, 4.0))
    with pytest.raises(DomainError, match="holds pair terms that a box cannot be given to"):
        bm.rigid_bodies(potential=bm.with_forces(pairs, still), box=4.0, **bodies)
