"""Primitives as machine code: what NumPy gives one by one, at every width the same bits. `tests/host` compares NumPy and XLA, on the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.host import repeated
from bismut.repetition import Bonds, Pair, each, pairs
from tests.engines.functions import evaluate

RANDOM = np.random.default_rng(5)
N = 19  # not a multiple of any width

vectors = lambda *shape: RANDOM.normal(size=(N, *shape))
LARGE = 1500  # entries of an array that does not fit into registers


def _spring(a, b, own):
    r = b - a
    u = lambda r: 0.5 * (jnp.sqrt(r @ r) - 1) ** 2
    f = jax.grad(u)(r)
    return Pair(u(r), f, -f, r @ r + (0.0 if isinstance(own, tuple) else own))


def _while(x):
    """Newton's iteration for √x, each trajectory as long as it needs."""
    return jax.lax.while_loop(
        lambda c: jnp.abs(c[0] ** 2 - x[0] ** 2) > 1e-12, lambda c: (0.5 * (c[0] + x[0] ** 2 / c[0]), c[1] + 1), (1 + x[0] ** 2, 0)
    )


def _written_over(x):
    """What was there is asked for after it was replaced, by a formula and by itself; and two arrays change places in a loop."""
    put = lambda y, i: jax.lax.dynamic_update_slice(y, 2 * y[:1] + i, (i,))
    a = put(jnp.sin(x), 3)
    before, b = a[::-1] * 0.5, put(a, 700)
    c, d = put(b, 5), put(b, 6)
    _, e, f = jax.lax.while_loop(lambda now: now[0] < 3, lambda now: (now[0] + 1, now[2], put(now[1], now[0])), (0, c, d))
    return before + b, c[:8], e, f


BONDS = Bonds([0, 1, 2, 5], [3, 2, 4, 1])

CASES = {
    "polynomial": (lambda x: (x**3 - 2 * x + 1) / (1 + x * x), vectors(4)),
    "matrices": (lambda a, b: a @ b - b.T @ jnp.linalg.inv(jnp.eye(3) + 0.1 * a @ a.T), vectors(3, 3), vectors(3, 3)),
    "functions": (lambda x: jnp.stack([jnp.sin(x), jnp.exp(x), jnp.log1p(x * x), jnp.arctan2(x, 1 + x * x), jnp.tanh(x)]), vectors(3)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.cos(x[:3]) * x[3:]) + jnp.prod(x)), vectors(6)),
    "hessian": (jax.hessian(lambda x: jnp.sin(x @ x) * x[0]), vectors(4)),
    "whole numbers": (lambda x: ((x * 100).astype(jnp.int32) // 7, (x * 100).astype(jnp.int32) % 7, jnp.sign(x), jnp.round(x)), vectors(3)),
    "bits": (lambda x: (jax.lax.bitcast_convert_type(x, jnp.int64) >> 52) & 7, vectors(3)),
    "extremes": (lambda x: (jnp.max(x), jnp.min(x, 0), jnp.argmax(x, 1), jnp.clip(x, -0.5, 0.5), jnp.cumsum(x, 1)), vectors(3, 4)),
    "nan": (lambda x: (jnp.maximum(x, jnp.log(x)), jnp.minimum(jnp.log(x), 0.3), jnp.clip(jnp.log(x), -1, 1), jnp.isfinite(jnp.log(x))), vectors(4)),
    "while": (_while, vectors(1)),
    "diagonal": (lambda x: jnp.diagonal(x) * jnp.diag(x.T), np.arange(27.0).reshape(3, 3, 3)),
    "fori": (lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y.at[i].add(x[4 - i] * i), x), vectors(5)),
    "scan": (
        lambda x: jax.lax.scan(lambda c, row: (c @ row, c + row), jnp.ones(3), x.reshape(4, 3, 3)[:, :, 0][..., None] * jnp.ones(3)),
        vectors(36),
    ),
    "reverse scan": (lambda x: jax.lax.scan(lambda c, row: (0.5 * c + row, c * row), 0.0, x, reverse=True), vectors(7)),
    "branch": (lambda x: jax.lax.cond(x[0] > 0.3, jnp.sin, lambda y: y[::-1] ** 2, x), vectors(3)),
    "switch": (lambda x: jax.lax.switch((3 * x[0]).astype(int), [lambda y: y, lambda y: 2 * y, lambda y: -y], x), vectors(3)),
    "index": (lambda x: x[(10 * x[0]).astype(int) % 5], vectors(5)),
    "indices": (lambda x: (x[np.array([2, 0, 1])], x.at[np.array([0, 2])].add(3.0), x.at[1].set(0.5), x[::-1]), vectors(4)),
    "ring": (lambda x: jax.lax.dynamic_update_slice(x, x[:1] * 2, ((10 * x[0]).astype(int) % 5,)), vectors(5)),
    "large arrays": (lambda x: jnp.cumsum(jnp.sin(x) * x[::-1] + jnp.roll(x, 7))[5:] / (1 + jnp.sum(x**2)), vectors(LARGE)),
    "large matrices": (
        lambda x: (x.reshape(300, 5) @ x.reshape(5, 300)[:, :4], x.reshape(300, 5).T.sum(1), x.reshape(500, 3).max(0)),
        vectors(LARGE),
    ),
    "large indices": (lambda x: jnp.concatenate([x[np.arange(LARGE - 1, -1, -3)], jnp.pad(x, (3, 5))]), vectors(LARGE)),
    "large ring": (lambda x: jax.lax.dynamic_update_slice(x, x[:1] * 2, ((10 * x[0]).astype(int) % 5,)), vectors(LARGE)),
    "written over": (_written_over, vectors(LARGE)),
    "each": (lambda x: each(lambda a: jnp.cross(a, jnp.sin(a)), x), vectors(5, 3)),
    "each, summed": (jax.grad(lambda x: jnp.sum(each(lambda a: jnp.sin(a @ a), x))), vectors(5, 3)),
    "each with a loop": (lambda x: each(_while, x), vectors(5, 1)),
    "pairs": (lambda x: tuple(pairs(_spring, x)), vectors(6, 3)),
    "pairs of their own": (lambda x: tuple(pairs(_spring, x, own=jnp.arange(15.0))), vectors(6, 3)),
    "force of pairs": (jax.grad(lambda x: pairs(lambda a, b, own: Pair(total=jnp.exp(-(a - b) @ (a - b))), x).total), vectors(7, 3)),
    "bonds": (lambda x: tuple(pairs(_spring, x, bonds=BONDS)), vectors(6, 3)),
    "many pairs": (jax.grad(lambda x: pairs(lambda a, b, own: Pair(total=jnp.exp(-(a - b) @ (a - b))), x).total), vectors(40, 3)),
}


