"""Operations that move entries and compute nothing."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.programs.codegen.field import Array, Buffer, Field, Formula, allocate, array_level, entry, fill, stored
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.indices import plus, times
from bismut.programs.codegen.lane import SAME, array_of, constants
from bismut.programs.operation import EVERYWHERE, Operation, operation, result
from bismut.programs.program import Refused


@operation("reshape", "squeeze", "expand_dims")
class _Reshape(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.reshape(inputs[0], result(equation).shape)]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        return [reshaped(scope, inputs[0], result(equation).shape)]


def reshaped(scope: Scope, x: Array, shape) -> Array:
    if not isinstance(x, Field):
        return x.reshape(shape)
    if [n for n in x.shape if n > 1] == [n for n in shape if n > 1]:
        return _renamed(x, shape)
    target = stored(scope, x)
    if not target.is_contiguous:
        copy = allocate(scope, target.shape, target.dtype, min(target.level, SAME), rows=True)
        fill(scope, copy, target)
        target = copy
    return Buffer(target.base, shape, target.dtype, target.level, owner=target.owner, start=target.start, plain=target.plain)


def _renamed(x: Field, shape) -> Field:
    """Axes of length one dropped or added."""
    old_axes, new_axes = [k for k, n in enumerate(x.shape) if n > 1], [k for k, n in enumerate(shape) if n > 1]
    if isinstance(x, Buffer):
        strides = [0] * len(shape)
        for k, place in zip(old_axes, new_axes, strict=True):
            strides[place] = x.strides[k]
        return x.view(shape, strides)

    def one(scope, index):
        old: list = [0] * len(x.shape)
        for k, place in zip(old_axes, new_axes, strict=True):
            old[k] = index[place]
        return x.at(scope, old)

    return Formula(shape, x.dtype, x.level, one)


@operation("broadcast_in_dim")
class _Broadcast(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        shape, axes = equation.params["shape"], equation.params["broadcast_dimensions"]
        return [np.broadcast_to(np.reshape(inputs[0], _spread_axes(np.shape(inputs[0]), axes, len(shape))), shape)]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, shape, axes = inputs[0], equation.params["shape"], equation.params["broadcast_dimensions"]
        if isinstance(x, Field):
            x = stored(scope, x)
            strides = [0] * len(shape)
            for k, axis in enumerate(axes):
                strides[axis] = x.strides[k] if x.shape[k] > 1 else 0
            return [x.view(shape, strides)]
        if int(np.prod(shape)) <= scope.small or int(np.prod(shape)) == x.size:
            return [np.broadcast_to(x.reshape(_spread_axes(x.shape, axes, len(shape))), shape)]
        pick = lambda index: [index[axis] if x.shape[k] > 1 else 0 for k, axis in enumerate(axes)]
        return [Formula(shape, result(equation).dtype, array_level(x), lambda inner, index: entry(inner, x, pick(index)))]


@operation("transpose")
class _Transpose(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.transpose(inputs[0], equation.params["permutation"])]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, order = inputs[0], equation.params["permutation"]
        if not isinstance(x, Field):
            return [x.transpose(order)]
        shape = [x.shape[k] for k in order]
        if isinstance(x, Buffer):
            return [x.view(shape, [x.strides[k] for k in order])]
        back = np.argsort(order)
        return [Formula(shape, x.dtype, x.level, lambda inner, index: x.at(inner, [index[k] for k in back]))]


@operation("slice")
class _Slice(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [inputs[0][self._region(equation)]]

    @staticmethod
    def _region(equation) -> tuple:
        p = equation.params
        return tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * len(p["start_indices"])))

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, region = inputs[0], self._region(equation)
        if not isinstance(x, Field):
            return [x[region]]
        return [cut(scope, x, [part.start for part in region], result(equation).shape, [part.step for part in region])]


def cut(scope: Scope, x: Field, begin, shape, step) -> Any:
    """A part of an array, from places that may be known only while the program runs."""
    builder, begin, step = scope.builder, [int(b) if isinstance(b, np.integer) else b for b in begin], [int(s) for s in step]
    if isinstance(x, Buffer):
        start = x.start
        for b, stride in zip(begin, x.strides, strict=True):
            start = plus(builder, start, times(builder, b, stride))
        return x.view(shape, [stride * s for stride, s in zip(x.strides, step, strict=True)], start)

    def one(inner, index):
        place = [plus(inner.builder, b, times(inner.builder, i, s)) for i, b, s in zip(index, begin, step, strict=True)]
        return x.at(inner, place)

    return Formula(shape, x.dtype, x.level, one)


@operation("rev")
class _Reverse(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.flip(inputs[0], equation.params["dimensions"])]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, axes = inputs[0], equation.params["dimensions"]
        if not isinstance(x, Field):
            return [np.flip(x, axes)]
        x = stored(scope, x)
        start, strides = x.start, list(x.strides)
        for axis in axes:
            start, strides[axis] = plus(scope.builder, start, (x.shape[axis] - 1) * strides[axis]), -strides[axis]
        return [x.view(x.shape, strides, start)]


@operation("concatenate")
class _Concatenate(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.concatenate(inputs, equation.params["dimension"])]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        axis, aval = equation.params["dimension"], result(equation)
        if aval.size <= scope.small and not any(isinstance(x, Field) for x in inputs):
            return [np.concatenate(inputs, axis)]
        target = allocate(scope, aval.shape, aval.dtype, min(SAME, *map(array_level, inputs)))
        begin = 0
        for x in inputs:
            fill(scope, cut(scope, target, [begin if k == axis else 0 for k in range(len(aval.shape))], x.shape, [1] * len(aval.shape)), x)
            begin += x.shape[axis]
        return [target]


@operation("stack")
class _Stack(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.stack(inputs, equation.params["axis"])]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        axis, aval = equation.params.get("axis", equation.params.get("dimension", 0)), result(equation)
        if aval.size <= scope.small and not any(isinstance(x, Field) for x in inputs):
            return [np.stack(inputs, axis)]
        target = allocate(scope, aval.shape, aval.dtype, min(SAME, *map(array_level, inputs)))
        for i, x in enumerate(inputs):
            shape = [n for k, n in enumerate(aval.shape) if k != axis]
            strides = [s for k, s in enumerate(target.strides) if k != axis]
            fill(scope, target.view(shape, strides, plus(scope.builder, target.start, i * target.strides[axis])), x)
        return [target]


@operation("unstack", "split")
class _Split(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        if "sizes" in equation.params:
            return np.split(inputs[0], np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"])
        return list(np.moveaxis(inputs[0], equation.params["axis"], 0))

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
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


@operation("pad")
class _Pad(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        x, value = inputs
        config = equation.params["padding_config"]
        if min([0, *(min(low, high) for low, high, _ in config)]) < 0:
            return None
        out = np.full(result(equation).shape, value, x.dtype)
        region = (slice(low, low + max((n - 1) * (gap + 1) + 1, 0), gap + 1) for (low, _, gap), n in zip(config, np.shape(x), strict=True))
        out[tuple(region)] = x
        return [out]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, filler = inputs[0], inputs[1]
        config, aval = equation.params["padding_config"], result(equation)
        if not isinstance(x, Field) and aval.size <= scope.small:
            out = array_of([filler[()]] * aval.size, aval.shape)
            for index in np.ndindex(*x.shape):
                place = tuple(low + i * (1 + gap) for i, (low, _, gap) in zip(index, config, strict=True))
                if all(0 <= i < n for i, n in zip(place, aval.shape, strict=True)):
                    out[place] = x[index]
            return [out]
        if any(low < 0 or high < 0 for low, high, _ in config):
            raise Refused("a large array is cut by padding")
        target = allocate(scope, aval.shape, aval.dtype, min(SAME, array_level(x)))
        fill(scope, target, Formula(aval.shape, aval.dtype, SAME, lambda inner, index: entry(inner, filler, ())))
        fill(scope, cut(scope, target, [low for low, _, _ in config], x.shape, [1 + gap for _, _, gap in config]), x)
        return [target]


@operation("iota")
class _Iota(Operation):
    def evaluate(self, equation, inputs):
        p = equation.params
        shape, axis = p["shape"], p["dimension"]
        line = np.arange(shape[axis], dtype=p["dtype"])
        return [np.broadcast_to(line.reshape(_spread_axes(line.shape, (axis,), len(shape))), shape)]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        p = equation.params
        if int(np.prod(p["shape"])) <= scope.small:
            return [constants(self.evaluate(equation, inputs)[0])]
        return [Formula(p["shape"], p["dtype"], SAME, lambda inner, index: inner.counted(index[p["dimension"]], p["dtype"]))]


@operation("tile")
class _Tile(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return [np.tile(inputs[0], equation.params["reps"])]

    def decompose(self, x, *, reps):
        shape = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
        wide = jax.lax.broadcast_in_dim(x, shape, [2 * k + 1 for k in range(x.ndim)])
        return wide.reshape([r * n for r, n in zip(reps, x.shape, strict=True)])


@operation("optimization_barrier")
class _Barrier(Operation):
    affine_in = EVERYWHERE

    def evaluate(self, equation, inputs):
        return inputs

    def emit(self, scope, equation, inputs):
        return inputs


def _spread_axes(shape, axes, rank: int) -> list[int]:
    """A shape whose axes stand at these places among others of length one."""
    out = [1] * rank
    for axis, n in zip(axes, shape, strict=True):
        out[axis] = n
    return out
