"""In single precision the numbers are single, and they are the double ones to the resolution of a 24-bit uniform number."""

import jax.numpy as jnp
import numpy as np

from bismut.noise import Wiener

from .paths import SEED, compiled, increments, sample


def test_single_precision_is_close_to_double():
    """Near u = 1 the radius √(−2 ln u) is known to √(2·2⁻²⁵) = 2.4e−4, elsewhere the error is that of the last bit."""
    single, double = sample(dtype=jnp.float32), sample()
    assert single.dtype == np.float32
    error = np.abs(single - double)
    assert np.max(error) < 3e-4
    assert np.mean(error) < 1e-6


def test_single_precision_does_not_depend_on_the_batch():
    path, many, steps = Wiener(SEED), np.arange(1000), np.arange(8)
    together = compiled(path, many, steps, 0.01, dtype=jnp.float32)
    assert together.dtype == np.float32
    assert np.array_equal(compiled(path, many[37:38], steps, 0.01, dtype=jnp.float32), together[:, 37:38])


def test_single_precision_refines():
    """A sum of n numbers of size 1 is right to n ε."""
    coarse = increments(Wiener(SEED, substeps=4), [0, 1, 2], [5, 6], 0.1, dtype=jnp.float32)
    fine = increments(Wiener(SEED), [0, 1, 2], np.arange(20, 28), 0.025, dtype=jnp.float32)
    assert coarse.dtype == np.float32
    assert np.max(np.abs(coarse - np.sum(fine.reshape(2, 4, 3, -1), axis=1))) < 8 * np.finfo(np.float32).eps
