"""Total order, sorting, and the largest few.

bits(x) as a signed integer, the lower ones flipped where the sign is set,    orders reals as  −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bismut.engines.decompositions.table import decomposition

WRITTEN_OUT = 24  # numbers up to which an engine sorts by exchanging neighbours


def ordered(x):
    """Integers in the total order of x."""
    if x.dtype.kind != "f":
        return x
    whole = np.dtype(f"i{x.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(x, whole)
    return bits ^ ((bits >> (8 * whole.itemsize - 1)) & np.iinfo(whole).max)


def key(x):
    """What a sort compares: −0 and 0 are equal, and all NaN, which come last."""
    if x.dtype.kind != "f":
        return x
    x = jnp.where(x == 0, jnp.zeros_like(x), x)
    return ordered(jnp.where(jnp.isnan(x), jnp.full_like(x, jnp.nan), x))


@decomposition("lt_to")
def _less(a, b):
    return ordered(a) < ordered(b)


@decomposition("le_to")
def _at_most(a, b):
    return ordered(a) <= ordered(b)


@decomposition("sort", where=lambda equation: equation.invars[0].aval.shape[equation.params["dimension"]] > WRITTEN_OUT, loops=True)
def sort(*operands, dimension, num_keys, is_stable=True):
    """Batcher's bitonic network as a loop over its stages.

        in stage (k, j) place i meets place i ⊕ j, and they are put in order, upwards where i ⊕ k > i

    Places come last in the comparison, so that equal keys stay in order. What fills up a power of two comes after everything.
    """
    arrays = [jnp.moveaxis(x, dimension, -1) for x in operands]
    n = arrays[0].shape[-1]
    size = 1 << (n - 1).bit_length()
    stages = [(k, k >> level) for k in (2 << e for e in range(size.bit_length() - 1)) for level in range(1, k.bit_length())]
    wide, narrow = (jnp.asarray(np.array(column, np.int32)) for column in zip(*stages, strict=True))
    fill = [(0, 0)] * (arrays[0].ndim - 1) + [(0, size - n)]
    place = jnp.arange(size, dtype=jnp.int32)
    carried = [*(jnp.pad(x, fill) for x in arrays), jnp.broadcast_to(place, (*arrays[0].shape[:-1], size))]

    def stage(s, now):
        k, j = wide[s], narrow[s]
        met = [x.at[..., place ^ j].get(mode="promise_in_bounds") for x in now]
        first = _before([key(x) for x in now[:num_keys]], [key(x) for x in met[:num_keys]], now[-1], met[-1], n)
        keeps = first == (((place & j) == 0) == ((place & k) == 0))
        return [jnp.where(keeps, x, y) for x, y in zip(now, met, strict=True)]

    out = jax.lax.fori_loop(0, len(stages), stage, carried)
    return [jnp.moveaxis(x[..., :n], -1, dimension) for x in out[:-1]]


def _before(keys, others, place, other, n):
    """Whether (keys, place) comes before (others, other); no two places are equal."""
    before = place < other
    for a, b in reversed(list(zip(keys, others, strict=True))):
        before = (a < b) | ((a == b) & before)
    return jnp.where((place >= n) | (other >= n), place < other, before)


@decomposition("top_k")
def top_k(x, *, k, axis=-1):
    axis = axis % x.ndim
    place = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    _, values, places = jax.lax.sort([~ordered(x), x, place], dimension=axis, num_keys=1)
    return [jax.lax.slice_in_dim(out, 0, k, axis=axis) for out in (values, places)]
