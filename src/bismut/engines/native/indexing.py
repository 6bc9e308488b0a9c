"""Reading and writing at places.

known now        a choice of lanes, or a table of places
same for all     an address, while the program runs
each its own     few entries are offered one after the other; of many, every trajectory reads and writes at its own address
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.lax import GatherScatterMode
from llvmlite import ir

from bismut.engines.native.field import Array, Field, Formula, Stored, allocate, array_level, entry, everywhere, fill, lanes, stored, table
from bismut.engines.native.frame import Scope
from bismut.engines.native.lane import OWN, SAME, Lane, array_of, constant, first_of, level_of, value_of
from bismut.engines.native.places import LONG, Scattered
from bismut.engines.native.shaping import cut, reshaped
from bismut.engines.native.walk import rule, run
from bismut.host.gathering import nothing
from bismut.programs import Program

OFFERED = 16  # entries up to which all are offered


def place_of(scope: Scope, lane: Any) -> Any:
    """A lane as an index; it is the same for all, or lanes are bodies, which may each have their own."""
    if constant(lane):
        return int(lane)
    if lane.level == OWN and scope.frame.across:
        return Scattered([_of_lane(scope, lane, k) for k in range(scope.frame.width)])
    return first_of(scope.code, lane)


def alike(position: Sequence) -> bool:
    """Whether all lanes look at one place."""
    return all(constant(p) or p.level >= SAME for p in position)


def shifted(scope: Scope, lane: Any, by: Any) -> Any:
    """An index moved by a known number, or by a loop's counter."""
    return scope.lane("add", [lane, scope.counted(by, lane.dtype)])


def read_at(scope: Scope, x: Array, position: Sequence) -> Any:
    """The entry at a position, whose parts are lanes within bounds."""
    if alike(position):
        return entry(scope, x, [place_of(scope, p) for p in position])
    if x.size <= OFFERED:
        return _offered(scope, x, position)
    whole = stored(scope, x)
    found: Any = ir.Constant(scope.code.vector(x_type(whole)), ir.Undefined)
    for k in range(scope.frame.width):
        address = whole.address(scope, [_of_lane(scope, p, k) for p in position])
        number = ir.Constant(ir.IntType(32), k)
        value = scope.builder.load(address, align=max(whole.dtype.itemsize, 1))
        value = value if whole.plain else scope.builder.extract_element(value, number)
        found = scope.builder.insert_element(found, value, number)
    if whole.dtype.kind == "b":
        found = scope.builder.trunc(found, scope.code.vector(bool))
    return Lane(found, whole.dtype)


def x_type(x: Field) -> Any:
    return np.uint8 if x.dtype.kind == "b" else x.dtype


def _of_lane(scope: Scope, lane: Any, k: int) -> Any:
    if constant(lane):
        return int(lane)
    number: Any = scope.builder.extract_element(lane.value, ir.Constant(ir.IntType(32), k))
    if number.type.width == 64:
        return number
    return scope.builder.sext(number, LONG) if lane.dtype.kind == "i" else scope.builder.zext(number, LONG)


def _offered(scope: Scope, x: Array, position: Sequence) -> Any:
    found = None
    for place in np.ndindex(*x.shape):
        value = entry(scope, x, place)
        found = value if found is None else scope.lane("select_n", [_is(scope, position, place), found, value])
    return found


def _is(scope: Scope, position: Sequence, place: Sequence) -> Any:
    here: Any = np.bool_(True)
    for p, i in zip(position, place, strict=True):
        here = scope.lane("and", [here, scope.lane("eq", [p, scope.counted(i, p.dtype)])])
    return here


def write_at(scope: Scope, target: Stored, position: Sequence, lane: Any) -> None:
    """One entry replaced, in memory."""
    if alike(position):
        target.put(scope, [place_of(scope, p) for p in position], lane)
        return
    value = value_of(scope.code, lane, target.dtype)
    if target.dtype.kind == "b":
        value = scope.builder.zext(value, scope.code.vector(np.uint8))
    for k in range(scope.frame.width):
        address = target.address(scope, [_of_lane(scope, p, k) for p in position])
        number = scope.builder.extract_element(value, ir.Constant(ir.IntType(32), k))
        first = scope.builder.bitcast(address, number.type.as_pointer())
        scope.builder.store(number, scope.builder.gep(first, [LONG(k)]), align=max(target.dtype.itemsize, 1))


