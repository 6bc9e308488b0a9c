"""Random bits to the bit those of JAX, and numbers gathered from and scattered to any places, inside an array or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.programs.evaluation import evaluate

X = np.arange(24.0).reshape(4, 3, 2)
PLACES = np.array([3, 0, -1, 9])
TWICE = np.array([1, 1, 2])

MOVED = {
    "rows": lambda x: x[PLACES],
    "rows, clipped": lambda x: jnp.take(x, PLACES, 0, mode="clip"),
    "rows, or nothing": lambda x: jnp.take(x, PLACES, 0, mode="fill"),
    "whole numbers, or nothing": lambda x: jnp.take(x.astype(jnp.int32), PLACES, 0, mode="fill"),
    "columns": lambda x: x[:, TWICE],
    "pairs": lambda x: x[PLACES[:2], 1:, TWICE[:2]],
    "diagonal": jnp.diagonal,
    "of each row its own": lambda x: jax.vmap(lambda row, k: row[k])(x, jnp.asarray([0, 1, 2, 1])),
    "windows": lambda x: jax.vmap(lambda k: jax.lax.dynamic_slice(x, (k, 0, 0), (2, 3, 1)))(jnp.asarray([0, 1, 7])),
    "along": lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 1), 1),
    "set": lambda x: x.at[PLACES[:2], 1].set(7.0),
    "set one": lambda x: x.at[2, 1, 0].set(-1.0),
    "added twice": lambda x: x.at[:, TWICE].add(x[:, :3]),
    "added outside": lambda x: x.at[PLACES].add(1.0),
    "added to each its own": lambda x: jax.vmap(lambda row, k: row.at[k].add(1.0))(x, jnp.asarray([0, 1, 2, 1])),
    "slope": jax.grad(lambda x: jnp.sum(x[PLACES] ** 2 * x[1, TWICE[0]])),
    "unstacked": lambda x: sum(jnp.unstack(x, axis=1)),
}


@pytest.mark.parametrize("name", MOVED)
def test_numbers_go_where_jax_moves_them(name):
    found, expected = evaluate(MOVED[name], X), jax.jit(MOVED[name])(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14)


DRAWN = {
    "bits": jax.random.bits,
    "short bits": lambda key: jax.random.bits(key, (2, 3), jnp.uint8),
    "words": lambda key: jax.random.bits(key, (5,), jnp.uint32),
    "uniform": lambda key: jax.random.uniform(key, (3, 2)),
    "single": lambda key: jax.random.uniform(key, (3,), jnp.float32),
    "of many keys": lambda key: jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(key, (2, 3)).reshape(-1)),
    "one of many": lambda key: jax.random.bits(jax.random.split(key, 4)[2]),
    "folded": lambda key: jax.random.bits(jax.random.fold_in(key, 7)),
    "a key": lambda key: jax.random.key_data(jax.random.split(key)[1]),
    "wrapped": lambda key: jax.random.bits(jax.random.wrap_key_data(jax.random.key_data(key))),
    "seeded": lambda key: jax.random.bits(jax.random.key(2**40 + 3)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_bits_are_those_of_jax(name):
    key = jax.random.key(5)
    np.testing.assert_array_equal(evaluate(DRAWN[name], key), jax.jit(DRAWN[name])(key))


def test_keys_come_out_as_keys():
    keys = evaluate(lambda key: jax.random.split(key, 3), jax.random.key(5))
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(5), 3)))


def test_normals_are_those_of_jax_to_round_off():
    draw = lambda key: jax.random.normal(key, (1000,))
    np.testing.assert_allclose(evaluate(draw, jax.random.key(1)), jax.jit(draw)(jax.random.key(1)), rtol=1e-13)
