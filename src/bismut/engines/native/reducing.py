"""Sums, products and extremes over axes, and contractions. Terms are taken in their order, whatever the vector's width."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.engines.native.control import is_shared, relabelled
from bismut.engines.native.elementwise import apply
from bismut.engines.native.field import UNROLLED, Array, Field, Formula, allocate, array_level, entry, everywhere, stored
from bismut.engines.native.frame import Scope, Variable
from bismut.engines.native.lane import SAME, array_of
from bismut.engines.native.walk import rule

_OPERATIONS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
    "reduce_xor": "xor",
}


def neutral(name: str, dtype: np.dtype) -> Any:
    """What an operation makes of nothing."""
    if name in ("max", "min"):
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return dtype.type(low if name == "max" else high)
    if name == "and":
        return ~dtype.type(0)
    return dtype.type({"add": 0, "mul": 1, "or": 0, "xor": 0}[name])


@rule(*_OPERATIONS)
def _(scope, equation, inputs):
    x, axes, aval = inputs[0], tuple(map(int, equation.params["axes"])), equation.outvars[0].aval
    name = _OPERATIONS[equation.primitive.name]
    if not isinstance(x, Field):
        return [_written_out(scope, x, axes, name, aval)]
    if is_shared(inputs, scope):
        return relabelled([_looped(scope.shared(), x, axes, name, aval)])
    return [_looped(scope, x, axes, name, aval)]


def _written_out(scope: Scope, x: np.ndarray, axes, name: str, aval) -> np.ndarray:
    kept = [k for k in range(x.ndim) if k not in axes]
    rows = x.transpose([*axes, *kept]).reshape(int(np.prod([x.shape[k] for k in axes])), *aval.shape)
    if not len(rows):
        return array_of([neutral(name, np.dtype(aval.dtype))] * aval.size, aval.shape)
    total = rows[0] if isinstance(rows[0], np.ndarray) else array_of([rows[0]], ())
    for row in rows[1:]:
        total = apply(scope, name, [total, row if isinstance(row, np.ndarray) else array_of([row], ())], {}, aval.dtype)
    return total


def _looped(scope: Scope, x: Field, axes, name: str, aval) -> Array:
    """Few results are variables that one loop over the reduced axes adds to; many are computed one after the other."""
    kept = [k for k in range(len(x.shape)) if k not in axes]
    reduced, dtype = [x.shape[k] for k in axes], np.dtype(aval.dtype)

    def whole(outer, inner):
        place: list = [None] * len(x.shape)
        for k, i in zip((*kept, *axes), (*outer, *inner), strict=True):
            place[k] = i
        return place

    def sums(at: Scope, outers: list) -> list:
        totals = [Variable(at.frame, dtype) for _ in outers]
        for total in totals:
            total.set(at, neutral(name, dtype))

        def add(inner: Scope, index) -> None:
            for total, outer in zip(totals, outers, strict=True):
                total.set(inner, inner.lane(name, [total.get(inner), x.at(inner, whole(outer, index))]))

        everywhere(at, reduced, add)
        return [total.get(at, min(x.level, SAME)) for total in totals]

    if aval.size <= UNROLLED:
        return array_of(sums(scope, list(np.ndindex(*aval.shape))), aval.shape)
    x = stored(scope, x) if int(np.prod(reduced)) > UNROLLED else x
    out = allocate(scope, aval.shape, dtype, min(x.level, SAME))
    everywhere(scope, aval.shape, lambda inner, index: out.put(inner, index, sums(inner, [index])[0]))
    return out


@rule("dot_general")
def _(scope, equation, inputs):
    (lc, rc), (lb, rb) = equation.params["dimension_numbers"]
    a, b = inputs
    aval, kind = equation.outvars[0].aval, np.dtype(equation.outvars[0].aval.dtype)
    add, multiply = ("or", "and") if kind.kind == "b" else ("add", "mul")
    left = [k for k in range(len(a.shape)) if k not in (*lc, *lb)]
    right = [k for k in range(len(b.shape)) if k not in (*rc, *rb)]
    depth = [a.shape[k] for k in lc]
    large = isinstance(a, Field) or isinstance(b, Field) or aval.size > scope.small
    if large:
        a, b = (stored(scope, x) if isinstance(x, Field) else x for x in (a, b))

    def factors(inner: Scope, index, summed) -> list:
        one, other = [None] * len(a.shape), [None] * len(b.shape)
        batch, rows, columns = index[: len(lb)], index[len(lb) : len(lb) + len(left)], index[len(lb) + len(left) :]
        for places, values in (((one, lb), batch), ((other, rb), batch), ((one, left), rows), ((other, right), columns)):
            for k, i in zip(places[1], values, strict=True):
                places[0][k] = i
        for k, l, i in zip(lc, rc, summed, strict=True):
            one[k], other[l] = i, i
        pair = entry(inner, a, one), entry(inner, b, other)
        return [x if x.dtype == kind else inner.lane("convert_element_type", [x], {"new_dtype": kind}) for x in pair]

    def product(inner: Scope, index) -> Any:
        if int(np.prod(depth)) <= UNROLLED or not large:
            total = kind.type(0)
            for summed in np.ndindex(*depth):
                total = inner.lane(add, [total, inner.lane(multiply, factors(inner, index, summed))])
            return total
        sum_ = Variable(inner.frame, aval.dtype)
        sum_.set(inner, kind.type(0))
        everywhere(inner, depth, lambda at, summed: sum_.set(at, at.lane(add, [sum_.get(at), at.lane(multiply, factors(at, index, summed))])))
        return sum_.get(inner)

    if not large:
        return [array_of([product(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)]
    formula = Formula(aval.shape, aval.dtype, min(array_level(a), array_level(b)), product)
    return [stored(scope, formula) if int(np.prod(depth)) > 1 and aval.shape else formula if aval.shape else array_of([product(scope, ())], ())]


@rule("cumsum", "cumprod", "cummax", "cummin")
def _(scope, equation, inputs):
    x, axis, back = inputs[0], equation.params["axis"], equation.params["reverse"]
    name = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}[equation.primitive.name]
    if isinstance(x, Field):
        return [_running(scope, x, axis, back, name, equation.outvars[0].aval)]
    if not x.size:
        return [x]
    rows = np.moveaxis(x, axis, 0)
    rows, out = rows[::-1] if back else rows, []
    for k in range(len(rows)):
        row = rows[k] if isinstance(rows[k], np.ndarray) else array_of([rows[k]], ())
        out.append(row if not out else apply(scope, name, [out[-1], row], {}, equation.outvars[0].aval.dtype))
    return [np.moveaxis(np.stack(out[::-1] if back else out), 0, axis)]


def _running(scope: Scope, x: Field, axis: int, back: bool, name: str, aval) -> Array:
    out, n, dtype = allocate(scope, aval.shape, aval.dtype, min(x.level, SAME)), aval.shape[axis], np.dtype(aval.dtype)

    def line(inner: Scope, index) -> None:
        total = Variable(inner.frame, dtype)
        total.set(inner, neutral(name, dtype))
        with inner.loop(n) as (at, i):
            k = at.builder.sub(i.type(n - 1), i) if back else i
            place = (*index[:axis], k, *index[axis:])
            total.set(at, at.lane(name, [total.get(at), x.at(at, place)]))
            out.put(at, place, total.get(at))

    everywhere(scope, [m for k, m in enumerate(aval.shape) if k != axis], line)
    return out


@rule("argmax", "argmin")
def _(scope, equation, inputs):
    x, (axis,), aval = inputs[0], equation.params["axes"], equation.outvars[0].aval
    sign = "gt" if equation.primitive.name == "argmax" else "lt"
    kind = np.dtype(aval.dtype)

    def one(inner: Scope, index) -> Any:
        place = lambda k: (*index[:axis], k, *index[axis:])
        best, found = entry(inner, x, place(0)), kind.type(0)
        for k in range(1, x.shape[axis]):
            value = entry(inner, x, place(k))
            is_nan = inner.lane("ne", [value, value]) if np.dtype(value.dtype).kind == "f" else np.bool_(False)
            was_nan = inner.lane("ne", [best, best]) if np.dtype(value.dtype).kind == "f" else np.bool_(False)
            better = inner.lane("and", [inner.lane("or", [inner.lane(sign, [value, best]), is_nan]), inner.lane("not", [was_nan])])
            best = inner.lane("select_n", [better, best, value])
            found = inner.lane("select_n", [better, found, kind.type(k)])
        return found

    return [array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)]
