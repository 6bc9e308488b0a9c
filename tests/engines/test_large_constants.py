"""Constants beyond registers are memory that machine code reads, and long programs nest no deeper than Python can follow."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from tests.engines.functions import evaluate

RANDOM = np.random.default_rng(3)
MANY = 100_000
TABLE, PLACES = RANDOM.normal(size=MANY), RANDOM.permutation(MANY)


def test_a_large_constant_is_a_table_and_begins_at_once():
    """Σ c, entries at places known now and later, a product with a matrix, a mask: compiled in seconds, where folding took minutes."""
    matrix, mask = RANDOM.normal(size=(40, 1000)), RANDOM.uniform(size=3000) < 0.5

    def function(x):
        at = (jnp.abs(x[0]) * 1000).astype(int)
        entries = jnp.asarray(TABLE)[at], jnp.asarray(TABLE)[PLACES][7:10] * x
        return jnp.sum(TABLE) * x[0], *entries, (matrix @ jnp.tile(x, 334)[:1000])[:3], jnp.sum(mask) + x

    x = RANDOM.normal(size=(5, 3))
    began = time.process_time()
    out = evaluate(function, x)
    assert time.process_time() - began < 20
    for a, b in zip(out, zip(*(function(row) for row in x), strict=True), strict=True):
        np.testing.assert_allclose(a, np.stack(b), rtol=1e-10, atol=1e-11)


def test_a_long_chain_of_operations_on_a_large_array_is_written():
    """x ↦ ¾ x + ¼, 150 times, on 1500 entries: formulas within formulas would exhaust Python's stack."""

    def chain(x):
        for _ in range(150):
            x = 0.75 * x + 0.25
        return x

    x = RANDOM.normal(size=(3, 1500))
    np.testing.assert_allclose(evaluate(chain, x), chain(x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(37, 23), (12, 3), (4, 11), (30, 1, 6), (5, 40, 9)])
def test_products_with_a_matrix_add_their_terms_in_order(shape):
    """Sums are formed four side by side, and each as if it were alone: Σ_k in the order of k."""
    matrix = RANDOM.normal(size=shape)
    function = lambda x: (jnp.tensordot(jnp.asarray(matrix), x[: shape[-1]], 1), jnp.tensordot(x[: shape[0]], jnp.asarray(matrix), 1))
    x = RANDOM.normal(size=(5, 40))
    ahead, back = evaluate(function, x)
    for at, row in enumerate(x):
        one, other = np.zeros(shape[:-1]), np.zeros(shape[1:])
        for k in range(shape[-1]):
            one = one + matrix[..., k] * row[k]
        for k in range(shape[0]):
            other = other + row[k] * matrix[k]
        np.testing.assert_allclose(ahead[at], one, rtol=0, atol=64 * np.finfo(float).eps * np.abs(matrix).sum(-1).max())
        np.testing.assert_allclose(back[at], other, rtol=0, atol=64 * np.finfo(float).eps * np.abs(matrix).sum(0).max())
