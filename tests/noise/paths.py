"""Wiener increments for the tests of this folder: many at once, in NumPy, or compiled once per shape."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from bismut.noise import Stream, Wiener, counter
from bismut.programs.evaluation import evaluator

SEED = 20_240_229
TRAJECTORIES, STEPS, CHANNELS = 1000, 500, 4  # 2e6 numbers


@partial(jax.jit, static_argnames=("channels", "dtype", "stream"))
def _increments(path, trajectories, steps, h, *, channels, dtype, stream):
    return jax.lax.map(lambda k: path.increment(trajectories, k, channels, h, dtype, stream), steps)


def indices(trajectories, steps):
    return counter(np.asarray(trajectories, np.uint64)), counter(np.asarray(steps, np.uint64))


def compiled(path, trajectories, steps, h=1.0, *, channels=CHANNELS, dtype=jnp.float64, stream=Stream.increment):
    """ΔW[step, trajectory, channel] for arrays of indices, by XLA."""
    return np.asarray(_increments(path, *indices(trajectories, steps), h, channels=channels, dtype=dtype, stream=stream))


def increments(path, trajectories, steps, h=1.0, *, channels=CHANNELS, dtype=jnp.float64, stream=Stream.increment):
    """The same for a few, where a law does not ask who computes."""
    return np.asarray(_in_numpy(channels, dtype, stream)(path, *indices(trajectories, steps), h))


@cache
def _in_numpy(channels, dtype, stream):
    one = lambda path, trajectories, step, h: path.increment(trajectories, step, channels, h, dtype, stream)
    return evaluator(jax.vmap(one, (None, None, 0, None)))


@cache
def sample(seed=SEED, dtype=jnp.float64, stream=Stream.increment):
    """Standard normals ζ[step, trajectory, channel]."""
    return compiled(Wiener(seed), np.arange(TRAJECTORIES), np.arange(STEPS), dtype=dtype, stream=stream)


def correlation(x, y):
    """z-score of the mean of xy for independent standard normals x and y."""
    return np.mean(x * y) * np.sqrt(x.size)


def correlation_of_squares(x, y):
    """z-score of the mean of (x² − 1)(y² − 1), whose standard deviation is 2."""
    return np.mean((x**2 - 1) * (y**2 - 1)) / 2 * np.sqrt(x.size)
