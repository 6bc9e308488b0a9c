"""Reading and writing windows of arrays at indices that are data.

gather     out[rows, window] = x[indices[rows] + window]             scatter     x[indices[rows] + window] ∘= new[rows, window]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.lax import GatherScatterMode

from bismut.programs.codegen.access import alike, bounded, by_entries, index_of, index_type, inside, known_values, offset_by, read_at, write_at
from bismut.programs.codegen.field import Array, Buffer, Field, Formula, allocate, array_level, entry, everywhere, fill, lanes, stored, table
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.lane import OWN, SAME, array_of, constant, level_of
from bismut.programs.codegen.walk import run
from bismut.programs.operation import NOWHERE, Operation, operation, register, result
from bismut.programs.operations.shaping import cut, reshaped
from bismut.programs.program import Equation, Program

# Parts with a first index: dynamic_slice and dynamic_update_slice.


def _region(shape: tuple, begin: Sequence, sizes: tuple) -> tuple:
    """The indices of a part, which is moved inside where it would stick out."""
    first = [int(np.clip(int(b), 0, n - m)) for b, n, m in zip(begin, shape, sizes, strict=True)]
    return tuple(slice(b, b + m) for b, m in zip(first, sizes, strict=True))


@operation("dynamic_slice")
class _DynamicSlice(Operation):
    affine_in = slice(0, 1)

    def evaluate(self, equation, inputs):
        x, *begin = inputs
        return [x[_region(np.shape(x), begin, equation.params["slice_sizes"])]]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, *begin = inputs
        known, aval = [known_values(b) for b in begin], result(equation)
        if all(b is not None for b in known):
            return [_chosen(scope, self, equation, x, known, None)]
        first = [bounded(scope, b[()], n - m) for b, n, m in zip(begin, x.shape, aval.shape, strict=True)]
        if alike(first):
            part = cut(scope, stored(scope, x), [index_of(scope, p) for p in first], aval.shape, [1] * len(aval.shape))
            return [lanes(scope, part) if aval.size <= scope.small else part]
        one = lambda inner, index: read_at(inner, x, [offset_by(inner, p, i) for p, i in zip(first, index, strict=True)])
        return [by_entries(scope, aval, one)]


@operation("dynamic_update_slice")
class _DynamicUpdateSlice(Operation):
    affine_in = slice(0, 2)
    overwrites = True

    def evaluate(self, equation, inputs):
        x, new, *begin = inputs
        out = np.array(x)
        out[_region(np.shape(x), begin, np.shape(new))] = new
        return [out]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, new, *begin = inputs
        aval = result(equation)
        first = [bounded(scope, b[()], n - m) for b, n, m in zip(begin, aval.shape, new.shape, strict=True)]
        if all(map(constant, first)) and not isinstance(x, Field) and not isinstance(new, Field):
            out = x.copy()
            out[tuple(slice(int(p), int(p) + m) for p, m in zip(first, new.shape, strict=True))] = new
            return [out]
        level = min(array_level(new), level_of(first))
        target = x if isinstance(x, Buffer) and x.spare and x.level <= level else _copied(scope, x, aval).spared()
        if alike(first):
            fill(scope, cut(scope, target, [index_of(scope, p) for p in first], new.shape, [1] * len(aval.shape)), new)
        else:
            for index in np.ndindex(*new.shape):
                write_at(scope, target, [offset_by(scope, p, i) for p, i in zip(first, index, strict=True)], entry(scope, new, index))
        return [target if isinstance(x, Field) or aval.size > scope.small else lanes(scope, target)]


def _copied(scope: Scope, x: Array, aval) -> Buffer:
    copy = allocate(scope, aval.shape, aval.dtype, OWN)
    fill(scope, copy, x)
    return copy


def _chosen(scope: Scope, known: Operation, equation: Equation, x: Array, indices: list, outside: Any) -> Array:
    """Indices known now: the operation itself says where each entry comes from, −1 for outside."""
    aval, numbers = result(equation), np.arange(x.size, dtype=np.int32).reshape(x.shape)
    params = equation.params | ({"fill_value": -1} if "fill_value" in equation.params else {})
    source = np.asarray(known.evaluate(Equation(equation.primitive, equation.invars, equation.outvars, params), [numbers, *indices])[0])
    if not isinstance(x, Field) and aval.size <= scope.small:
        flat = x.ravel()
        return array_of([outside if i < 0 else flat[i] for i in source.flat], aval.shape)
    where, flat = table(scope.frame, source), stored(scope, reshaped(scope, x, (x.size,)))
    if (source >= 0).all():
        one = lambda inner, index: flat.at(inner, [index_of(inner, where.at(inner, index))])
        return Formula(aval.shape, aval.dtype, min(SAME, flat.level), one)

    def guarded(inner, index):
        i = where.at(inner, index)
        value = flat.at(inner, [index_of(inner, inner.lane("max", [i, np.int32(0)]))])
        return inner.lane("select_n", [inner.lane("ge", [i, np.int32(0)]), outside, value])

    return Formula(aval.shape, aval.dtype, min(SAME, flat.level), guarded)


# Windows: gather and scatter.


class _Windows(NamedTuple):
    """How windows of an array of a shape are moved, `rank` the number of axes of what is moved.

    indexed   axes of the array that a row of indices gives
    batched   axis of the array ↦ axis of the rows with which it counts along
    window    axis of the array ↦ axis of what is moved
    sizes     of a window
    """

    indexed: tuple[int, ...]
    batched: dict[int, int]
    window: dict[int, int]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    rank: int

    @classmethod
    def of_gather(cls, equation: Equation) -> _Windows:
        d, shape = equation.params["dimension_numbers"], equation.invars[0].aval.shape
        batched = dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
        axes = [axis for axis in range(len(shape)) if axis not in (*d.collapsed_slice_dims, *batched)]
        window = dict(zip(axes, d.offset_dims, strict=True))
        return cls(d.start_index_map, batched, window, equation.params["slice_sizes"], shape, len(result(equation).shape))

    @classmethod
    def of_scatter(cls, equation: Equation) -> _Windows:
        d, shape, new = equation.params["dimension_numbers"], equation.invars[0].aval.shape, equation.invars[2].aval.shape
        batched = dict(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True))
        axes = [axis for axis in range(len(shape)) if axis not in (*d.inserted_window_dims, *batched)]
        window = dict(zip(axes, d.update_window_dims, strict=True))
        sizes = tuple(new[window[axis]] if axis in window else 1 for axis in range(len(shape)))
        return cls(d.scatter_dims_to_operand_dims, batched, window, sizes, shape, len(new))

    @property
    def rows(self) -> list[int]:
        """Axes of what is moved that are those of the rows of indices."""
        return [axis for axis in range(self.rank) if axis not in self.window.values()]

    def indices(self, given: np.ndarray, checked: bool) -> tuple[tuple, Any]:
        """An index array for every axis, shaped like what is moved, and, if checked, which of its numbers lie inside; None if all do."""
        arrays, valid = [], None
        for axis, (n, size) in enumerate(zip(self.shape, self.sizes, strict=True)):
            index: Any = np.zeros([1] * self.rank, int)
            if axis in self.indexed:
                first = given[..., self.indexed.index(axis)]
                first = (np.minimum(first, n) if first.dtype.kind == "u" and n <= np.iinfo(first.dtype).max else first).astype(int)
                clipped = np.clip(first, 0, n - size)
                if checked and (first != clipped).any():
                    good = self._along(first == clipped, self.rows)
                    valid = good if valid is None else valid & good
                index = self._along(clipped, self.rows)
            elif axis in self.batched:
                index = self._along(np.arange(n), [self.rows[self.batched[axis]]])
            if axis in self.window:
                index = index + self._along(np.arange(size), [self.window[axis]])
            arrays.append(index)
        return tuple(arrays), valid

    def _along(self, values: np.ndarray, axes: list[int]) -> np.ndarray:
        shape = [1] * self.rank
        for axis, n in zip(axes, values.shape, strict=True):
            shape[axis] = n
        return values.reshape(shape)

    def position(self, scope: Scope, given: Array, index: Sequence) -> tuple[list, Any]:
        """As code: the index of one entry that is moved, kept within bounds, and whether its window was inside."""
        kind = index_type(given.dtype if isinstance(given, Field) else given.flat[0].dtype if given.size else np.int32)
        batch = [index[axis] for axis in self.rows]
        position: list = [kind.type(0)] * len(self.shape)
        valid: Any = np.bool_(True)
        for k, axis in enumerate(self.indexed):
            lane = entry(scope, given, (*batch, k))
            valid = scope.lane("and", [valid, inside(scope, lane, self.shape[axis] - self.sizes[axis])])
            position[axis] = bounded(scope, lane, self.shape[axis] - self.sizes[axis])
        for axis, row in self.batched.items():
            position[axis] = scope.counted(batch[row], kind)
        for axis, moved in self.window.items():
            position[axis] = offset_by(scope, position[axis], index[moved])
        return position, valid


def _fill_value(equation: Equation, dtype: np.dtype) -> Any:
    """What stands for a number from outside."""
    value = equation.params.get("fill_value")
    if value is None:
        value = {"i": lambda: np.iinfo(dtype).min, "u": lambda: np.iinfo(dtype).max, "b": lambda: True}.get(dtype.kind, lambda: np.nan)()
    return np.asarray(value, dtype)[()]


@operation("gather")
class _Gather(Operation):
    affine_in = slice(0, 1)

    def evaluate(self, equation, inputs):
        x, given = map(np.asarray, inputs)
        indices, valid = _Windows.of_gather(equation).indices(given, equation.params["mode"] == GatherScatterMode.FILL_OR_DROP)
        values = np.broadcast_to(x[indices], result(equation).shape)
        return [values if valid is None else np.where(valid, values, _fill_value(equation, x.dtype))]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, given = inputs
        aval, known = result(equation), known_values(given)
        outside = _fill_value(equation, np.dtype(aval.dtype))
        if known is not None:
            return [_chosen(scope, self, equation, x, [known], outside)]
        if not x.size:
            return [array_of([outside] * aval.size, aval.shape)]
        x, windows = stored(scope, x) if isinstance(x, Field) else x, _Windows.of_gather(equation)

        def one(inner: Scope, index) -> Any:
            position, valid = windows.position(inner, given, index)
            value = read_at(inner, x, position)
            return inner.lane("select_n", [valid, outside, value]) if equation.params["mode"] == GatherScatterMode.FILL_OR_DROP else value

        return [by_entries(scope, aval, one)]


class _Scatter(Operation):
    """`combine` what is there and what comes, in code; `put(out, indices, values)` the same in NumPy, if it is known."""

    def __init__(self, name: str, combine: str | None, put: Callable | None, affine_in: slice = NOWHERE):
        self.names, self.combine, self.put, self.affine_in = tuple(dict.fromkeys([name, name.replace("-", "_")])), combine, put, affine_in
        register(self)

    def affine(self, equation: Equation, marked: list[bool]) -> bool:
        return self._function(equation) is None and super().affine(equation, marked)

    def _function(self, equation: Equation) -> Program | None:
        """The function that `at[...].apply` puts in place of what is there; other operations are known by their names."""
        return equation.params.get("update_jaxpr") if self.combine is None else None

    def evaluate(self, equation, inputs):
        if self.put is None or self._function(equation) is not None:
            return None
        x, given, new = map(np.asarray, inputs)
        indices, valid = _Windows.of_scatter(equation).indices(given, equation.params["mode"] != GatherScatterMode.CLIP)
        indices = tuple(np.broadcast_to(index, new.shape) for index in indices)
        if valid is not None:
            valid = np.broadcast_to(valid, new.shape)
            indices, new = tuple(index[valid] for index in indices), new[valid]
        out = np.array(x)
        self.put(out, indices, new)
        return [out]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, given, new = inputs
        if not x.size or not new.size:
            return [x]
        aval, function, windows = result(equation), self._function(equation), _Windows.of_scatter(equation)
        small = known_values(given) is not None and not isinstance(x, Field) and aval.size <= scope.small
        out: Any = lanes(scope, x).copy() if small else _copied(scope, x, aval)

        def one(inner: Scope, index) -> None:
            position, valid = windows.position(inner, given, index)
            old, value = read_at(inner, out, position), entry(inner, new, index)
            if self.combine is not None:
                value = inner.lane(self.combine, [old, value])
            elif function is not None:
                value = entry(inner, run(inner, function, [array_of([old], ()), array_of([value], ())])[0], ())
            value = value if equation.params["mode"] == GatherScatterMode.CLIP else inner.lane("select_n", [valid, old, value])
            if small:
                out[tuple(int(p) for p in position)] = value
            else:
                write_at(inner, out, position, value)

        if small:
            for index in np.ndindex(*new.shape):
                one(scope, index)
        else:
            everywhere(scope, new.shape, one)
        return [out if small else lanes(scope, out) if aval.size <= scope.small else out]


_INTO_AND_NEW = slice(0, 3, 2)
_Scatter("scatter", None, lambda out, indices, new: out.__setitem__(indices, new), _INTO_AND_NEW)
_Scatter("scatter-add", "add", np.add.at, _INTO_AND_NEW)
_Scatter("scatter-sub", "sub", np.subtract.at, _INTO_AND_NEW)
_Scatter("scatter-mul", "mul", np.multiply.at)
_Scatter("scatter-min", "min", None)
_Scatter("scatter-max", "max", None)
