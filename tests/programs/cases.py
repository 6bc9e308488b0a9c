"""What is compared: NumPy, machine code and XLA on the same inputs.

CASES      operations on arrays at special values: a function of x (4,), m (3, 3), k (5,) integers, b (4,) truth values
PROGRAMS   functions of arrays of their own, a row for each trajectory
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bismut.body_loops import Bonds, Pair, each, pairs

KINDS = [np.dtype(name) for name in ("float64", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")]
TYPES = [kind for kind in KINDS if kind != np.float32]
CASES = {
    "scatter: apply": lambda x, m, k, b: (x.at[1].apply(jnp.abs), x.at[jnp.array([0, 3])].apply(lambda v: 2 - v)),
    "gather: fill value, known places": lambda x, m, k, b: (
        x.at[jnp.array([9, 1])].get(mode="fill", fill_value=0),
        jnp.take(x, jnp.array([7, 0]), mode="fill"),
    ),
    "gather: fill value": lambda x, m, k, b: (x.at[k].get(mode="fill", fill_value=7), jnp.take(x, k, mode="fill"), x.at[k].get(mode="clip"), k[k]),
    "scatter: each operation and mode": lambda x, m, k, b: [
        getattr(x.at[k], word)(2.0, mode=mode) for word in ("set", "min", "max") for mode in ("drop", "clip")
    ],
    "short indices": lambda x, m, k, b: (jnp.arange(100.0)[k.astype(jnp.int8)], jnp.arange(400.0).at[k.astype(jnp.uint8)].set(-1.0)[:9]),
    "boolean products": lambda x, m, k, b: (b @ b, jnp.outer(b, b) @ b),
    "preferred type": lambda x, m, k, b: (
        lax.dot(k.astype(jnp.int8), k.astype(jnp.int8), preferred_element_type=jnp.int32),
        lax.dot(m.astype(jnp.float32), m.astype(jnp.float32), preferred_element_type=jnp.float64),
    ),
    "cholesky: not definite": lambda x, m, k, b: (jnp.linalg.cholesky(m - 3 * jnp.eye(3)), jnp.linalg.cholesky(jnp.ones((2, 2)) * (x[3] + 2))),
    "integer quotients": lambda x, m, k, b: [
        (f(k, j.astype(k.dtype)), f(k.astype(jnp.int8), j.astype(jnp.int8)))
        for f in (jnp.floor_divide, jnp.remainder)
        for j in (k[::-1], -jnp.ones_like(k), k * 0)
    ],
    "bounds": lambda x, m, k, b: (jnp.clip(x, x[::-1], 1.0), lax.clamp(x[::-1], x, x), jnp.clip(k, 0, k[::-1])),
    "conversions": lambda x, m, k, b: [(x * scale).astype(kind) for scale in (1, 1e3, 1e12, 1e300) for kind in TYPES],
    "bitwise reductions": lambda x, m, k, b: [
        lax.reduce(k, k.dtype.type(z), f, (0,)) for z, f in ((-1, lax.bitwise_and), (0, lax.bitwise_or), (0, lax.bitwise_xor))
    ],
    "order": lambda x, m, k, b: (jnp.sort(x), jnp.argsort(x), lax.sort((b, x, k[:4]), num_keys=2), jnp.argmax(x), jnp.argmin(x), lax.cummax(x)),
    "zeros": lambda x, m, k, b: [
        (f(x, z), f(z, -x)) for z in [jnp.where(x[3] > 1.5, 0.0, -0.0)] for f in (jnp.maximum, jnp.minimum, jnp.mod, jnp.copysign)
    ],
    "fmod": lambda x, m, k, b: [
        f(jnp.array([6.0, 0.6, 1e17, 5.5]) * (x[3] * 0 + 1), y) for f in (jnp.fmod, jnp.floor_divide, jnp.mod) for y in (3.0, 0.2, 0.1)
    ],
    "no rounds": lambda x, m, k, b: (
        lax.scan(lambda c, v: (c + v, c * v), x[0], x[:0]),
        jnp.cumsum(x[:0]),
        jnp.max(x[:0], initial=3.0),
        m[:0] @ x[:3],
    ),
    "16 bits": lambda x, m, k, b: (k.astype(jnp.int16) * k.astype(jnp.int16), (k.astype(jnp.uint16) >> 3) + jnp.uint16(9), x.astype(jnp.int16)),
    "bits of other widths": lambda x, m, k, b: (
        lax.bitcast_convert_type(x, jnp.uint32),
        lax.bitcast_convert_type(k[:4].reshape(2, 2).astype(jnp.uint32), jnp.float64),
        lax.bitcast_convert_type(k, jnp.uint8),
    ),
    "loops of many": lambda x, m, k, b: jax.vmap(lambda n, v: lax.while_loop(lambda c: c[0] < n % 7, lambda c: (c[0] + 1, c[1] * 2), (0, v)))(
        k[:4], x
    ),
    "branches of many": lambda x, m, k, b: jax.vmap(lambda p, v: lax.cond(p, lambda v: -v, lambda v: v * 2, v))(b, x),
    "small matrices": lambda x, m, k, b: (
        lax.linalg.lu(m * 4)[1:],
        lax.linalg.lu_pivots_to_permutation(lax.linalg.lu(m * 4)[1], 3),
        lax.linalg.triangular_solve(jnp.eye(3) * 2, m, lower=True),
    ),
    "shaping": lambda x, m, k, b: (
        lax.pad(m, 7.0, ((1, -1, 0), (0, 2, 1))),
        jnp.stack([x, x]),
        jnp.split(x, 2),
        m.T,
        jnp.flip(m, 0),
        lax.expand_dims(x, (1,)),
        jnp.unstack(m),
        m[:, ::2],
        lax.dynamic_slice(m, (k[0], k[1]), (2, 2)),
        lax.dynamic_update_slice(m, -m[:2, :1], (k[1], k[2])),
        lax.iota(jnp.int8, 5) * k[0].astype(jnp.int8),
        x.reshape(2, 2),
    ),
    "reductions": lambda x, m, k, b: (
        jnp.prod(k),
        jnp.sum(b),
        jnp.any(b),
        jnp.all(b),
        jnp.min(m, 0),
        jnp.max(x),
        lax.cummin(x, reverse=True),
        lax.cumprod(k),
        lax.cumsum(k),
    ),
    "reductions by a function": lambda x, m, k, b: [
        lax.reduce(k, np.int32(1), lambda a, b: lax.max(a, b) | 1, (0,)),
        lax.reduce_window(k, np.int32(1), lambda a, b: lax.max(a, b) | 1, (2,), (1,), "VALID"),
        lax.reduce_window(k, np.int32(2**31 - 1), lax.min, (3,), (2,), "SAME"),
        jax.jvp(lambda m: lax.reduce_window(m, -np.inf, lax.max, (2, 2), (1, 1), "VALID"), (m,), (2 * m,))[1],
    ],
    "switch": lambda x, m, k, b: lax.switch(k[0], [lambda v: v, lambda v: -v, lambda v: v[::-1]], x),
    "scatter: sums and products": lambda x, m, k, b: (k.at[k].add(3), k.at[k].multiply(3), k.at[k].subtract(k)),
    "shared": lambda x, m, k, b: (
        jnp.diagonal(m),
        jax.checkpoint(jnp.abs)(x),
        lax.stop_gradient(x),
        jnp.array(x, copy=True),
        lax.optimization_barrier(x),
        jax.nn.relu(x),
    ),
}
GIVEN = (
    np.array([[np.nan, -0.0, 0.0, 3.0], [1.5, np.inf, -2.0, -3.0], [0.0, -0.0, -np.inf, 2.0], [-1.0, np.nan, 7.0, 1.0]]),
    np.array([np.diag([2.0, 3.0, 4.0]), np.arange(9.0).reshape(3, 3) + 7 * np.eye(3), np.ones((3, 3)) + np.eye(3), 16 * np.eye(3)]),
    np.array([[0, 1, 2, 3, 4], [9, -1, 2**31 - 1, -(2**31), 3], [-1, 0, -7, 130, 255], [1, -9, 6, 0, 77]], np.int32),
    np.array([[True, False, True, False], [False] * 4, [True] * 4, [False, True, True, False]]),
)

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

PROGRAMS = {
    "polynomial": (lambda x: (x**3 - 2 * x + 1) / (1 + x * x), vectors(4)),
    "matrices": (lambda a, b: a @ b - b.T @ jnp.linalg.inv(jnp.eye(3) + 0.1 * a @ a.T), vectors(3, 3), vectors(3, 3)),
    "functions": (lambda x: jnp.stack([jnp.sin(x), jnp.exp(x), jnp.log1p(x * x), jnp.arctan2(x, 1 + x * x), jnp.tanh(x)]), vectors(3)),
    "running logarithm": (lax.cumlogsumexp, vectors(4)),
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
