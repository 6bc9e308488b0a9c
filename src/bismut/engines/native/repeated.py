"""Loops over bodies and pairs (`bismut.repetition`) as loops of the machine: an item is written once, whatever their number.

each    for k:  y_k = f(x_k; c),  s += g(x_k; c)
pairs   for i:  for j > i:  s += g(x_i, x_j),  z_i += a,  z_j += b,  y_p = f        z_i in registers while j runs
bonds   for p:  (i, j) from a table

Where lanes are bodies, `each` takes as many items at once, and pairs within a reach are found in lists (`nearby`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bismut.engines.native.control import _ready, is_shared, relabelled, row_of
from bismut.engines.native.field import Array, Field, Stored, allocate, fill, lanes, stored
from bismut.engines.native.frame import Scope
from bismut.engines.native.lane import OWN, SHARED, array_of, constants, first_of
from bismut.engines.native.nearby import near_enough, near_pairs
from bismut.engines.native.places import LONG
from bismut.engines.native.summing import add, clear, sum_of
from bismut.engines.native.walk import rule, run
from bismut.repetition import Layout, items

FEW = 2  # items up to which a loop is written out


@rule("each")
def _each(scope: Scope, equation, inputs):
    if is_shared(inputs, scope):
        return relabelled(_each(scope.shared(), equation, inputs))
    layout, jaxpr = equation.params["layout"], equation.params["jaxpr"]
    shared, _, own = layout.operands(inputs)
    avals, _, _, kept = layout.returns(jaxpr.out_avals)
    if layout.length <= FEW and all(aval.size <= scope.small for aval in jaxpr.out_avals):
        return _written_out(scope, layout, jaxpr, shared, own)
    apart = not scope.wide and layout.length >= scope.frame.width
    shared, own = [_ready(scope, x) for x in shared], [side_by_side(scope, x) if apart else stored(scope, x) for x in own]
    totals = [sum_of(scope, aval, apart) for aval in avals]
    out = [allocate(scope, (layout.length, *aval.shape), aval.dtype, OWN) for aval in kept]
    with scope.items(layout.length) as (body, k, fresh):
        inner = body.item()
        sums, _, _, values = layout.returns(run(inner, jaxpr, [*shared, *(row_of(inner, x, k) for x in own)]))
        for total, x in zip(totals, sums, strict=True):
            total.add(inner, x, fresh)
        for target, x in zip(out, values, strict=True):
            fill(inner, target.part(inner, k), x)
    return [*(total.get(scope) for total in totals), *out]


def side_by_side(scope: Scope, x: Array) -> Field:
    """An array over bodies whose entries can be read for many at once. What is shared is laid out for that once; a formula is evaluated there."""
    x = x if isinstance(x, Field) else stored(scope, x)
    if x.level < SHARED or not scope.hoists or (isinstance(x, Stored) and x.strides[0] == 1):
        return x
    early = scope.shared()
    copy = allocate(early, x.shape, x.dtype, SHARED)
    fill(early, copy, x)
    return copy


def _written_out(scope: Scope, layout: Layout, jaxpr, shared: Sequence[Array], own: Sequence[Array]) -> list[Array]:
    """A loop over one or two items, without the loop."""
    rows = [lanes(scope, x) for x in own]
    found = []
    for k in range(layout.length):
        row = [x[k] if isinstance(x[k], np.ndarray) else array_of([x[k]], ()) for x in rows]
        found.append([lanes(scope, x) for x in run(scope, jaxpr, [*shared, *row])])
    outputs = []
    for n, parts in enumerate(zip(*found, strict=True)):
        if n >= layout.totals:
            outputs.append(np.stack(parts))
            continue
        total = parts[0]
        for part in parts[1:]:
            total = array_of([scope.lane("add", [a, b]) for a, b in zip(total.flat, part.flat, strict=True)], total.shape)
        outputs.append(total)
    return outputs


@rule("pairs")
def _pairs(scope: Scope, equation, inputs):
    if is_shared(inputs, scope):
        return relabelled(_pairs(scope.shared(), equation, inputs))
    layout, jaxpr = equation.params["layout"], equation.params["jaxpr"]
    shared, bodies, own = layout.operands(inputs)
    if scope.frame.across and not scope.wide and scope.hoists and near_enough(equation):
        return near_pairs(scope, layout, jaxpr, [_ready(scope, x) for x in shared], bodies)
    shared, bodies, own = [_ready(scope, x) for x in shared], [stored(scope, x) for x in bodies], [stored(scope, x) for x in own]
    avals, of_i, _, kept = layout.returns(jaxpr.out_avals)
    totals = [sum_of(scope, aval) for aval in avals]
    sums = [allocate(scope, (layout.length, *aval.shape), aval.dtype, OWN) for aval in of_i]
    out = [allocate(scope, (items(equation.primitive, layout), *aval.shape), aval.dtype, OWN) for aval in kept]
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


def _number(scope: Scope, i, j, count: int):
    """Where the pair i < j is held (`pair_number`)."""
    b = scope.builder
    apart = b.sub(j, i)
    near = b.add(b.mul(b.sub(apart, LONG(1)), LONG(count)), i)
    far = b.add(b.mul(b.sub(LONG(count - 1), apart), LONG(count)), j)
    return b.select(b.icmp_signed("<=", b.mul(apart, LONG(2)), LONG(count)), near, far)
