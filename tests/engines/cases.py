"""Operations on arrays, at special values: a name, and a function of x (4,), m (3, 3), k (5,) integers, b (4,) truth values."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

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
    "small matrices": lambda x, m, k, b: (lax.linalg.lu(m * 4)[1:], lax.linalg.triangular_solve(jnp.eye(3) * 2, m, lower=True)),
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
    "switch": lambda x, m, k, b: lax.switch(k[0], [lambda v: v, lambda v: -v, lambda v: v[::-1]], x),
    "scatter: sums and products": lambda x, m, k, b: (k.at[k].add(3), k.at[k].multiply(3), k.at[k].subtract(k)),
    "shared": lambda x, m, k, b: (jnp.diagonal(m), jax.checkpoint(jnp.abs)(x), lax.stop_gradient(x), lax.optimization_barrier(x), jax.nn.relu(x)),
}
GIVEN = (
    np.array([[np.nan, -0.0, 0.0, 3.0], [1.5, np.inf, -2.0, -3.0], [0.0, -0.0, -np.inf, 2.0], [-1.0, np.nan, 7.0, 1.0]]),
    np.array([np.diag([2.0, 3.0, 4.0]), np.arange(9.0).reshape(3, 3) + 7 * np.eye(3), np.ones((3, 3)) + np.eye(3), 16 * np.eye(3)]),
    np.array([[0, 1, 2, 3, 4], [9, -1, 2**31 - 1, -(2**31), 3], [-1, 0, -7, 130, 255], [1, -9, 6, 0, 77]], np.int32),
    np.array([[True, False, True, False], [False] * 4, [True] * 4, [False, True, True, False]]),
)
