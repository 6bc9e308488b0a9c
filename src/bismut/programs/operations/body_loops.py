"""Loops over bodies and pairs (`bismut.body_loops`) as loops of the machine: an item is written once, whatever their number.

each    for k:  y_k = f(x_k; c),  s += g(x_k; c)
pairs   for i:  for j > i:  s += g(x_i, x_j),  z_i += a,  z_j += b,  y_p = f        z_i in registers while j runs
bonds   for p:  (i, j) from a table

Where lanes are bodies, `each` takes as many items at once, and pairs within a reach are found in lists (`neighbour_pairs`). In a short step, which is
written out (`Frame.short`), items are too: three atoms need no memory, and what is known of an item is folded. Sums are made in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from bismut.programs.codegen.accumulators import PortionSums, add, clear, sum_of
from bismut.programs.codegen.field import Array, Buffer, Field, allocate, fill, lanes, stored
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.indices import LONG
from bismut.programs.codegen.lane import OWN, SHARED, array_of, constants, first_of
from bismut.programs.codegen.loop_carry import is_shared, ready, relabelled, row_of
from bismut.programs.codegen.neighbour_pairs import near_enough, near_pairs
from bismut.programs.codegen.walk import run
from bismut.programs.evaluation import run as run_numpy
from bismut.programs.jaxprs import expansion
from bismut.programs.layout import LoopLayout
from bismut.programs.operation import Operation, operation
from bismut.programs.operations.pair_portions import evaluate as evaluate_in_portions
from bismut.programs.operations.pair_portions import in_portions
from bismut.programs.structure import items

FEW = 2  # items up to which a loop is written out
FEW_ITEMS = (
    8  # and in a short step: three atoms, four bodies and their six pairs, a chain of eight links; draws and watches may have longer loops there
)


class _OverItems(Operation):
    def in_loops(self, equation):
        return items(equation) > FEW_ITEMS


@operation("each")
class _Each(_OverItems):
    def evaluate(self, equation, inputs):
        return run_numpy(expansion(equation), inputs)

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if is_shared(inputs, scope):
            return relabelled(self.emit(scope.shared(), equation, inputs))
        layout, jaxpr = equation.params["layout"], equation.params["jaxpr"]
        shared, _, own = layout.operands(inputs)
        avals, _, _, of_items = layout.returns(jaxpr.out_avals)
        if layout.length <= (FEW_ITEMS if scope.writes_out else FEW) and all(aval.size <= scope.small for aval in jaxpr.out_avals):
            return _each_written_out(scope, layout, jaxpr, shared, own)
        across = not scope.wide and layout.length >= scope.frame.width
        shared, own = [ready(scope, x) for x in shared], [side_by_side(scope, x) if across else stored(scope, x) for x in own]
        out = [allocate(scope, (layout.length, *aval.shape), aval.dtype, OWN) for aval in of_items]

        def work(body: Scope, totals: list, *portion: Any) -> None:
            with body.items(layout.length, *portion) as (at, k, fresh):
                inner = at.item()
                sums, _, _, values = layout.returns(run(inner, jaxpr, [*shared, *(row_of(inner, x, k) for x in own)]))
                for total, x in zip(totals, sums, strict=True):
                    total.add(inner, x, fresh)
                for target, x in zip(out, values, strict=True):
                    fill(inner, target.part(inner, k), x)

        if not across:
            totals = [sum_of(scope, aval) for aval in avals]
            work(scope, totals)
            return [*(total.get(scope) for total in totals), *out]
        sums = PortionSums(scope, avals, layout.length)
        with scope.portions(layout.length) as (body, portion, first, after):
            work(body, sums.begin(body), first, after)
            sums.end(body, portion)
        return [*sums.get(scope), *out]


def side_by_side(scope: Scope, x: Array) -> Field:
    """An array over bodies whose entries can be read for many at once. What is shared is laid out for that once; a formula is evaluated there."""
    x = x if isinstance(x, Field) else stored(scope, x)
    if x.level < SHARED or not scope.hoists or (isinstance(x, Buffer) and x.strides[0] == 1):
        return x
    early = scope.shared()
    copy = allocate(early, x.shape, x.dtype, SHARED)
    fill(early, copy, x)
    return copy


def _each_written_out(scope: Scope, layout: LoopLayout, jaxpr, shared: Sequence[Array], own: Sequence[Array]) -> list[Array]:
    """A loop over a few items, without the loop."""
    rows = [lanes(scope, x) for x in own]
    items = [[lanes(scope, x) for x in run(scope, jaxpr, [*shared, *(_row(x, k) for x in rows)])] for k in range(layout.length)]
    totals, _, _, values = layout.returns([list(parts) for parts in zip(*items, strict=True)])
    return [*(_sum(scope, parts) for parts in totals), *(np.stack(parts) for parts in values)]


def _pairs_written_out(
    scope: Scope, layout: LoopLayout, jaxpr, shared: Sequence[Array], bodies: Sequence[Array], own: Sequence[Array]
) -> list[Array]:
    """A loop over a few pairs, without the loop: for each body what it gets as j, in the order of i, and then the sum of what it gets as i."""
    bodies, own = [lanes(scope, x) for x in bodies], [lanes(scope, x) for x in own]
    avals, of_i, _, of_items = layout.returns(jaxpr.out_avals)
    bonded = layout.bonds is not None
    met = zip(layout.bonds.i.tolist(), layout.bonds.j.tolist(), strict=True) if layout.bonds is not None else combinations(range(layout.length), 2)
    totals: list[list] = [[] for _ in avals]
    as_j, as_i = ([[[] for _ in range(layout.length)] for _ in of_i] for _ in range(2))
    values: list[list] = [[None] * layout.pairs for _ in of_items]
    for number, (i, j) in enumerate(met):
        p = number if bonded else _stored_at(i, j, layout.length)
        arguments = [*shared, *(_row(x, i) for x in bodies), *(_row(x, j) for x in bodies), *(_row(x, p) for x in own)]
        total, for_i, for_j, item = layout.returns([lanes(scope, x) for x in run(scope, jaxpr, arguments)])
        for parts, x in zip(totals, total, strict=True):
            parts.append(x)
        for at_j, at_i, from_j, from_i in zip(as_j, as_i, for_j, for_i, strict=True):
            at_j[j].append(from_j)
            (at_j if bonded else at_i)[i].append(from_i)
        for row, x in zip(values, item, strict=True):
            row[p] = x
    zero = lambda aval: array_of([np.dtype(aval.dtype).type(0)] * aval.size, aval.shape)
    of_body = lambda aval, at_j, at_i: _sum(scope, [*at_j, *([_sum(scope, at_i)] if at_i else [])]) if at_j or at_i else zero(aval)
    sums = [np.stack([of_body(aval, *both) for both in zip(at_j, at_i, strict=True)]) for aval, at_j, at_i in zip(of_i, as_j, as_i, strict=True)]
    return [
        *(_sum(scope, parts) if parts else zero(aval) for aval, parts in zip(avals, totals, strict=True)),
        *sums,
        *(np.stack(row) if row else array_of([], (0, *aval.shape)) for aval, row in zip(of_items, values, strict=True)),
    ]


def _row(x: np.ndarray, k: int) -> np.ndarray:
    return x[k] if isinstance(x[k], np.ndarray) else array_of([x[k]], ())


def _sum(scope: Scope, parts: Sequence[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = array_of([scope.lane("add", [a, b]) for a, b in zip(total.flat, part.flat, strict=True)], total.shape)
    return total


@operation("pairs")
class _PairLoop(_OverItems):
    def evaluate(self, equation, inputs):
        if in_portions(equation):
            return evaluate_in_portions(equation, inputs, run_numpy)
        return run_numpy(expansion(equation), inputs)

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if is_shared(inputs, scope):
            return relabelled(self.emit(scope.shared(), equation, inputs))
        layout, jaxpr = equation.params["layout"], equation.params["jaxpr"]
        shared, bodies, own = layout.operands(inputs)
        if scope.frame.across and not scope.wide and scope.hoists and near_enough(equation):
            return near_pairs(scope, layout, jaxpr, [ready(scope, x) for x in shared], bodies)
        if scope.writes_out and items(equation) <= FEW_ITEMS and all(aval.size <= scope.small for aval in jaxpr.out_avals):
            return _pairs_written_out(scope, layout, jaxpr, shared, bodies, own)
        shared, bodies, own = [ready(scope, x) for x in shared], [stored(scope, x) for x in bodies], [stored(scope, x) for x in own]
        avals, of_i, _, of_items = layout.returns(jaxpr.out_avals)
        totals = [sum_of(scope, aval) for aval in avals]
        sums = [allocate(scope, (layout.length, *aval.shape), aval.dtype, OWN) for aval in of_i]
        out = [allocate(scope, (layout.pairs, *aval.shape), aval.dtype, OWN) for aval in of_items]
        for target in sums:
            clear(scope, target)

        def one(inner: Scope, at_i: list, j, p) -> list:
            """One pair; what it adds to body i is returned."""
            inner = inner.item()
            at_j = [row_of(inner, x, j) for x in bodies]
            item = [row_of(inner, x, p) for x in own]
            total, for_i, for_j, values = layout.returns(run(inner, jaxpr, [*shared, *at_i, *at_j, *item]))
            for sum_, x in zip(totals, total, strict=True):
                sum_.add(inner, x)
            for target, x in zip(sums, for_j, strict=True):
                add(inner, target.part(inner, j), x)
            for target, x in zip(out, values, strict=True):
                fill(inner, target.part(inner, p), x)
            return for_i

        if layout.bonds is not None:
            tables = [stored(scope, constants(x)) for x in (layout.bonds.i, layout.bonds.j)]
            with scope.loop(len(layout.bonds.i)) as (inner, p):
                i, j = (first_of(inner.code, table.at(inner, (p,))) for table in tables)
                for_i = one(inner, [row_of(inner.item(), x, i) for x in bodies], j, p)
                for target, x in zip(sums, for_i, strict=True):
                    add(inner, target.part(inner, i), x)
        else:
            with scope.loop(layout.length - 1) as (outer, i):
                outer = outer.item()  # noqa: PLW2901
                at_i = [row_of(outer, x, i) for x in bodies]
                mine = [sum_of(outer, aval) for aval in of_i]
                with outer.loop(layout.length, outer.builder.add(i, LONG(1))) as (inner, j):
                    p = _number(inner, i, j, layout.length) if own or out else None
                    for sum_, x in zip(mine, one(inner, at_i, j, p), strict=True):
                        sum_.add(inner, x)
                for target, sum_ in zip(sums, mine, strict=True):
                    add(outer, target.part(outer, i), sum_.get(outer))
        return [*(total.get(scope) for total in totals), *sums, *out]


def _stored_at(i: int, j: int, count: int) -> int:
    """Where the pair i < j is stored (`pair_number`)."""
    return (j - i - 1) * count + i if 2 * (j - i) <= count else (i - j + count - 1) * count + j


def _number(scope: Scope, i, j, count: int):
    """The same as code."""
    b = scope.builder
    distance = b.sub(j, i)
    near = b.add(b.mul(b.sub(distance, LONG(1)), LONG(count)), i)
    far = b.add(b.mul(b.sub(LONG(count - 1), distance), LONG(count)), j)
    return b.select(b.icmp_signed("<=", b.mul(distance, LONG(2)), LONG(count)), near, far)
