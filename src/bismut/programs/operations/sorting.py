"""Sorting, and the largest few.

Up to 24 numbers neighbours are exchanged; beyond, Batcher's network is a loop over its stages.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.codegen.field import Array, lanes
from bismut.programs.codegen.frame import Scope
from bismut.programs.operation import Operation, decomposition, operation
from bismut.programs.operations.logic import ordered

WRITTEN_OUT = 24  # numbers up to which neighbours are exchanged


@operation("sort")
class _Sort(Operation):
    """Few numbers: neighbours exchanged until all are in order, equal ones keep their places; many: a network."""

    loops = True

    def may_jump(self, equation):
        return len(equation.invars) > 1  # numbers in order move together, what is sorted with them jumps

    def decomposes(self, equation):
        return equation.invars[0].aval.shape[equation.params["dimension"]] > WRITTEN_OUT

    def decompose(self, *operands, dimension, num_keys, is_stable=True):
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
            first = _comes_first([key(x) for x in now[:num_keys]], [key(x) for x in met[:num_keys]], now[-1], met[-1], n)
            keeps = first == (((place & j) == 0) == ((place & k) == 0))
            return [jnp.where(keeps, x, y) for x, y in zip(now, met, strict=True)]

        out = jax.lax.fori_loop(0, len(stages), stage, carried)
        return [jnp.moveaxis(x[..., :n], -1, dimension) for x in out[:-1]]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        axis, keys = equation.params["dimension"], equation.params["num_keys"]
        arrays = [np.moveaxis(lanes(scope, x), axis, -1).copy() for x in inputs]
        n = arrays[0].shape[-1]
        for g in np.ndindex(*arrays[0].shape[:-1]):
            for last in range(n - 1, 0, -1):
                for i in range(last):
                    swap = _before(scope, [x[(*g, i + 1)] for x in arrays[:keys]], [x[(*g, i)] for x in arrays[:keys]])
                    for x in arrays:
                        a, b = x[(*g, i)], x[(*g, i + 1)]
                        x[(*g, i)], x[(*g, i + 1)] = scope.lane("select_n", [swap, a, b]), scope.lane("select_n", [swap, b, a])
        return [np.moveaxis(x, -1, axis) for x in arrays]


def _before(scope: Scope, a: list, b: list) -> Any:
    """Whether the keys a come before the keys b; NaN comes last, and −0 equals 0."""
    is_nan = lambda x: scope.lane("ne", [x, x]) if np.dtype(x.dtype).kind == "f" else np.bool_(False)
    nan_a, nan_b = is_nan(a[0]), is_nan(b[0])
    first = scope.lane("or", [scope.lane("lt", [a[0], b[0]]), scope.lane("and", [nan_b, scope.lane("not", [nan_a])])])
    if len(a) == 1:
        return first
    same = scope.lane("or", [scope.lane("eq", [a[0], b[0]]), scope.lane("and", [nan_a, nan_b])])
    return scope.lane("or", [first, scope.lane("and", [same, _before(scope, a[1:], b[1:])])])


def key(x):
    """What a sort compares: −0 and 0 are equal, and all NaN, which come last."""
    if x.dtype.kind != "f":
        return x
    x = jnp.where(x == 0, jnp.zeros_like(x), x)
    return ordered(jnp.where(jnp.isnan(x), jnp.full_like(x, jnp.nan), x))


def _comes_first(keys, others, place, other, n):
    """Whether (keys, place) comes before (others, other); no two places are equal."""
    before = place < other
    for a, b in reversed(list(zip(keys, others, strict=True))):
        before = (a < b) | ((a == b) & before)
    return jnp.where((place >= n) | (other >= n), place < other, before)


@decomposition("top_k", jumps=True)
def _top_k(x, *, k, axis=-1):
    axis = axis % x.ndim
    place = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    _, values, places = jax.lax.sort([~ordered(x), x, place], dimension=axis, num_keys=1)
    return [jax.lax.slice_in_dim(out, 0, k, axis=axis) for out in (values, places)]
