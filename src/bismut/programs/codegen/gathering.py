"""Entries of several rows of memory at once, one row for each lane.

    row of lane l = (a_l, b_l, c_l, d_l)   ↦   vectors (a_0, a_1, ...), (b_0, b_1, ...), ...

Rows that begin with four real numbers of 64 bits are read whole and turned, which takes half the instructions of reading number by number.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import Value
from bismut.programs.codegen.field import Buffer
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.indices import Scattered
from bismut.programs.codegen.lane import OWN, Lane

_FOUR, _WORD = 4, ir.IntType(32)


def gathered(scope: Scope, rows: Buffer, places: Scattered, count: int) -> list[Lane]:
    """The first `count` entries of the rows (n, m) at places."""
    stride = rows.strides[0]
    if not (rows.dtype == np.float64 and scope.frame.width == 8 and count > 1 and stride % _FOUR == 0 and rows.strides[1:] == (1,)):
        return [rows.at(scope, (places, k)) for k in range(count)]
    lanes: list[Lane] = []
    while len(lanes) < count:
        lanes += _turned(scope, rows, places, len(lanes))
    return lanes[:count]


def _turned(scope: Scope, rows: Buffer, places: Scattered, first: int) -> list[Lane]:
    """Four entries of eight rows."""
    builder, kind = scope.builder, ir.VectorType(ir.DoubleType(), _FOUR)
    read = [builder.load(builder.bitcast(rows.address(scope, (place, first)), kind.as_pointer()), align=8) for place in places.places]
    join = lambda a, b, order: builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_WORD, len(order)), order))
    both = [join(read[k], read[k + 2], list(range(8))) for k in (0, 1, 4, 5)]  # rows 0 and 2, 1 and 3, 4 and 6, 5 and 7
    values: list[Value] = [None] * _FOUR
    for odd in (0, 1):
        order = [odd, 8 + odd, 2 + odd, 10 + odd, 4 + odd, 12 + odd, 6 + odd, 14 + odd]
        low, high = join(both[0], both[1], order), join(both[2], both[3], order)  # of rows 0 1 and 2 3, of rows 4 5 and 6 7
        values[odd] = join(low, high, [0, 1, 4, 5, 8, 9, 12, 13])
        values[2 + odd] = join(low, high, [2, 3, 6, 7, 10, 11, 14, 15])
    return [Lane(value, np.float64, OWN) for value in values]
