"""Reading and writing entries at indices.

known now        a choice of lanes, or a table of indices
same for all     an address, while the program runs
each its own     few entries are offered one after the other; of many, every trajectory reads and writes at its own address
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.field import Array, Buffer, Field, Formula, entry, stored
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.indices import LONG, Scattered
from bismut.programs.codegen.lane import OWN, SAME, Lane, array_of, constant, first_of, value_of

OFFERED = 16  # entries up to which all are offered


def index_of(scope: Scope, lane: Any) -> Any:
    """A lane as an index; it is the same for all, or lanes are bodies, which may each have their own."""
    if constant(lane):
        return int(lane)
    if lane.level == OWN and scope.frame.across:
        return Scattered([_of_lane(scope, lane, k) for k in range(scope.frame.width)])
    return first_of(scope.code, lane)


def alike(position: Sequence) -> bool:
    """Whether all lanes look at one place."""
    return all(constant(p) or p.level >= SAME for p in position)


def offset_by(scope: Scope, lane: Any, by: Any) -> Any:
    """An index moved by a known number, or by a loop's counter."""
    return scope.lane("add", [lane, scope.counted(by, lane.dtype)])


def read_at(scope: Scope, x: Array, position: Sequence) -> Any:
    """The entry at a position, whose parts are lanes within bounds."""
    if alike(position):
        return entry(scope, x, [index_of(scope, p) for p in position])
    if x.size <= OFFERED:
        return _offered(scope, x, position)
    buffer = stored(scope, x)
    gathered: Any = ir.Constant(scope.code.vector(_memory_type(buffer)), ir.Undefined)
    for k in range(scope.frame.width):
        address = buffer.address(scope, [_of_lane(scope, p, k) for p in position])
        number = ir.Constant(ir.IntType(32), k)
        value = scope.builder.load(address, align=max(buffer.dtype.itemsize, 1))
        value = value if buffer.plain else scope.builder.extract_element(value, number)
        gathered = scope.builder.insert_element(gathered, value, number)
    if buffer.dtype.kind == "b":
        gathered = scope.builder.trunc(gathered, scope.code.vector(bool))
    return Lane(gathered, buffer.dtype)


def _memory_type(x: Field) -> Any:
    return np.uint8 if x.dtype.kind == "b" else x.dtype


def _of_lane(scope: Scope, lane: Any, k: int) -> Any:
    if constant(lane):
        return int(lane)
    number: Any = scope.builder.extract_element(lane.value, ir.Constant(ir.IntType(32), k))
    if number.type.width == 64:
        return number
    return scope.builder.sext(number, LONG) if lane.dtype.kind == "i" else scope.builder.zext(number, LONG)


def _offered(scope: Scope, x: Array, position: Sequence) -> Any:
    chosen = None
    for place in np.ndindex(*x.shape):
        value = entry(scope, x, place)
        chosen = value if chosen is None else scope.lane("select_n", [_matches(scope, position, place), chosen, value])
    return chosen


def _matches(scope: Scope, position: Sequence, place: Sequence) -> Any:
    here: Any = np.bool_(True)
    for p, i in zip(position, place, strict=True):
        here = scope.lane("and", [here, scope.lane("eq", [p, scope.counted(i, p.dtype)])])
    return here


def write_at(scope: Scope, target: Buffer, position: Sequence, lane: Any) -> None:
    """One entry replaced, in memory."""
    if alike(position):
        target.put(scope, [index_of(scope, p) for p in position], lane)
        return
    value = value_of(scope.code, lane, target.dtype)
    if target.dtype.kind == "b":
        value = scope.builder.zext(value, scope.code.vector(np.uint8))
    for k in range(scope.frame.width):
        address = target.address(scope, [_of_lane(scope, p, k) for p in position])
        number = scope.builder.extract_element(value, ir.Constant(ir.IntType(32), k))
        first = scope.builder.bitcast(address, number.type.as_pointer())
        scope.builder.store(number, scope.builder.gep(first, [LONG(k)]), align=max(target.dtype.itemsize, 1))


def bounded(scope: Scope, lane: Any, most: int) -> Any:
    """An index kept within 0 ... most, of a type that holds sums of places."""
    low = scope.lane("max", [lane, lane.dtype.type(0)])
    bounded = scope.lane("min", [low, lane.dtype.type(most)]) if most <= np.iinfo(lane.dtype).max else low
    return bounded if index_type(lane.dtype) == lane.dtype else scope.lane("convert_element_type", [bounded], {"new_dtype": np.dtype(np.int64)})


def index_type(dtype: Any) -> np.dtype:
    return np.dtype(dtype) if np.dtype(dtype).itemsize >= 4 else np.dtype(np.int64)


def inside(scope: Scope, lane: Any, most: int) -> Any:
    below = scope.lane("le", [lane, lane.dtype.type(most)]) if most <= np.iinfo(lane.dtype).max else np.bool_(True)
    return scope.lane("and", [scope.lane("ge", [lane, lane.dtype.type(0)]), below])


def known_values(x: Array) -> np.ndarray | None:
    """An array of constants as it is; None where something is not known."""
    if isinstance(x, Buffer) and x.values is not None:
        return x.values
    if isinstance(x, Field) or not all(map(constant, x.flat)):
        return None
    return np.array([lane.item() for lane in x.flat], x.flat[0].dtype if x.size else np.int32).reshape(x.shape)


def by_entries(scope: Scope, aval, one) -> Array:
    """An array by its entries, written out if they are few."""
    if aval.size <= scope.small:
        return array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)
    return stored(scope, Formula(aval.shape, aval.dtype, OWN, one))
