"""An increment is a function of (seed, trajectory, step, channel) and of nothing else: not of batch, order or the program around it.

Bit for bit over batches and orders; to a few units in the last place where the program around it differs, since a compiler may fuse a
multiplication and an addition in one program and not in another.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.noise import Wiener, counter

from .paths import CHANNELS, SEED, compiled

H = 0.01
MANY = np.arange(1000)
STEPS = np.arange(3, 11)
PATH = Wiener(SEED)


def same_to_the_last_places(a, b):
    return np.allclose(a, b, rtol=8 * np.finfo(float).eps, atol=8 * np.finfo(float).eps * H**0.5)


@pytest.fixture(scope="module")
def together():
    """All trajectories and steps in one program."""
    return compiled(PATH, MANY, STEPS, H)


def test_a_trajectory_alone(together):
    alone = jax.jit(lambda trajectory, step: PATH.increment(trajectory, step, CHANNELS, H, jnp.float64))
    for n in (0, 1, 499, 999):
        for k, step in enumerate(STEPS):
            assert same_to_the_last_places(alone(counter(n), counter(int(step))), together[k, n])


@pytest.mark.parametrize("size", [1, 333])
def test_a_smaller_batch(together, size):
    assert np.array_equal(compiled(PATH, MANY[100 : 100 + size], STEPS, H), together[:, 100 : 100 + size])


def test_another_order(together):
    order, later = np.random.default_rng(1).permutation(len(MANY)), STEPS[::-1]
    assert np.array_equal(compiled(PATH, MANY[order], later, H), together[::-1, order])


def test_over_vmap(together):
    one = lambda low, high, step: PATH.increment((low, high), step, CHANNELS, H, jnp.float64)
    got = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))(*counter(MANY), counter(int(STEPS[2])))
    assert same_to_the_last_places(got, together[2])


@pytest.mark.parametrize("substeps", [1, 3])
def test_outside_of_jit(substeps):
    path = Wiener(SEED, substeps=substeps)
    alone = path.increment(counter(MANY), counter(int(STEPS[0])), CHANNELS, H, jnp.float64)
    assert same_to_the_last_places(alone, compiled(path, MANY, STEPS, H)[0])


def test_inside_a_larger_program(together):
    """The compiler fuses what consumes an increment with what makes it, which must not change a bit of it."""

    @jax.jit
    def walk(path, trajectories, steps):
        def step(x, k):
            dW = path.increment(trajectories, k, CHANNELS, H, jnp.float64)
            return jnp.sin(x) + x * dW + dW, dW

        return jax.lax.scan(step, jnp.ones((len(MANY), CHANNELS)), steps)[1]

    assert np.array_equal(walk(PATH, counter(MANY), counter(STEPS)), together)


def test_many_steps_at_once(together):
    """`increments` of a path are its increments, one after the other."""
    assert np.array_equal(PATH.increments(MANY, int(STEPS[-1]) + 1, CHANNELS, H)[STEPS[0] :], together)


def test_the_number_of_channels_does_not_matter(together):
    assert np.array_equal(compiled(PATH, MANY, STEPS, H, channels=5)[..., :CHANNELS], together)


def test_the_default_precision_is_double(together):
    got = jax.jit(lambda trajectory, step: PATH.increment(trajectory, step, CHANNELS, H))(counter(MANY), counter(int(STEPS[0])))
    assert got.dtype == jnp.float64
    assert same_to_the_last_places(got, together[0])


def test_the_step_size_is_a_factor(together):
    """ΔW = √h ζ."""
    zeta = compiled(PATH, MANY, STEPS, 1.0)
    assert np.array_equal(np.sqrt(H) * zeta, together)
