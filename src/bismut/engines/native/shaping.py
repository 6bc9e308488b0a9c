"""Primitives that move entries and compute nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.engines.native.field import Array, Field, Formula, Stored, allocate, array_level, entry, fill, stored
from bismut.engines.native.frame import Scope
from bismut.engines.native.lane import SAME, array_of, constants
from bismut.engines.native.places import plus, times
from bismut.engines.native.walk import Refused, rule


@rule("reshape")
def _(scope, equation, inputs):
    x, shape = inputs[0], equation.params["new_sizes"]
    return [reshaped(scope, x, shape)]


@rule("squeeze", "expand_dims")
def _(scope, equation, inputs):
    return [reshaped(scope, inputs[0], equation.outvars[0].aval.shape)]


def reshaped(scope: Scope, x: Array, shape) -> Array:
    if not isinstance(x, Field):
        return x.reshape(shape)
    if [n for n in x.shape if n > 1] == [n for n in shape if n > 1]:
        return _renamed(x, shape)
    whole = stored(scope, x)
    if not whole.whole:
        copy = allocate(scope, whole.shape, whole.dtype, min(whole.level, SAME), rows=True)
        fill(scope, copy, whole)
        whole = copy
    return Stored(whole.base, shape, whole.dtype, whole.level, owner=whole.owner, start=whole.start, plain=whole.plain)


def _renamed(x: Field, shape) -> Field:
    """Axes of length one dropped or added."""
    kept, places = [k for k, n in enumerate(x.shape) if n > 1], [k for k, n in enumerate(shape) if n > 1]
    if isinstance(x, Stored):
        strides = [0] * len(shape)
        for k, place in zip(kept, places, strict=True):
            strides[place] = x.strides[k]
        return x.view(shape, strides)

    def one(scope, index):
        old: list = [0] * len(x.shape)
        for k, place in zip(kept, places, strict=True):
            old[k] = index[place]
        return x.at(scope, old)

    return Formula(shape, x.dtype, x.level, one)


@rule("broadcast_in_dim")
def _(scope, equation, inputs):
    x, shape, axes = inputs[0], equation.params["shape"], equation.params["broadcast_dimensions"]
    if isinstance(x, Field):
        x = stored(scope, x)
        strides = [0] * len(shape)
        for k, axis in enumerate(axes):
            strides[axis] = x.strides[k] if x.shape[k] > 1 else 0
        return [x.view(shape, strides)]
    held = [1] * len(shape)
    for k, axis in enumerate(axes):
        held[axis] = x.shape[k]
    if int(np.prod(shape)) <= scope.small or int(np.prod(shape)) == x.size:
        return [np.broadcast_to(x.reshape(held), shape)]
    pick = lambda index: [index[axis] if x.shape[k] > 1 else 0 for k, axis in enumerate(axes)]
    return [Formula(shape, equation.outvars[0].aval.dtype, array_level(x), lambda inner, index: entry(inner, x, pick(index)))]


@rule("transpose")
def _(scope, equation, inputs):
    x, order = inputs[0], equation.params["permutation"]
    if not isinstance(x, Field):
        return [x.transpose(order)]
    shape = [x.shape[k] for k in order]
    if isinstance(x, Stored):
        return [x.view(shape, [x.strides[k] for k in order])]
    back = np.argsort(order)
    return [Formula(shape, x.dtype, x.level, lambda inner, index: x.at(inner, [index[k] for k in back]))]


@rule("slice")
def _(scope, equation, inputs):
    x, p = inputs[0], equation.params
    begin, end, step = p["start_indices"], p["limit_indices"], p["strides"] or [1] * len(inputs[0].shape)
    if not isinstance(x, Field):
        return [x[tuple(map(slice, begin, end, step))]]
    return [cut(scope, x, begin, equation.outvars[0].aval.shape, step)]


def cut(scope: Scope, x: Field, begin, shape, step) -> Any:
    """A part of an array, from places that may be known only while the program runs."""
    builder, begin, step = scope.builder, [int(b) if isinstance(b, np.integer) else b for b in begin], [int(s) for s in step]
    if isinstance(x, Stored):
        start = x.start
        for b, stride in zip(begin, x.strides, strict=True):
            start = plus(builder, start, times(builder, b, stride))
        return x.view(shape, [stride * s for stride, s in zip(x.strides, step, strict=True)], start)

    def one(inner, index):
        place = [plus(inner.builder, b, times(inner.builder, i, s)) for i, b, s in zip(index, begin, step, strict=True)]
        return x.at(inner, place)

    return Formula(shape, x.dtype, x.level, one)


@rule("rev")
def _(scope, equation, inputs):
    x, axes = inputs[0], equation.params["dimensions"]
    if not isinstance(x, Field):
        return [np.flip(x, axes)]
    x = stored(scope, x)
    start, strides = x.start, list(x.strides)
    for axis in axes:
        start, strides[axis] = plus(scope.builder, start, (x.shape[axis] - 1) * strides[axis]), -strides[axis]
    return [x.view(x.shape, strides, start)]


@rule("concatenate")
def _(scope, equation, inputs):
    axis, aval = equation.params["dimension"], equation.outvars[0].aval
    if aval.size <= scope.small and not any(isinstance(x, Field) for x in inputs):
        return [np.concatenate(inputs, axis)]
    whole = allocate(scope, aval.shape, aval.dtype, min(SAME, *map(array_level, inputs)))
    begin = 0
    for x in inputs:
        fill(scope, cut(scope, whole, [begin if k == axis else 0 for k in range(len(aval.shape))], x.shape, [1] * len(aval.shape)), x)
        begin += x.shape[axis]
    return [whole]


@rule("stack")
def _(scope, equation, inputs):
    axis, aval = equation.params.get("axis", equation.params.get("dimension", 0)), equation.outvars[0].aval
    if aval.size <= scope.small and not any(isinstance(x, Field) for x in inputs):
        return [np.stack(inputs, axis)]
    whole = allocate(scope, aval.shape, aval.dtype, min(SAME, *map(array_level, inputs)))
    for i, x in enumerate(inputs):
        shape = [n for k, n in enumerate(aval.shape) if k != axis]
        strides = [s for k, s in enumerate(whole.strides) if k != axis]
        fill(scope, whole.view(shape, strides, plus(scope.builder, whole.start, i * whole.strides[axis])), x)
    return [whole]


@rule("unstack", "split")
def _(scope, equation, inputs):
    x, axis = inputs[0], equation.params.get("axis", 0)
    sizes, outputs, begin = equation.params.get("sizes"), [], 0
    for v, size in zip(equation.outvars, sizes or [1] * len(equation.outvars), strict=True):
        where = tuple(slice(begin, begin + size) if k == axis else slice(None) for k in range(len(x.shape)))
        shape = [size if k == axis else n for k, n in enumerate(x.shape)]
        begins = [begin if k == axis else 0 for k in range(len(x.shape))]
        part = cut(scope, x, begins, shape, [1] * len(shape)) if isinstance(x, Field) else x[where]
        outputs.append(reshaped(scope, part, v.aval.shape))
        begin += size
    return outputs


@rule("pad")
def _(scope, equation, inputs):
    x, filler = inputs[0], inputs[1]
    config, aval = equation.params["padding_config"], equation.outvars[0].aval
    if not isinstance(x, Field) and aval.size <= scope.small:
        out = array_of([filler[()]] * aval.size, aval.shape)
        for index in np.ndindex(*x.shape):
            place = tuple(low + i * (1 + gap) for i, (low, _, gap) in zip(index, config, strict=True))
            if all(0 <= i < n for i, n in zip(place, aval.shape, strict=True)):
                out[place] = x[index]
        return [out]
    if any(low < 0 or high < 0 for low, high, _ in config):
        raise Refused("a large array is cut by padding")
    whole = allocate(scope, aval.shape, aval.dtype, min(SAME, array_level(x)))
    fill(scope, whole, Formula(aval.shape, aval.dtype, SAME, lambda inner, index: entry(inner, filler, ())))
    fill(scope, cut(scope, whole, [low for low, _, _ in config], x.shape, [1 + gap for _, _, gap in config]), x)
    return [whole]


@rule("iota")
def _(scope, equation, inputs):
    p = equation.params
    shape, axis, dtype = p["shape"], p["dimension"], p["dtype"]
    if int(np.prod(shape)) <= scope.small:
        return [constants(np.broadcast_to(np.arange(shape[axis], dtype=dtype).reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape))]
    return [Formula(shape, dtype, SAME, lambda inner, index: inner.counted(index[axis], dtype))]