def _bounded(scope: Scope, lane: Any, most: int) -> Any:
    """An index kept within 0 ... most, of a type that holds sums of places."""
    low = scope.lane("max", [lane, lane.dtype.type(0)])
    bounded = scope.lane("min", [low, lane.dtype.type(most)]) if most <= np.iinfo(lane.dtype).max else low
    return bounded if _index_type(lane.dtype) == lane.dtype else scope.lane("convert_element_type", [bounded], {"new_dtype": np.dtype(np.int64)})


def _index_type(dtype: Any) -> np.dtype:
    return np.dtype(dtype) if np.dtype(dtype).itemsize >= 4 else np.dtype(np.int64)


def _inside(scope: Scope, lane: Any, most: int) -> Any:
    below = scope.lane("le", [lane, lane.dtype.type(most)]) if most <= np.iinfo(lane.dtype).max else np.bool_(True)
    return scope.lane("and", [scope.lane("ge", [lane, lane.dtype.type(0)]), below])


def _plain(x: Array) -> np.ndarray | None:
    """An array of constants as it is; None where something is not known."""
    if isinstance(x, Stored) and x.values is not None:
        return x.values
    if isinstance(x, Field) or not all(map(constant, x.flat)):
        return None
    return np.array([lane.item() for lane in x.flat], x.flat[0].dtype if x.size else np.int32).reshape(x.shape)


def _spread(scope: Scope, aval, one) -> Array:
    """An array by its entries, written out if they are few."""
    if aval.size <= scope.small:
        return array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)
    return stored(scope, Formula(aval.shape, aval.dtype, OWN, one))


# Reading.


@rule("gather", "dynamic_slice")
def _(scope, equation, inputs):
    x, *indices = inputs
    aval = equation.outvars[0].aval
    known = [_plain(index) for index in indices]
    if all(index is not None for index in known):
        return [_chosen(scope, equation, x, known, aval)]
    if equation.primitive.name == "dynamic_slice":
        return [_slid(scope, x, [index[()] for index in indices], aval)]
    return [_gathered(scope, equation, x, indices[0], aval)]


def _chosen(scope: Scope, equation, x: Array, indices: list, aval) -> Array:
    """Places known now: the primitive itself says where each entry comes from."""
    numbers = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    params = equation.params | ({"fill_value": -1} if "fill_value" in equation.params else {})
    with jax.ensure_compile_time_eval():
        places = np.asarray(equation.primitive.bind(numbers, *indices, **params))
    outside = _nothing(equation, aval.dtype)
    if not isinstance(x, Field) and aval.size <= scope.small:
        flat = x.ravel()
        return array_of([outside if i < 0 else flat[i] for i in places.flat], aval.shape)
    where, whole = table(scope.frame, places), stored(scope, reshaped(scope, x, (x.size,)))
    if (places >= 0).all():
        one = lambda inner, index: whole.at(inner, [place_of(inner, where.at(inner, index))])
        return Formula(aval.shape, aval.dtype, min(SAME, whole.level), one)

    def guarded(inner, index):
        place = where.at(inner, index)
        value = whole.at(inner, [place_of(inner, inner.lane("max", [place, np.int32(0)]))])
        return inner.lane("select_n", [inner.lane("ge", [place, np.int32(0)]), outside, value])

    return Formula(aval.shape, aval.dtype, min(SAME, whole.level), guarded)


def _nothing(equation, dtype: Any) -> Any:
    """What stands for an entry from outside."""
    return nothing(np.dtype(dtype), equation.params.get("fill_value"))[()]


def _slid(scope: Scope, x: Array, begin: list, aval) -> Array:
    """A part; it is moved inside where it would stick out."""
    places = [_bounded(scope, b, n - m) for b, n, m in zip(begin, x.shape, aval.shape, strict=True)]
    if alike(places):
        part = cut(scope, stored(scope, x), [place_of(scope, p) for p in places], aval.shape, [1] * len(aval.shape))
        return lanes(scope, part) if aval.size <= scope.small else part
    return _spread(scope, aval, lambda inner, index: read_at(inner, x, [shifted(inner, p, i) for p, i in zip(places, index, strict=True)]))


def _gathered(scope: Scope, equation, x: Array, indices: Array, aval) -> Array:
    d, sizes, mode = equation.params["dimension_numbers"], equation.params["slice_sizes"], equation.params["mode"]
    windows = [k for k in range(len(x.shape)) if k not in d.collapsed_slice_dims and k not in d.operand_batching_dims]
    x = stored(scope, x) if isinstance(x, Field) else x
    outside = _nothing(equation, aval.dtype)
    if not x.size:
        return array_of([outside] * aval.size, aval.shape)

    def one(inner: Scope, index) -> Any:
        batch = [i for k, i in enumerate(index) if k not in d.offset_dims]
        position, valid = _position(inner, indices, batch, d.start_index_map, d.operand_batching_dims, d.start_indices_batching_dims, x.shape, sizes)
        for k, i in zip(windows, [index[o] for o in d.offset_dims], strict=True):
            position[k] = shifted(inner, position[k], i)
        value = read_at(inner, x, position)
        return inner.lane("select_n", [valid, outside, value]) if mode == GatherScatterMode.FILL_OR_DROP else value

    return _spread(scope, aval, one)


