"""Primitives that move entries and compute nothing."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.engines.native.field import Array, Field, Formula, Stored, allocate, array_level, entry, fill, stored
from bismut.engines.native.frame import Scope, plus, times
from bismut.engines.native.lane import SAME, array_of, constant, constants, first_of
from bismut.engines.native.walk import SMALL, Refused, rule


@rule("reshape")
def _(scope, equation, inputs):
    x, shape = inputs[0], equation.params["new_sizes"]
    return [_reshaped(scope, x, shape)]


@rule("squeeze", "expand_dims")
def _(scope, equation, inputs):
    return [_reshaped(scope, inputs[0], equation.outvars[0].aval.shape)]


def _reshaped(scope: Scope, x: Array, shape) -> Array:
    if not isinstance(x, Field):
        return x.reshape(shape)
    if [n for n in x.shape if n > 1] == [n for n in shape if n > 1]:
        return _renamed(x, shape)
    whole = stored(scope, x)
    if not whole.whole:
        copy = allocate(scope, whole.shape, whole.dtype, min(whole.level, SAME))
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
    if int(np.prod(shape)) <= SMALL or int(np.prod(shape)) == x.size:
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
    return [_cut(scope, x, begin, equation.outvars[0].aval.shape, step)]


def _cut(scope: Scope, x: Field, begin, shape, step) -> Field:
    builder = scope.builder
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
    if aval.size <= SMALL and not any(isinstance(x, Field) for x in inputs):
        return [np.concatenate(inputs, axis)]
    whole = allocate(scope, aval.shape, aval.dtype, min(SAME, *map(array_level, inputs)))
    begin = 0
    for x in inputs:
        fill(scope, _cut(scope, whole, [begin if k == axis else 0 for k in range(len(aval.shape))], x.shape, [1] * len(aval.shape)), x)
        begin += x.shape[axis]
    return [whole]


@rule("stack")
def _(scope, equation, inputs):
    axis, aval = equation.params.get("axis", equation.params.get("dimension", 0)), equation.outvars[0].aval
    if aval.size <= SMALL and not any(isinstance(x, Field) for x in inputs):
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
        part = _cut(scope, x, begins, shape, [1] * len(shape)) if isinstance(x, Field) else x[where]
        outputs.append(_reshaped(scope, part, v.aval.shape))
        begin += size
    return outputs


@rule("pad")
def _(scope, equation, inputs):
    x, filler = inputs[0], inputs[1]
    config, aval = equation.params["padding_config"], equation.outvars[0].aval
    if not isinstance(x, Field) and aval.size <= SMALL:
        out = np.full(aval.shape, filler[()], object)
        for index in np.ndindex(*x.shape):
            place = tuple(low + i * (1 + gap) for i, (low, _, gap) in zip(index, config, strict=True))
            if all(0 <= i < n for i, n in zip(place, aval.shape, strict=True)):
                out[place] = x[index]
        return [out]
    if any(low < 0 or high < 0 for low, high, _ in config):
        raise Refused("a large array is cut by padding")
    whole = allocate(scope, aval.shape, aval.dtype, min(SAME, array_level(x)))
    fill(scope, whole, Formula(aval.shape, aval.dtype, SAME, lambda inner, index: entry(inner, filler, ())))
    fill(scope, _cut(scope, whole, [low for low, _, _ in config], x.shape, [1 + gap for _, _, gap in config]), x)
    return [whole]


@rule("iota")
def _(scope, equation, inputs):
    p = equation.params
    shape, axis, dtype = p["shape"], p["dimension"], p["dtype"]
    if int(np.prod(shape)) <= SMALL:
        return [constants(np.broadcast_to(np.arange(shape[axis], dtype=dtype).reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape))]
    return [Formula(shape, dtype, SAME, lambda inner, index: inner.counted(index[axis], dtype))]


# Indices.


def _places(equation, shape, *indices) -> np.ndarray | None:
    """For a primitive that moves entries to or from places that are all known: where each entry of the result comes from, as flat numbers."""
    if not all(not isinstance(x, Field) and all(map(constant, x.flat)) for x in indices):
        return None
    plain = [np.array([lane.item() for lane in x.flat], lane_dtype(x)).reshape(x.shape) for x in indices]
    numbers = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    params = equation.params | ({"fill_value": -1} if "fill_value" in equation.params else {})
    with jax.ensure_compile_time_eval():
        return np.asarray(equation.primitive.bind(numbers, *plain, **params))


def lane_dtype(x: np.ndarray):
    return x.flat[0].dtype if x.size else np.int32


@rule("gather", "dynamic_slice")
def _(scope, equation, inputs):
    x, *indices = inputs
    aval = equation.outvars[0].aval
    places = _places(equation, x.shape, *indices)
    if places is not None:
        if not isinstance(x, Field) and aval.size <= SMALL:
            flat = x.ravel()
            nothing = np.dtype(aval.dtype).type(np.nan if np.dtype(aval.dtype).kind == "f" else 0)
            return [array_of([nothing if i < 0 else flat[i] for i in places.flat], aval.shape)]
        table, whole = stored(scope, constants(places)), _reshaped(scope, x, (-1 if x.size == 0 else int(np.prod(x.shape)),))
        whole = stored(scope, whole)
        return [
            Formula(
                aval.shape, aval.dtype, min(SAME, whole.level), lambda inner, index: whole.at(inner, [first_of(inner.code, table.at(inner, index))])
            )
        ]
    if equation.primitive.name == "dynamic_slice":
        return [_slide(scope, x, indices, aval)]
    return [_gathered(scope, equation, x, indices[0], aval)]


def _bounded(scope: Scope, lane: Any, most: int) -> Any:
    """An index kept within 0 ... most."""
    dtype = lane.dtype
    zero, top = dtype.type(0), dtype.type(most)
    return scope.lane("min", [scope.lane("max", [lane, zero]), top])


def _slide(scope: Scope, x: Array, begin: list, aval) -> Array:
    """A part whose place is known only while the program runs; it is moved inside where it would stick out."""
    places = [_bounded(scope, b[()], n - m) for b, n, m in zip(begin, x.shape, aval.shape, strict=True)]
    if all(constant(p) or p.level >= SAME for p in places):
        start = [int(p) if constant(p) else first_of(scope.code, p) for p in places]
        part = _cut(scope, stored(scope, x), start, aval.shape, [1] * len(aval.shape))
        return part if aval.size > SMALL else array_of([part.at(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)
    return _picked(scope, x, places, aval)


def _picked(scope: Scope, x: Array, places: list, aval) -> Array:
    """Each trajectory reads at a place of its own: entry after entry is offered to all."""

    def one(inner: Scope, index) -> Any:
        found = None
        for place in np.ndindex(*(n - m + 1 for n, m in zip(x.shape, aval.shape, strict=True))):
            value = entry(inner, x, [plus(inner.builder, i, p) for i, p in zip(index, place, strict=True)])
            if found is None:
                found = value
                continue
            here = np.bool_(True)
            for p, wanted, n, m in zip(place, places, x.shape, aval.shape, strict=True):
                if n != m:
                    here = inner.lane("and", [here, inner.lane("eq", [wanted, np.dtype(wanted.dtype).type(p)])])
            found = inner.lane("select_n", [here, found, value])
        return found

    if aval.size <= SMALL:
        return array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)
    return Formula(aval.shape, aval.dtype, 0, one)


def _gathered(scope: Scope, equation, x: Array, index: Array, aval) -> Array:
    """x[i] for one index i along one axis."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    axes = numbers.start_index_map
    if int(np.prod(index.shape)) != len(axes) or numbers.operand_batching_dims:
        raise Refused("a gather at many places that are not known")
    flat = [entry(scope, index, (*(0 for _ in index.shape[:-1]), k)) for k in range(len(axes))]
    begin = [np.array(flat[axes.index(k)] if k in axes else np.int32(0), object) for k in range(len(x.shape))]
    whole = jax.ShapeDtypeStruct(sizes, aval.dtype)
    return _reshaped(scope, _slide(scope, x, begin, whole), aval.shape)


