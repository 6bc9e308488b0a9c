"""Pairs within reach, from lists of neighbours, with lanes over the neighbours of a body.

    for i:  s += Σ_{j>i} g(x_i, x_j),    z_i = Σ_{j<i} b(x_j, x_i) + Σ_{j>i} a(x_i, x_j)        over those near i

Each pair is met twice, once from either side, so that nothing is added to a body but in its own row: no two lanes ever write to one place, and sums
over neighbours stay in registers. What a row holds is decided by where bodies are now (`neighbours`), whenever its list was made.

Whether lanes are bodies, from MANY on, depends on the system alone and never on the number of trajectories: sums over lanes determine bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bismut.programs.codegen.accumulators import PortionSums, sum_of
from bismut.programs.codegen.field import Array, Buffer, allocate, contiguous, everywhere, fill, stored
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.gathering import gathered
from bismut.programs.codegen.indices import LONG, Scattered, Span
from bismut.programs.codegen.integers import Integers, stepping
from bismut.programs.codegen.lane import OWN, array_of
from bismut.programs.codegen.loop_carry import row_of
from bismut.programs.codegen.neighbours import Neighbours
from bismut.programs.codegen.walk import run
from bismut.programs.layout import LoopLayout, Reach

MANY = 256  # bodies from which on those within reach of each other are found by cells
_LINE = 64  # bytes that come from memory together


def near_enough(equation) -> bool:
    """Whether a list can be kept for a loop over pairs: many bodies within a reach, in space, and nothing that belongs to a pair alone."""
    layout = equation.params["layout"]
    if layout.bonds is not None or layout.reach is None or layout.length < MANY:
        return False
    _, bodies, own = layout.operands(equation.invars)
    positions = bodies[layout.reach.positions].aval
    of_items = len(equation.outvars) - layout.totals - layout.sums
    return not own and not of_items and positions.ndim == 2 and positions.shape[1] <= 3


def near_pairs(scope: Scope, layout: LoopLayout, jaxpr, shared: Sequence[Array], operands: Sequence[Array]) -> list[Array]:
    """The results of the loop."""
    assert layout.reach is not None
    bodies, count = [stored(scope, x) for x in operands], layout.length
    position = layout.reach.positions
    near = _list(scope, count, layout.reach, bodies[position])
    near.refresh(scope, bodies[position])
    rows = _rows_by_place(scope, near, bodies, position)
    builder, width = scope.builder, scope.frame.width
    avals, of_i, _, _ = layout.returns(jaxpr.out_avals)
    # What is added up over all bodies is noted body by body, since these are visited in the order of cells.
    each = [allocate(scope, (count, *aval.shape), aval.dtype, OWN) for aval in avals]
    sums = [allocate(scope, (count, *aval.shape), aval.dtype, OWN) for aval in of_i]
    with scope.portions(count) as (portion, _, first_place, after):
        row = Integers.room(scope.frame, count + 3 * width)
        with portion.loop(after, first_place) as (body, place):
            outer = body.item()
            i = near.body(builder, place)
            at_i = [row_of(outer, part, place) for part in rows.parts]
            mine, totals = ([sum_of(outer, aval, across=True) for aval in group] for group in (of_i, avals))

            def meet(lower: bool) -> None:
                """All with lower or with higher numbers, as the first or as the second bodies of their pairs."""
                end = near.find_row(outer, rows.parts[position], place, row, lower)
                with stepping(outer, LONG(0), end) as (lanes, p):
                    inner = lanes.item()
                    at_j = rows.at(inner, row.places(builder, p, width))
                    there = inner.lane("lt", [inner.counted(Span(p), np.int64), inner.splat(end, np.int64)])
                    total, for_i, for_j, _ = layout.returns(run(inner, jaxpr, [*shared, *(at_j if lower else at_i), *(at_i if lower else at_j)]))
                    for sum_, value in zip(mine, for_j if lower else for_i, strict=True):
                        sum_.add(inner, value, there)
                    if not lower:
                        for sum_, value in zip(totals, total, strict=True):
                            sum_.add(inner, value, there)

            if of_i:
                meet(lower=True)
            meet(lower=False)
            for target, sum_ in zip([*sums, *each], [*mine, *totals], strict=True):
                fill(outer, target.part(outer, i), sum_.get(outer))
    return [*_over_bodies(scope, avals, each, count), *sums]


def _over_bodies(scope: Scope, avals: Sequence, each: Sequence[Buffer], count: int) -> list[Array]:
    """Sums over the first axes, in an order that is theirs."""
    if not avals:
        return []
    totals = PortionSums(scope, avals, count)
    with scope.portions(count) as (portion, number, first, after):
        sums = totals.begin(portion)
        with portion.items(count, first, after) as (inner, k, fresh):
            for sum_, values in zip(sums, each, strict=True):
                sum_.add(inner, row_of(inner.item(), values, k), fresh)
        totals.end(portion, number)
    return totals.get(scope)


def _list(scope: Scope, count: int, reach: Reach, x: Buffer) -> Neighbours:
    """The list of the function for this reach; whoever comes first makes it."""
    reach = reach._replace(positions=0, box=reach.box or (np.inf,) * x.shape[1])
    key = (count, reach, x.dtype.char)
    if key not in scope.frame.lists:
        scope.frame.lists[key] = Neighbours(scope.frame, count, reach, x.dtype)
    return scope.frame.lists[key]


class _PlaceRows:
    """Arrays over bodies, place by place, as parts of a few: all that belongs to a body lies together, a line of memory or two."""

    def __init__(self, parts: dict[int, Buffer], joined: list[tuple[Buffer, list[int]]]):
        self.parts = [parts[k] for k in range(len(parts))]
        self._joined = joined

    def at(self, scope: Scope, places: Scattered) -> list[Array]:
        """All of them at the places of the lanes."""
        out: dict[int, Array] = {}
        for rows, members in self._joined:
            sizes = [int(np.prod(self.parts[k].shape[1:])) for k in members]
            if sum(sizes) > scope.small:
                out |= {k: row_of(scope, self.parts[k], places) for k in members}
                continue
            numbers, begin = gathered(scope, rows, places, sum(sizes)), 0
            for k, size in zip(members, sizes, strict=True):
                out[k] = array_of(list(numbers[begin : begin + size]), self.parts[k].shape[1:])
                begin += size
        return [out[k] for k in range(len(self.parts))]


def _rows_by_place(scope: Scope, near: Neighbours, bodies: Sequence[Buffer], position: int) -> _PlaceRows:
    """Bodies in the order of cells, and after them one that is nowhere."""
    parts, joined, count = {}, [], near.count
    for dtype in dict.fromkeys(x.dtype for x in bodies):
        alike = [k for k, x in enumerate(bodies) if x.dtype == dtype]
        alike.sort(key=lambda k: k != position)  # where they are comes first, and is read first
        sizes, unit = [int(np.prod(bodies[k].shape[1:])) for k in alike], max(1, _LINE // max(dtype.itemsize, 1))
        line = 2 ** int(np.ceil(np.log2(sum(sizes)))) if sum(sizes) <= unit else -(-sum(sizes) // unit) * unit
        rows = allocate(scope, (count + 1, line), dtype, OWN, rows=True)
        for k, begin in zip(alike, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True):
            shape = bodies[k].shape[1:]
            parts[k] = rows.view((count + 1, *shape), (line, *contiguous(shape)), rows.start + begin)
        joined.append((rows, alike))
    with scope.portions(count) as (portion, _, first, after), portion.loop(after, first) as (inner, place):
        i = near.body(scope.builder, place)
        for k, target in parts.items():
            fill(inner, target.part(inner, place), bodies[k].part(inner, i))
    for k, target in parts.items():
        fill(scope, target.part(scope, LONG(count)), bodies[k].part(scope, LONG(0)))
    nowhere = parts[position].part(scope, LONG(count))
    everywhere(scope, nowhere.shape, lambda at, index: nowhere.put(at, index, nowhere.dtype.type(np.nan)))
    return _PlaceRows(parts, joined)
