"""Small things: repeated arrays, running sums in logarithms, reductions by a function, bits, three diagonals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bismut.engines.decompositions.table import decomposition
from bismut.programs import as_function


@decomposition("tile")
def tile(x, *, reps):
    shape = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
    wide = jax.lax.broadcast_in_dim(x, shape, [2 * k + 1 for k in range(x.ndim)])
    return wide.reshape([r * n for r, n in zip(reps, x.shape, strict=True)])


@decomposition("cumlogsumexp")
def cumlogsumexp(x, *, axis, reverse):
    def add(total, row):
        total = jnp.logaddexp(total, row)
        return total, total

    rows = jnp.moveaxis(x, axis, 0)
    return jnp.moveaxis(jax.lax.scan(add, jnp.full_like(rows[0], -jnp.inf), rows, reverse=reverse)[1], 0, axis)


@decomposition("reduce")
def reduce(*inputs, jaxpr, dimensions, **_):
    """Terms are combined in their order."""
    half = len(inputs) // 2
    operands, start = inputs[:half], inputs[half:]
    combine = as_function(jaxpr)
    rest = [k for k in range(operands[0].ndim) if k not in dimensions]
    rows = [x.transpose([*dimensions, *rest]).reshape(-1, *(x.shape[k] for k in rest)) for x in operands]
    shape = rows[0].shape[1:]
    of_one = jax.vmap(combine) if shape else combine
    flat = [x.reshape(len(x), -1) if shape else x for x in rows]
    begin = [jnp.broadcast_to(s, x.shape[1:]) for s, x in zip(start, flat, strict=True)]
    total, _ = jax.lax.scan(lambda now, row: (of_one(*now, *row), None), begin, flat)
    return [x.reshape(shape) for x in total]


@decomposition("population_count")
def population_count(x):
    """Counted in pairs of bits, then in groups of four and of eight; a product adds up the bytes."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    number = lambda byte: np.frombuffer(bytes([byte]) * unsigned.itemsize, unsigned)[0]
    bits = jax.lax.bitcast_convert_type(x, unsigned)
    bits = bits - ((bits >> 1) & number(0x55))
    bits = (bits & number(0x33)) + ((bits >> 2) & number(0x33))
    bits = (bits + (bits >> 4)) & number(0x0F)
    return ((bits * number(0x01)) >> (8 * (unsigned.itemsize - 1))).astype(x.dtype)


@decomposition("clz")
def clz(x):
    """The bits that are not set above the highest one that is."""
    unsigned = jax.lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))
    shift = 1
    while shift < 8 * x.dtype.itemsize:
        unsigned, shift = unsigned | (unsigned >> shift), 2 * shift
    return population_count(~unsigned).astype(x.dtype)


@decomposition("nextafter")
def nextafter(x, y):
    """One step along the bits, which lie in the order of sizes."""
    whole = np.dtype(f"i{x.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(x, whole)
    away = (y > x) == (x > 0)
    smallest = jnp.where(y > 0, jnp.asarray(1, whole), jnp.asarray(np.iinfo(whole).min + 1, whole))
    moved = jnp.where(x == 0, smallest, jnp.where(away, bits + 1, bits - 1))
    moved = jax.lax.bitcast_convert_type(moved, x.dtype)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.full_like(x, jnp.nan), jnp.where(x == y, y, moved))


@decomposition("tridiagonal_solve")
def tridiagonal_solve(below, diagonal, above, b, **_):
    """Elimination without exchanges (Thomas), as XLA does it, for the last two axes."""

    def one(below, diagonal, above, b):
        def forward(now, row):
            c, d = now
            low, middle, high, right = row
            pivot = middle - low * c
            return (high / pivot, (right - low * d) / pivot), now

        def back(x, row):
            c, d = row
            return d - c * x, x

        first = above[0] / diagonal[0], b[0] / diagonal[0]
        (_, last), rows = jax.lax.scan(forward, first, (below[1:], diagonal[1:], above[1:], b[1:]))
        top, others = jax.lax.scan(back, last, rows, reverse=True)
        return jnp.concatenate([top[None], others])

    for _ in range(b.ndim - 2):
        one = jax.vmap(one)
    return one(below, diagonal, above, b)