def one_by_one(function, *arrays):
    """function(*arrays) for every entry of their first axis, in NumPy."""
    each_ = repeated(function)
    return jax.tree.map(lambda *parts: np.stack(parts), *(each_(*row) for row in zip(*arrays, strict=True)))


@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_what_numpy_gives(name):
    function, *arrays = CASES[name]
    expected = jax.tree.leaves(one_by_one(function, *arrays))
    found = jax.tree.leaves(evaluate(function, *arrays))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
        assert a.dtype == b.dtype


@pytest.mark.parametrize("name", ["functions", "while", "branch", "large arrays", "pairs"])
def test_bits_depend_neither_on_the_width_nor_on_the_place(name):
    function, *arrays = CASES[name]
    eight, *others = (jax.tree.leaves(evaluate(function, *arrays, width=w)) for w in (8, 4, 16))
    moved = jax.tree.leaves(evaluate(function, *(x[5:] for x in arrays)))
    for other in others:
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(eight, other, strict=True))
    assert all(np.array_equal(a[5:], b, equal_nan=True) for a, b in zip(eight, moved, strict=True))


def test_what_is_shared_is_an_argument():
    x, scale, matrix = vectors(3), np.array(0.7), RANDOM.normal(size=(3, 3))
    function = lambda x, scale, matrix: jnp.sin(scale) * (matrix @ matrix @ x) + jax.lax.fori_loop(0, 3, lambda i, s: s * scale, 1.0)
    expected = one_by_one(lambda x: function(x, scale, matrix), x)
    np.testing.assert_allclose(evaluate(function, x, numbers=(scale, matrix)), expected, rtol=1e-13, atol=1e-13)


def test_single_precision():
    x = vectors(3, 3).astype(np.float32)
    function = lambda x: jnp.sin(x) @ x.T / (1 + jnp.abs(x))
    np.testing.assert_allclose(evaluate(function, x, width=16), one_by_one(function, x), rtol=3e-6, atol=1e-6)
