"""Sums, products and extremes over axes, contractions, running sums. Terms are taken in their order, whatever the vector's width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.codegen.field import UNROLLED, Array, Field, Formula, allocate, array_level, entry, everywhere, stored
from bismut.programs.codegen.frame import Scope, Variable
from bismut.programs.codegen.indices import plus, times
from bismut.programs.codegen.lane import SAME, SHARED, array_of
from bismut.programs.codegen.loop_carry import is_shared, relabelled
from bismut.programs.jaxprs import as_function
from bismut.programs.operation import EACH, EVERYWHERE, NOWHERE, Operation, decomposition, operation, register, result
from bismut.programs.operations.elementwise import apply


def neutral(name: str, dtype: np.dtype) -> Any:
    """What an operation makes of nothing."""
    if name in ("max", "min"):
        info = np.iinfo(dtype) if dtype.kind in "iu" else None
        low, high = (info.min, info.max) if info else (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
        return dtype.type(low if name == "max" else high)
    if name == "and":
        return ~dtype.type(0)
    return dtype.type({"add": 0, "mul": 1, "or": 0, "xor": 0}[name])


class _Reduction(Operation):
    def __init__(self, name: str, combine: str, function: Callable, affine_in: slice = NOWHERE):
        self.names, self.combine, self.function, self.affine_in = (name,), combine, function, affine_in
        register(self)

    def evaluate(self, equation, inputs):
        return [np.asarray(self.function(inputs[0], axis=tuple(equation.params["axes"])), result(equation).dtype)]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, axes, aval, name = inputs[0], tuple(map(int, equation.params["axes"])), result(equation), self.combine
        if not isinstance(x, Field):
            return [_written_out(scope, x, axes, name, aval)]
        if is_shared(inputs, scope):
            return relabelled([_looped(scope.shared(), x, axes, name, aval)])
        return [_looped(scope, x, axes, name, aval)]


class _Extreme(_Reduction):
    """The largest or the smallest; of nothing, what nothing is less or more than. Of two zeros +0 is the larger, and NumPy takes any."""

    def evaluate(self, equation, inputs):
        x, largest = inputs[0], self.combine == "max"
        axes = tuple(equation.params["axes"])
        values = np.asarray(self.function(x, axis=axes, initial=neutral(self.combine, x.dtype)), result(equation).dtype)
        if x.dtype.kind == "f" and (values == 0).any():
            positive, negative = np.any((x == 0) & ~np.signbit(x), axes), np.any((x == 0) & np.signbit(x), axes)
            values = np.where(values == 0, np.where(positive if largest else ~negative, x.dtype.type(0), x.dtype.type(-0.0)), values)
        return [values]


_Reduction("reduce_sum", "add", np.sum, EVERYWHERE)
_Reduction("reduce_prod", "mul", np.prod)
_Reduction("reduce_and", "and", np.bitwise_and.reduce)
_Reduction("reduce_or", "or", np.bitwise_or.reduce)
_Reduction("reduce_xor", "xor", np.bitwise_xor.reduce)
_Extreme("reduce_max", "max", np.max)
_Extreme("reduce_min", "min", np.min)


def _written_out(scope: Scope, x: np.ndarray, axes, name: str, aval) -> np.ndarray:
    free = [k for k in range(x.ndim) if k not in axes]
    rows = x.transpose([*axes, *free]).reshape(int(np.prod([x.shape[k] for k in axes])), *aval.shape)
    if not len(rows):
        return array_of([neutral(name, np.dtype(aval.dtype))] * aval.size, aval.shape)
    total = rows[0] if isinstance(rows[0], np.ndarray) else array_of([rows[0]], ())
    for row in rows[1:]:
        total = apply(scope, name, [total, row if isinstance(row, np.ndarray) else array_of([row], ())], {}, aval.dtype)
    return total


def _looped(scope: Scope, x: Field, axes, name: str, aval) -> Array:
    """Few results are variables that one loop over the reduced axes adds to; many are computed one after the other."""
    free = [k for k in range(len(x.shape)) if k not in axes]
    reduced, dtype = [x.shape[k] for k in axes], np.dtype(aval.dtype)

    def position(outer, inner):
        place: list = [None] * len(x.shape)
        for k, i in zip((*free, *axes), (*outer, *inner), strict=True):
            place[k] = i
        return place

    def sums(at: Scope, outers: list) -> list:
        totals = [Variable(at, dtype) for _ in outers]
        for total in totals:
            total.set(at, neutral(name, dtype))

        def add(inner: Scope, index) -> None:
            for total, outer in zip(totals, outers, strict=True):
                total.set(inner, inner.lane(name, [total.get(inner), x.at(inner, position(outer, index))]))

        everywhere(at, reduced, add)
        return [total.get(at, min(x.level, SAME)) for total in totals]

    if aval.size <= UNROLLED:
        return array_of(sums(scope, list(np.ndindex(*aval.shape))), aval.shape)
    x = stored(scope, x) if int(np.prod(reduced)) > UNROLLED else x
    out = allocate(scope, aval.shape, dtype, min(x.level, SAME))
    everywhere(scope, aval.shape, lambda inner, index: out.put(inner, index, sums(inner, [index])[0]))
    return out


_PRODUCTS = 2**20  # of a contraction that are formed at once, in NumPy


def _arranged(x: np.ndarray, batch: tuple, contracted: tuple) -> np.ndarray:
    """Axes (batch, others, contracted), each kind as one."""
    others = [k for k in range(x.ndim) if k not in (*batch, *contracted)]
    count = lambda axes: int(np.prod([x.shape[k] for k in axes]))
    return np.ascontiguousarray(x.transpose([*batch, *others, *contracted])).reshape(count(batch), count(others), count(contracted))


_TOGETHER = 4  # sums of a contraction that are added up side by side: each term of a vector is read once for all of them, and none waits for another


@operation("dot_general")
class _Dot(Operation):
    affine_in = EACH

    def evaluate(self, equation, inputs):
        """Products, then their sum: `einsum` and BLAS take terms in an order that depends on the processor, and may fuse them."""
        (of_a, of_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
        kind = np.dtype(result(equation).dtype)
        a, b = (_arranged(np.asarray(x, kind), batch, of) for x, batch, of in zip(inputs, (batch_a, batch_b), (of_a, of_b), strict=True))
        a, b = a[:, :, None], b[:, None]
        depth, each = a.shape[-1], a.shape[0] * a.shape[1] * b.shape[2]
        together = max(1, _PRODUCTS // max(each, 1))
        total = np.zeros((a.shape[0], a.shape[1], b.shape[2]), kind)
        for k in range(0, depth, together):
            terms = a[..., k : k + together] * b[..., k : k + together]
            total = total | terms.any(-1) if kind.kind == "b" else total + terms.sum(-1, dtype=kind)
        return [total.reshape(result(equation).shape)]

    def cost(self, equation):
        (left, _), _ = equation.params["dimension_numbers"]
        return super().cost(equation) * int(np.prod([equation.invars[0].aval.shape[k] for k in left]))

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        (lc, rc), (lb, rb) = equation.params["dimension_numbers"]
        a, b = inputs
        aval, kind = result(equation), np.dtype(result(equation).dtype)
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
            sum_ = Variable(inner, aval.dtype)
            sum_.set(inner, kind.type(0))
            everywhere(inner, depth, lambda at, summed: sum_.set(at, at.lane(add, [sum_.get(at), at.lane(multiply, factors(at, index, summed))])))
            return sum_.get(inner)

        if not large:
            return [array_of([product(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)]
        level = min(array_level(a), array_level(b))
        if int(np.prod(depth)) > UNROLLED and aval.shape and aval.shape[-1] >= _TOGETHER and scope.wide and level != SHARED:

            def some(at: Scope, outer: tuple, first: Any, count: int) -> None:
                places = [(*outer, plus(at.builder, first, k)) for k in range(count)]
                sums = [Variable(at, aval.dtype) for _ in places]
                for sum_ in sums:
                    sum_.set(at, kind.type(0))

                def add_terms(inner: Scope, summed) -> None:
                    for place, sum_ in zip(places, sums, strict=True):
                        sum_.set(inner, inner.lane(add, [sum_.get(inner), inner.lane(multiply, factors(inner, place, summed))]))

                everywhere(at, depth, add_terms)
                for place, sum_ in zip(places, sums, strict=True):
                    out.put(at, place, sum_.get(at))

            def line(at: Scope, outer: tuple) -> None:
                rest = aval.shape[-1] % _TOGETHER
                with at.loop(aval.shape[-1] // _TOGETHER) as (inner, i):
                    some(inner, outer, times(inner.builder, i, _TOGETHER), _TOGETHER)
                if rest:
                    some(at, outer, aval.shape[-1] - rest, rest)

            out = allocate(scope, aval.shape, aval.dtype, min(level, SAME))
            everywhere(scope, aval.shape[:-1], line)
            return [out]
        formula = Formula(aval.shape, aval.dtype, level, product)
        return [stored(scope, formula) if int(np.prod(depth)) > 1 and aval.shape else formula if aval.shape else array_of([product(scope, ())], ())]


class _Running(Operation):
    """A reduction of all entries up to each."""

    def __init__(self, name: str, combine: str, affine_in: slice = NOWHERE):
        self.names, self.combine, self.affine_in = (name,), combine, affine_in
        register(self)

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, axis, back = inputs[0], equation.params["axis"], equation.params["reverse"]
        name = self.combine
        if isinstance(x, Field):
            return [_running(scope, x, axis, back, name, result(equation))]
        if not x.size:
            return [x]
        rows = np.moveaxis(x, axis, 0)
        rows, out = rows[::-1] if back else rows, []
        for k in range(len(rows)):
            row = rows[k] if isinstance(rows[k], np.ndarray) else array_of([rows[k]], ())
            out.append(row if not out else apply(scope, name, [out[-1], row], {}, result(equation).dtype))
        return [np.moveaxis(np.stack(out[::-1] if back else out), 0, axis)]


_Running("cumsum", "add", EVERYWHERE)
_Running("cumprod", "mul")
_Running("cummax", "max")
_Running("cummin", "min")


def _running(scope: Scope, x: Field, axis: int, back: bool, name: str, aval) -> Array:
    out, n, dtype = allocate(scope, aval.shape, aval.dtype, min(x.level, SAME)), aval.shape[axis], np.dtype(aval.dtype)

    def line(inner: Scope, index) -> None:
        total = Variable(inner, dtype)
        total.set(inner, neutral(name, dtype))
        with inner.loop(n) as (at, i):
            k = at.builder.sub(i.type(n - 1), i) if back else i
            place = (*index[:axis], k, *index[axis:])
            total.set(at, at.lane(name, [total.get(at), x.at(at, place)]))
            out.put(at, place, total.get(at))

    everywhere(scope, [m for k, m in enumerate(aval.shape) if k != axis], line)
    return out


@operation("argmax", "argmin")
class _Argument(Operation):
    jumps = True

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        x, (axis,), aval = inputs[0], equation.params["axes"], result(equation)
        sign = "gt" if equation.primitive.name == "argmax" else "lt"
        kind = np.dtype(aval.dtype)

        def one(inner: Scope, index) -> Any:
            place = lambda k: (*index[:axis], k, *index[axis:])
            best, winner = entry(inner, x, place(0)), kind.type(0)
            for k in range(1, x.shape[axis]):
                value = entry(inner, x, place(k))
                is_nan = inner.lane("ne", [value, value]) if np.dtype(value.dtype).kind == "f" else np.bool_(False)
                was_nan = inner.lane("ne", [best, best]) if np.dtype(value.dtype).kind == "f" else np.bool_(False)
                better = inner.lane("and", [inner.lane("or", [inner.lane(sign, [value, best]), is_nan]), inner.lane("not", [was_nan])])
                best = inner.lane("select_n", [better, best, value])
                winner = inner.lane("select_n", [better, winner, kind.type(k)])
            return winner

        return [array_of([one(scope, index) for index in np.ndindex(*aval.shape)], aval.shape)]


@decomposition("cumlogsumexp")
def _running_logsumexp(x, *, axis, reverse):
    def add(total, row):
        total = jnp.logaddexp(total, row)
        return total, total

    rows = jnp.moveaxis(x, axis, 0)
    return jnp.moveaxis(jax.lax.scan(add, jnp.full_like(rows[0], -jnp.inf), rows, reverse=reverse)[1], 0, axis)


@decomposition("reduce")
def _reduce(*inputs, jaxpr, dimensions, **_):
    """By a function; terms are combined in their order."""
    half = len(inputs) // 2
    operands, start = inputs[:half], inputs[half:]
    combine = as_function(jaxpr)
    rest = [k for k in range(operands[0].ndim) if k not in dimensions]
    rows = [x.transpose([*dimensions, *rest]).reshape(-1, *(x.shape[k] for k in rest)) for x in operands]
    shape = rows[0].shape[1:]
    of_one = jax.vmap(combine) if shape else combine
    flat = [x.reshape(len(x), -1) if shape else x for x in rows]
    begin = [jnp.broadcast_to(s, x.shape[1:]) for s, x in zip(start, flat, strict=True)]
    total, _ = jax.lax.scan(lambda now, row: (of_one(*now, *row), None), begin, flat)
    return [x.reshape(shape) for x in total]
