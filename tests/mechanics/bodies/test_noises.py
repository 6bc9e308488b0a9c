"""Noises of bodies: how many, how strong, and what they leave alone."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.programs.evaluation import evaluate
from tests.mechanics.bodies.configurations import moved, scattered
from tests.mechanics.bodies.gas import kicks

COUNT = 4


def slopes(noise: bm.Noise, q):
    """dγ as covectors: forces (m, K, 3) and body torques (m, K, 3)."""
    space = (bm.Euclidean(3) * bm.SO3()) ** COUNT
    return evaluate(jax.jacfwd(lambda e: noise(*space.nudge(tuple(map(jnp.asarray, q)), e))), space.zero())


def test_translation_noise_is_white_force():
    s = np.array([0.3, 0.5, 0.2])
    force, torque = slopes(bm.translation_noise(s), scattered(COUNT))
    covariance = np.einsum("nki,nlj->kilj", force, force).reshape(3 * COUNT, 3 * COUNT)
    np.testing.assert_allclose(covariance, np.diag(np.tile(s**2, COUNT)), atol=1e-15)
    np.testing.assert_array_equal(torque, 0)
    assert np.abs(force.sum(1)).max() > 0.1  # it does push the whole


def test_orientation_noise_has_its_covariance_in_every_orientation():
    """diag(s₂²+s₃², s₁²+s₃², s₁²+s₂²) for each body, nothing between bodies."""
    s = np.random.default_rng(0).uniform(0.1, 1, (COUNT, 3))
    force, torque = slopes(bm.orientation_noise(s), scattered(COUNT, 5))
    covariance = np.einsum("nki,nlj->kilj", torque, torque).reshape(3 * COUNT, 3 * COUNT)
    wanted = np.sum(s**2, 1, keepdims=True) - s**2
    np.testing.assert_allclose(covariance, np.diag(wanted.ravel()), atol=1e-14)
    np.testing.assert_array_equal(force, 0)


def test_pair_noise_pushes_with_opposite_forces_and_balanced_torques():
    """For each process Σ F = 0 and Σ x × F + R τ = 0, though w itself knows nothing of symmetry."""
    x, R = scattered(COUNT, 3)
    force, torque = slopes(bm.pair_noise(lambda a, b: jnp.sin(b.x) @ b.R * a.data + b.R[0] ** 2, np.arange(1.0, COUNT + 1)), (x, R))
    assert force.shape == (3 * COUNT * (COUNT - 1) // 2, COUNT, 3)
    assert np.abs(force).max() > 0.1
    assert np.abs(torque).max() > 0.1
    np.testing.assert_allclose(force.sum(1), 0, atol=1e-13)
    np.testing.assert_allclose(np.sum(np.cross(x, force) + np.einsum("kij,nkj->nki", R, torque), 1), 0, atol=1e-12)


def test_a_rigid_motion_of_everything_changes_no_pair_noise():
    noise, q = bm.pair_noise(kicks, np.arange(1.0, COUNT + 1)), scattered(COUNT, 3)
    np.testing.assert_allclose(noise(*map(jnp.asarray, moved(q))), noise(*map(jnp.asarray, q)), atol=1e-14)


def test_each_pair_has_its_own_processes_in_the_order_of_pair_indices():
    q = scattered(COUNT, 3)
    values = np.asarray(bm.pair_noise(lambda a, b: jnp.stack([a.data, b.data, b.x @ b.x]), np.arange(COUNT))(*map(jnp.asarray, q)))
    i, j = bm.pair_indices(COUNT)
    assert (i < j).all()
    np.testing.assert_allclose(values.reshape(-1, 3), np.stack([i, j, np.sum((q[0][j] - q[0][i]) ** 2, -1)], 1), rtol=1e-13)


def test_noises_act_side_by_side():
    parts = [bm.translation_noise(0.1), 2.0 * bm.orientation_noise(0.2), bm.pair_noise(lambda a, b: b.x @ b.x)]
    x, R = map(jnp.asarray, scattered(COUNT))
    own = lambda x, R: jnp.stack([x[0, 1], R[1, 0, 0]])
    np.testing.assert_allclose((sum(parts) + own)(x, R), np.concatenate([part(x, R) for part in (*parts, own)]))


def test_functions_may_name_parameters_and_time():
    """Changing them changes energy and noise of one and the same system."""
    system = bm.rigid_bodies(
        mass=np.ones(COUNT),
        inertia=np.ones((COUNT, 3)),
        potential=bm.soft_spheres() + bm.pair_potential(lambda a, b, t, parameters: parameters * t * (b.x - a.x) @ (b.x - a.x)),
        noise=bm.pair_noise(lambda a, b, parameters: parameters * b.x @ b.x) + bm.translation_noise(1.0),
        parameters=2.0,
    )
    q = tuple(map(jnp.asarray, scattered(COUNT)))
    more = system.with_parameters(3.0)
    gain = lambda one: one.potential(q, 1.5) - one.potential(q, 0.0)
    np.testing.assert_allclose(gain(more) / gain(system), 1.5)
    pairs = COUNT * (COUNT - 1) // 2
    np.testing.assert_allclose(more.noise(q)[:pairs], 1.5 * system.noise(q)[:pairs])
