"""Windows that move over an array: pooling and convolution.

    out[i] = ⊕_k x[s i + d k − p] ,      out[i] = Σ_k x[s i + d k − p] w[k]

One slice of the padded array for each place k of the window.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bismut.programs.jaxprs import as_function
from bismut.programs.operation import EACH, EVERYWHERE, OutOfReach, decomposition

LARGEST = 512  # places of a window


def _slices(x: Array, filler, window, strides, padding, base_dilation=None, window_dilation=None) -> Iterator[Array]:
    """For each place of the window, what is seen there from everywhere."""
    if int(np.prod(window)) > LARGEST:
        raise OutOfReach(f"windows of {int(np.prod(window))} entries, more than {LARGEST}")
    ones = (1,) * x.ndim
    base, dilation = base_dilation or ones, window_dilation or ones
    wide = jax.lax.pad(x, filler, [(low, high, step - 1) for (low, high), step in zip(padding, base, strict=True)])
    counts = [(n - ((w - 1) * d + 1)) // s + 1 for n, w, d, s in zip(wide.shape, window, dilation, strides, strict=True)]
    for place in np.ndindex(*window):
        begin = [k * d for k, d in zip(place, dilation, strict=True)]
        end = [b + (n - 1) * s + 1 if n else b for b, n, s in zip(begin, counts, strides, strict=True)]
        yield jax.lax.slice(wide, begin, end, strides)


def _geometry(p):
    return p["window_dimensions"], p["window_strides"], p["padding"], p.get("base_dilation"), p.get("window_dilation")


def _least(dtype, sign: int):
    if np.dtype(dtype).kind == "f":
        return jnp.asarray(sign * np.inf, dtype)
    return jnp.asarray(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min, dtype)


@decomposition("reduce_window_sum", affine_in=EVERYWHERE)
def reduce_window_sum(x, **p):
    return sum(_slices(x, jnp.zeros((), x.dtype), *_geometry(p)))


@decomposition("reduce_window_max")
def reduce_window_max(x, **p):
    first, *rest = _slices(x, _least(x.dtype, -1), *_geometry(p))
    for part in rest:
        first = jnp.maximum(first, part)
    return first


@decomposition("reduce_window_min")
def reduce_window_min(x, **p):
    first, *rest = _slices(x, _least(x.dtype, 1), *_geometry(p))
    for part in rest:
        first = jnp.minimum(first, part)
    return first


@decomposition("reduce_window")
def reduce_window(*inputs, jaxpr, consts, **p):
    """By a function of two numbers."""
    half = len(inputs) // 2
    combine = as_function(jaxpr, consts)
    columns = [list(_slices(x, start, *_geometry(p))) for x, start in zip(inputs[:half], inputs[half:], strict=True)]
    shape = columns[0][0].shape
    total = [jnp.broadcast_to(start, shape).ravel() for start in inputs[half:]]
    for parts in zip(*columns, strict=True):
        total = jax.vmap(combine)(*total, *(part.ravel() for part in parts))
    return [x.reshape(shape) for x in total]


def _chosen(x, p):
    """In each window the number of the place that is chosen: the first of those that are equal."""
    smaller = p["select_prim"].name in ("le", "lt")
    parts = list(_slices(x, _least(x.dtype, 1 if smaller else -1), *_geometry(p)))
    best, place = parts[0], jnp.zeros(parts[0].shape, jnp.int32)
    for k, part in enumerate(parts[1:], 1):
        better = part < best if smaller else part > best
        best, place = jnp.where(better, part, best), jnp.where(better, jnp.int32(k), place)
    return place


@decomposition("select_and_gather_add", jumps=True)
def select_and_gather_add(tangents, x, **p):
    place = _chosen(x, p)
    out = jnp.zeros(place.shape, tangents.dtype)
    for k, part in enumerate(_slices(tangents, jnp.zeros((), tangents.dtype), *_geometry(p))):
        out = jnp.where(place == k, part, out)
    return out


@decomposition("select_and_scatter_add", jumps=True)
def select_and_scatter_add(source, x, **p):
    """The transpose: what comes goes back to where it was chosen."""
    place, zero = _chosen(x, p), jnp.zeros((), source.dtype)
    window, strides, padding, *_ = _geometry(p)
    wide = [n + low + high for n, (low, high) in zip(x.shape, padding, strict=True)]
    total = jnp.zeros(wide, source.dtype)
    for k, begin in enumerate(np.ndindex(*window)):
        mine = jnp.where(place == k, source, zero)
        reach = [b + (n - 1) * s + 1 for b, n, s in zip(begin, mine.shape, strides, strict=True)]
        total = total + jax.lax.pad(mine, zero, [(b, n - r, s - 1) for b, n, r, s in zip(begin, wide, reach, strides, strict=True)])
    return jax.lax.slice(total, [low for low, _ in padding], [low + n for n, (low, _) in zip(x.shape, padding, strict=True)])


@decomposition("conv_general_dilated", affine_in=EACH)
def convolution(x, kernel, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count, **_):
    d = dimension_numbers
    x, kernel = x.transpose(d.lhs_spec), kernel.transpose(d.rhs_spec)  # (batch, channel, …), (out, channel, …)
    groups = max(feature_group_count, batch_group_count)
    axis = 1 if batch_group_count == 1 else 0
    geometry = (window_strides, padding, lhs_dilation, rhs_dilation)
    parts = [jnp.asarray(_convolved(a, b, *geometry)) for a, b in zip(jnp.split(x, groups, axis), jnp.split(kernel, groups, 0), strict=True)]
    return jnp.concatenate(parts, 1).transpose(np.argsort(d.out_spec))


def _convolved(x, kernel, strides, padding, base, dilation):
    window = (1, 1, *kernel.shape[2:])
    ones = (1, 1)
    slices = _slices(x, jnp.zeros((), x.dtype), window, ones + tuple(strides), ((0, 0), (0, 0), *padding), ones + tuple(base), ones + tuple(dilation))
    weights = kernel.reshape(*kernel.shape[:2], -1)
    return sum(jnp.moveaxis(jnp.tensordot(weights[:, :, k], part, (1, 1)), 0, 1) for k, part in enumerate(slices))
