"""Factors of larger matrices, as loops over memory.

    L Lᵀ = A,  L U = P A      for each column k: its pivot, its factors, and what they take from all that is right of it
    A x = b                   for each row i: x_i = (b_i − Σ_j A_ij x_j)/A_ii

Each number is made by the same operations in the same order as where matrices are written out (`linear_algebra`), so that the size from which loops
are used decides no bits. A few numbers are summed up side by side: none waits for another, and a factor that they share is read once. Pivots differ
between trajectories, each of which reads and writes at its own place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bismut.programs.codegen.access import read_at, write_at
from bismut.programs.codegen.field import Array, Buffer, allocate, array_level, entry, everywhere, lane_type, stored
from bismut.programs.codegen.frame import Scope, Variable
from bismut.programs.codegen.indices import LONG
from bismut.programs.codegen.lane import SAME, Lane

TOGETHER = 4  # numbers that are summed up side by side

Index = Any


def less_product(scope: Scope, a: Any, b: Any, c: Any) -> Any:
    """a − b c."""
    return scope.lane("sub", [a, scope.lane("mul", [b, c])])


def cholesky(scope: Scope, a: Array) -> list[Array]:
    """L; NaN where a is not positive definite."""
    n, kind = a.shape[-1], _kind(a).type
    out, bad = allocate(scope, a.shape, kind, _level(a)), Variable(scope, np.bool_)

    def finished(at: Scope, g: tuple, i: Index, j: Index) -> Any:
        above = at.lane("lt", [at.counted(i, np.int64), at.counted(j, np.int64)])
        value = at.lane("select_n", [bad.get(at), out.at(at, (*g, i, j)), kind(np.nan)])
        return at.lane("select_n", [above, value, kind(0)])

    def one(at: Scope, g: tuple) -> None:
        bad.set(at, np.bool_(False))
        with at.loop(n) as (column, j):

            def below(inner: Scope, rows: list) -> None:
                """Entries of the column, at the diagonal and below, before they are divided."""
                of_column = lambda deep, k: out.at(deep, (*g, j, k))
                totals = [entry(inner, a, (*g, i, j)) for i in rows]
                left = _less_products(inner, totals, j, 0, lambda deep, k: [(out.at(deep, (*g, i, k)), of_column(deep, k)) for i in rows])
                for i, total in zip(rows, left, strict=True):
                    out.put(inner, (*g, i, j), total)

            _in_portions(column, n, j, below)
            pivot = out.at(column, (*g, j, j))
            bad.set(column, column.lane("or", [bad.get(column), column.lane("le", [pivot, kind(0)])]))
            root = column.lane("sqrt", [pivot])
            out.put(column, (*g, j, j), root)
            with column.loop(n, column.builder.add(j, LONG(1))) as (row, i):
                out.put(row, (*g, i, j), row.lane("div", [out.at(row, (*g, i, j)), root]))
        with at.loop(n) as (row, i), row.loop(n) as (inner, j):
            out.put(inner, (*g, i, j), finished(inner, g, i, j))

    everywhere(scope, a.shape[:-2], one)
    return [out]


def lu(scope: Scope, a: Array) -> list[Array]:
    """L and U in one matrix, the row exchanged at each stage, and the order of rows that results."""
    batch, (n, m), kind, level = a.shape[:-2], a.shape[-2:], _kind(a), _level(a)
    stages = min(n, m)
    out = allocate(scope, a.shape, kind, level)
    pivots, order = allocate(scope, (*batch, stages), np.int32, level), allocate(scope, (*batch, n), np.int32, level)
    best, place = Variable(scope, kind), Variable(scope, np.int32)

    def one(at: Scope, g: tuple) -> None:
        with at.loop(n) as (row, i):
            order.put(row, (*g, i), row.counted(i, np.int32))
            with row.loop(m) as (inner, j):
                out.put(inner, (*g, i, j), entry(inner, a, (*g, i, j)))
        with at.loop(stages) as (stage, k):
            after = stage.builder.add(k, LONG(1))
            best.set(stage, stage.lane("abs", [out.at(stage, (*g, k, k))]))
            place.set(stage, stage.counted(k, np.int32))
            with stage.loop(n, after) as (row, i):
                size, before = row.lane("abs", [out.at(row, (*g, i, k))]), best.get(row)
                larger = row.lane("gt", [size, before])
                best.set(row, row.lane("select_n", [larger, before, size]))
                place.set(row, row.lane("select_n", [larger, place.get(row), row.counted(i, np.int32)]))
            pivots.put(stage, (*g, k), place.get(stage))
            _exchange(stage, order, (*g, k), (*g, place.get(stage)))
            with stage.loop(m) as (inner, j):
                _exchange(inner, out, (*g, k, j), (*g, place.get(inner), j))
            pivot = out.at(stage, (*g, k, k))
            with stage.loop(n, after) as (row, i):
                factor = row.lane("div", [out.at(row, (*g, i, k)), pivot])
                out.put(row, (*g, i, k), factor)
                with row.loop(m, after) as (inner, j):
                    out.put(inner, (*g, i, j), less_product(inner, out.at(inner, (*g, i, j)), factor, out.at(inner, (*g, k, j))))

    everywhere(scope, batch, one)
    return [out, pivots, order]


def triangular_solve(scope: Scope, a: Array, b: Array, lower: bool, transposed: bool, on_the_right: bool, unit: bool) -> list[Array]:
    """x with A x = b, or x A = b, which is Aᵀ xᵀ = bᵀ; A is a, or its transpose."""
    a, flip, lower = stored(scope, a), transposed != on_the_right, lower != (transposed != on_the_right)
    x = allocate(scope, b.shape, _kind(b), min(_level(a), _level(b)))
    n, columns = a.shape[-1], b.shape[-2] if on_the_right else b.shape[-1]
    place = lambda g, i, c: (*g, c, i) if on_the_right else (*g, i, c)

    def one(at: Scope, g: tuple) -> None:
        factor = lambda inner, i, j: a.at(inner, (*g, j, i) if flip else (*g, i, j))
        with at.loop(n) as (row, number):
            i = number if lower else row.builder.sub(LONG(n - 1), number)
            start, end = (0, i) if lower else (row.builder.add(i, LONG(1)), n)

            def solved(inner: Scope, of: list) -> None:
                def terms(deep: Scope, j: Index) -> list:
                    here = factor(deep, i, j)
                    return [(here, x.at(deep, place(g, j, c))) for c in of]

                left = _less_products(inner, [entry(inner, b, place(g, i, c)) for c in of], end, start, terms)
                for c, total in zip(of, left, strict=True):
                    x.put(inner, place(g, i, c), total if unit else inner.lane("div", [total, factor(inner, i, i)]))

            _in_portions(row, columns, 0, solved)

    everywhere(scope, b.shape[:-2], one)
    return [x]


def permutation(scope: Scope, pivots: Array, n: int) -> list[Array]:
    """The order of n rows that exchanges lead to."""
    order = allocate(scope, (*pivots.shape[:-1], n), np.int32, _level(pivots))

    def one(at: Scope, g: tuple) -> None:
        with at.loop(n) as (row, i):
            order.put(row, (*g, i), row.counted(i, np.int32))
        with at.loop(pivots.shape[-1]) as (stage, k):
            place = entry(stage, pivots, (*g, k))
            _exchange(stage, order, (*g, k), (*g, place))

    everywhere(scope, pivots.shape[:-1], one)
    return [order]


def _in_portions(scope: Scope, end: int, start: Index, body: Callable[[Scope, list], None]) -> None:
    """body(scope, indices) for start ... end − 1, a few at once while there are as many."""
    builder, first = scope.builder, LONG(start) if isinstance(start, int) else start
    turns = builder.sdiv(builder.sub(LONG(end), first), LONG(TOGETHER))
    with scope.loop(turns) as (inner, turn):
        k = builder.add(first, builder.mul(turn, LONG(TOGETHER)))
        body(inner, [builder.add(k, LONG(more)) for more in range(TOGETHER)])
    with scope.loop(end, builder.add(first, builder.mul(turns, LONG(TOGETHER)))) as (inner, k):
        body(inner, [k])


def _less_products(scope: Scope, totals: list, end: Index, start: Index, terms: Callable[[Scope, Index], list]) -> list:
    """t − Σ_k b_k c_k for a few t at once, in the order of k; terms(scope, k) are pairs of factors."""
    left = [Variable(scope, total.dtype) for total in totals]
    for variable, total in zip(left, totals, strict=True):
        variable.set(scope, total)
    with scope.loop(end, start) as (inner, k):
        for variable, (b, c) in zip(left, terms(inner, k), strict=True):
            variable.set(inner, less_product(inner, variable.get(inner), b, c))
    return [variable.get(scope) for variable in left]


def _exchange(scope: Scope, x: Buffer, here: tuple, there: tuple) -> None:
    """Two entries, of which each trajectory has the second at its own place."""
    position = [k if isinstance(k, Lane) else scope.counted(k, np.int64) for k in there]
    first, second = x.at(scope, here), read_at(scope, x, position)
    write_at(scope, x, position, first)
    x.put(scope, here, second)


def _kind(x: Array) -> np.dtype:
    return np.dtype(x.dtype) if not isinstance(x, np.ndarray) else lane_type(x)


def _level(x: Array) -> int:
    return min(array_level(x), SAME)
