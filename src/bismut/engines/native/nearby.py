"""Pairs within reach, from lists of neighbours, with lanes over the neighbours of a body.

    for i:  s += Σ_{j>i} g(x_i, x_j),    z_i = Σ_{j<i} b(x_j, x_i) + Σ_{j>i} a(x_i, x_j)        over those near i

Each pair is met twice, once from either side, so that nothing is added to a body but in its own row: no two lanes ever write to one place, and sums
over neighbours stay in registers. What a row holds is decided by where bodies are now (`neighbours`), whenever its list was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bismut.engines.native.control import row_of
from bismut.engines.native.field import Array, Stored, allocate, contiguous, fill, stored
from bismut.engines.native.frame import Scope
from bismut.engines.native.integers import stepping
from bismut.engines.native.lane import OWN
from bismut.engines.native.neighbours import Neighbours
from bismut.engines.native.places import LONG, Span
from bismut.engines.native.summing import sum_of
from bismut.engines.native.walk import run
from bismut.repetition import Layout, Reach

MANY = 256  # bodies from which on those within reach of each other are found by cells
_LINE = 64  # bytes that come from memory together


def near_enough(equation) -> bool:
    """Whether a list can be kept for a loop over pairs: many bodies within a reach, in space, and nothing that belongs to a pair alone."""
    layout = equation.params["layout"]
    if layout.bonds is not None or layout.reach is None or layout.length < MANY:
        return False
    _, bodies, own = layout.operands(equation.invars)
    positions = bodies[layout.reach.positions].aval
    kept = len(equation.outvars) - layout.totals - layout.sums
    return not own and not kept and positions.ndim == 2 and positions.shape[1] <= 3


def near_pairs(scope: Scope, layout: Layout, jaxpr, shared: Sequence[Array], operands: Sequence[Array]) -> list[Array]:
    """The results of the loop."""
    assert layout.reach is not None
    bodies = _side_by_side(scope, operands)
    x = bodies[layout.reach.positions]
    near = _list(scope, layout.length, layout.reach, x)
    near.refresh(scope, x)
    builder, width = scope.builder, scope.frame.width
    avals, of_i, _, _ = layout.returns(jaxpr.out_avals)
    totals = [sum_of(scope, aval, apart=True) for aval in avals]
    sums = [allocate(scope, (layout.length, *aval.shape), aval.dtype, OWN) for aval in of_i]
    with scope.loop(layout.length) as (body, i):
        outer = body.item()
        lower, count = near.find_row(outer, x, i)
        at_i = [row_of(outer, part, i) for part in bodies]
        mine = [sum_of(outer, aval, apart=True) for aval in of_i]

        def meet(begin: Any, end: Any, first: bool) -> None:
            """All of a part of the row, as the first or as the second bodies of their pairs."""
            with stepping(outer, begin, end) as (lanes, p):
                inner = lanes.item()
                at_j = [row_of(inner, part, near.row.places(builder, p, width)) for part in bodies]
                there = inner.lane("lt", [inner.counted(Span(p), np.int64), inner.splat(end, np.int64)])
                total, for_i, for_j, _ = layout.returns(run(inner, jaxpr, [*shared, *(at_j if first else at_i), *(at_i if first else at_j)]))
                for sum_, value in zip(mine, for_j if first else for_i, strict=True):
                    sum_.add(inner, value, there)
                if not first:
                    for sum_, value in zip(totals, total, strict=True):
                        sum_.add(inner, value, there)

        if of_i:
            meet(LONG(0), lower, first=True)
        meet(lower, count, first=False)
        for target, sum_ in zip(sums, mine, strict=True):
            fill(outer, target.part(outer, i), sum_.get(outer))
    return [*(total.get(scope) for total in totals), *sums]


def _list(scope: Scope, count: int, reach: Reach, x: Stored) -> Neighbours:
    """The list of the function for this reach; whoever comes first makes it."""
    reach = reach._replace(positions=0, box=reach.box or (np.inf,) * x.shape[1])
    key = (count, reach, x.dtype.char)
    if key not in scope.frame.lists:
        scope.frame.lists[key] = Neighbours(scope.frame, count, reach, x.dtype)
    return scope.frame.lists[key]


def _side_by_side(scope: Scope, operands: Sequence[Array]) -> list[Stored]:
    """Arrays over bodies as parts of one, in which all that belongs to a body lies together: a neighbour is one line of memory, or two."""
    bodies, parts = [stored(scope, x) for x in operands], {}
    for dtype in {x.dtype for x in bodies}:
        alike = [k for k, x in enumerate(bodies) if x.dtype == dtype]
        sizes, unit = [int(np.prod(bodies[k].shape[1:])) for k in alike], max(1, _LINE // dtype.itemsize)
        line = 2 ** int(np.ceil(np.log2(sum(sizes)))) if sum(sizes) <= unit else -(-sum(sizes) // unit) * unit
        whole = allocate(scope, (bodies[alike[0]].shape[0], line), dtype, OWN, rows=True)
        for k, begin in zip(alike, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True):
            shape = bodies[k].shape
            parts[k] = whole.view(shape, (line, *contiguous(shape[1:])), whole.start + begin)
            fill(scope, parts[k], bodies[k])
    return [parts[k] for k in range(len(bodies))]
