"""Rotations in single precision: RᵀR = 1 to round-off however long a run is, and it was 3e−5 after 10⁵ steps when products were left as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

STEPS = 100_000
EPS = float(np.finfo(np.float32).eps)
SYSTEMS = {
    "SO2": (bm.SO2(), 1.3, 0.7),
    "SO3": (bm.SO3(), [1.0, 2.0, 2.5], [0.4, 0.9, 0.3]),
    "SE3": (bm.SE3(), [1.0, 2.0, 2.5, 1.0, 1.0, 1.0], [0.4, 0.9, 0.3, 0.1, 0.0, -0.1]),
    "bodies": ((bm.Euclidean(3) * bm.SO3()) ** 2, (1.0, np.array([1.0, 2.0, 2.5])), None),
}


def rotations(q) -> list[np.ndarray]:
    return [np.asarray(leaf, float) for leaf in jax.tree.leaves(q) if leaf.ndim > 2 and leaf.shape[-1] == leaf.shape[-2]]


@pytest.mark.parametrize("name", SYSTEMS)
def test_rotations_do_not_drift(name):
    space, mass, velocity = SYSTEMS[name]
    scheme = bm.Verlet(bm.mechanical(space, mass=mass, precision="float32"))
    velocity = jnp.asarray(velocity) if velocity is not None else (jnp.zeros((2, 3)), jnp.array([[0.4, 0.9, 0.3], [0.2, -0.5, 0.8]]))
    start = scheme.start(space.origin(np.float32), velocity=velocity)
    result = bm.simulate(scheme, start, step=0.1, steps=STEPS, trajectories=2, seed=1, progress=False)
    for R in rotations(result.final.q):
        assert np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(R.shape[-1])).max() < 8 * EPS


@pytest.mark.parametrize("space", [bm.SO3(), bm.SO2(), bm.SE3()], ids=str)
def test_in_double_precision_a_move_is_the_product(space):
    """Bit for bit: nothing is corrected there."""
    q, v = space.random(jax.random.key(1)), space.unflatten(jnp.linspace(0.2, 0.5, space.dim))
    moved, product = space.move(q, v), space.multiply(q, space.tau(v))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(product), strict=True))


@pytest.mark.parametrize("space", [bm.SO3(), bm.SO2()], ids=str)
def test_the_correction_leaves_derivatives_as_they_are(space):
    """Of a move by the velocity, in single precision and in double."""
    v = np.linspace(0.2, 0.5, space.dim)
    slope = lambda dtype: jax.jacfwd(lambda x: space.move(space.origin(dtype), space.unflatten(x)))(jnp.asarray(v, dtype))
    np.testing.assert_allclose(slope(np.float32), slope(np.float64), atol=8 * EPS)