@rule("dynamic_update_slice")
def _(scope, equation, inputs):
    x, new, *begin = inputs
    aval = equation.outvars[0].aval
    places = [_bounded(scope, b[()], n - m) for b, n, m in zip(begin, aval.shape, new.shape, strict=True)]
    if all(map(constant, places)) and not isinstance(x, Field) and not isinstance(new, Field):
        out = x.copy()
        out[tuple(slice(int(p), int(p) + m) for p, m in zip(places, new.shape, strict=True))] = new
        return [out]
    if all(constant(p) or p.level >= SAME for p in places):
        whole = allocate(scope, aval.shape, aval.dtype, 0)
        fill(scope, whole, x)
        start = [int(p) if constant(p) else first_of(scope.code, p) for p in places]
        fill(scope, _cut(scope, whole, start, new.shape, [1] * len(aval.shape)), new)
        return [whole if aval.size > SMALL else array_of([whole.at(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)]
    return [_replaced(scope, x, new, places, aval)]


def _replaced(scope: Scope, x: Array, new: Array, places: list, aval) -> Array:
    """Each trajectory writes at a place of its own."""
    wide = [n != m for n, m in zip(aval.shape, new.shape, strict=True)]
    if any(w and m > 1 for w, m in zip(wide, new.shape, strict=True)):
        raise Refused("a part longer than one is written at a place that trajectories do not share")

    def one(inner: Scope, index) -> Any:
        here, place = np.bool_(True), []
        for i, wanted, w in zip(index, places, wide, strict=True):
            place.append(0 if w else i)
            if w:
                here = inner.lane("and", [here, inner.lane("eq", [wanted, inner.counted(i, wanted.dtype)])])
        return inner.lane("select_n", [here, entry(inner, x, index), entry(inner, new, place)])

    if aval.size <= SMALL and not isinstance(x, Field):
        return array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)
    return Formula(aval.shape, aval.dtype, 0, one)


@rule("scatter", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul", "scatter-min", "scatter_min", "scatter-max", "scatter_max")
def _(scope, equation, inputs):
    x, indices, new = inputs
    aval, name = equation.outvars[0].aval, equation.primitive.name
    targets = _targets(equation, x.shape, indices, new.shape)
    if targets is None or aval.size > SMALL:
        raise Refused("a scatter to places that are not known, or into a large array")
    out = list((x if not isinstance(x, Field) else array_of([x.at(scope, i) for i in np.ndindex(*x.shape)], x.shape)).ravel())
    operation = {"add": "add", "mul": "mul", "min": "min", "max": "max"}.get(name[8:])
    for index, place in zip(np.ndindex(*new.shape), targets.flat, strict=True):
        if place >= 0:
            value = entry(scope, new, index)
            out[place] = value if operation is None else scope.lane(operation, [out[place], value])
    return [array_of(out, aval.shape)]


def _targets(equation, shape, indices: Array, updates) -> np.ndarray | None:
    """Where each entry of the updates goes, as flat numbers; −1 for nowhere."""
    if isinstance(indices, Field) or not all(map(constant, indices.flat)):
        return None
    d = equation.params["dimension_numbers"]
    inserted, batching = d.inserted_window_dims, d.operand_batching_dims
    windows = iter(updates[k] for k in d.update_window_dims)
    sizes = tuple(1 if k in inserted or k in batching else next(windows) for k in range(len(shape)))
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=d.update_window_dims,
        collapsed_slice_dims=inserted,
        start_index_map=d.scatter_dims_to_operand_dims,
        operand_batching_dims=batching,
        start_indices_batching_dims=d.scatter_indices_batching_dims,
    )
    plain = np.array([lane.item() for lane in indices.flat], lane_dtype(indices)).reshape(indices.shape)
    places = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    clips = equation.params["mode"] == jax.lax.GatherScatterMode.CLIP
    mode = jax.lax.GatherScatterMode.CLIP if clips else jax.lax.GatherScatterMode.FILL_OR_DROP
    with jax.ensure_compile_time_eval():
        return np.asarray(jax.lax.gather(places, plain, numbers, sizes, mode=mode, fill_value=-1))