def _position(scope: Scope, indices: Array, batch: list, axes, batching, of_indices, shape, sizes) -> tuple[list, Any]:
    """Where a window begins, kept within bounds, and whether it was."""
    kind = _index_type(indices.dtype if isinstance(indices, Field) else indices.flat[0].dtype if indices.size else np.int32)
    position: list = [kind.type(0)] * len(shape)
    valid: Any = np.bool_(True)
    for k, axis in enumerate(axes):
        lane = entry(scope, indices, (*batch, k))
        valid = scope.lane("and", [valid, _inside(scope, lane, shape[axis] - sizes[axis])])
        position[axis] = _bounded(scope, lane, shape[axis] - sizes[axis])
    for axis, place in zip(batching, of_indices, strict=True):
        position[axis] = scope.counted(batch[place], kind)
    return position, valid


# Writing.


@rule("dynamic_update_slice")
def _(scope, equation, inputs):
    x, new, *begin = inputs
    aval = equation.outvars[0].aval
    places = [_bounded(scope, b[()], n - m) for b, n, m in zip(begin, aval.shape, new.shape, strict=True)]
    if all(map(constant, places)) and not isinstance(x, Field) and not isinstance(new, Field):
        out = x.copy()
        out[tuple(slice(int(p), int(p) + m) for p, m in zip(places, new.shape, strict=True))] = new
        return [out]
    level = min(array_level(new), level_of(places))
    whole = x if isinstance(x, Stored) and x.spare and x.level <= level else _copied(scope, x, aval).spared()
    if alike(places):
        fill(scope, cut(scope, whole, [place_of(scope, p) for p in places], new.shape, [1] * len(aval.shape)), new)
    else:
        for index in np.ndindex(*new.shape):
            write_at(scope, whole, [shifted(scope, p, i) for p, i in zip(places, index, strict=True)], entry(scope, new, index))
    return [whole if isinstance(x, Field) or aval.size > scope.small else lanes(scope, whole)]


def _copied(scope: Scope, x: Array, aval) -> Stored:
    whole = allocate(scope, aval.shape, aval.dtype, OWN)
    fill(scope, whole, x)
    return whole


def _applied(equation) -> Program | None:
    """The function that `at[...].apply` puts in place of what is there; other operations are known by their names."""
    return equation.params.get("update_jaxpr") if equation.primitive.name == "scatter" else None


_COMBINE = {"scatter": None, "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul", "scatter-min": "min", "scatter-max": "max"}


@rule(*_COMBINE, *(name.replace("-", "_") for name in _COMBINE))
def _(scope, equation, inputs):
    x, indices, new = inputs
    if not x.size or not new.size:
        return [x]
    aval, operation = equation.outvars[0].aval, _COMBINE[equation.primitive.name.replace("_", "-")]
    d, mode, applied = equation.params["dimension_numbers"], equation.params["mode"], _applied(equation)
    inserted = (*d.inserted_window_dims, *d.operand_batching_dims)
    windows = [k for k in range(len(x.shape)) if k not in inserted]
    sizes = [1] * len(x.shape)
    for k, u in zip(windows, d.update_window_dims, strict=True):
        sizes[k] = new.shape[u]
    small = _plain(indices) is not None and not isinstance(x, Field) and aval.size <= scope.small
    out: Any = lanes(scope, x).copy() if small else _copied(scope, x, aval)

    def one(inner: Scope, index) -> None:
        batch = [i for k, i in enumerate(index) if k not in d.update_window_dims]
        axes = d.scatter_dims_to_operand_dims, d.operand_batching_dims, d.scatter_indices_batching_dims
        position, valid = _position(inner, indices, batch, *axes, x.shape, sizes)
        for k, u in zip(windows, d.update_window_dims, strict=True):
            position[k] = shifted(inner, position[k], index[u])
        old, value = read_at(inner, out, position), entry(inner, new, index)
        if operation is not None:
            value = inner.lane(operation, [old, value])
        elif applied is not None:
            value = entry(inner, run(inner, applied, [array_of([old], ()), array_of([value], ())])[0], ())
        value = value if mode == GatherScatterMode.CLIP else inner.lane("select_n", [valid, old, value])
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
