"""Arrays of every trajectory of a batch in memory, as a program reads and writes them (`batches` says how they lie)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.programs.codegen.code import element
from bismut.programs.codegen.field import Buffer, Writable
from bismut.programs.codegen.frame import Frame, Scope
from bismut.programs.codegen.indices import LONG, plus, times
from bismut.programs.codegen.lane import OWN, SAME, Lane, value_of


class ColumnArray(Writable):
    """An array of every trajectory of a batch, (entries, n) in memory, at one group of trajectories."""

    def __init__(self, frame: Frame, aval, width: Any):
        self.shape, self.dtype, self.level = aval.shape, np.dtype(aval.dtype), OWN
        self.base, self.width, self.group = frame.pointer(), width, None

    def _address(self, scope: Scope, index: Sequence, row: Any = 0):
        builder, place = scope.builder, 0
        for i, n in zip(index, self.shape, strict=True):
            place = plus(builder, times(builder, place, n), i)
        place = plus(builder, times(builder, row, int(np.prod(self.shape))), place)
        entries = builder.mul(LONG(place) if isinstance(place, int) else place, self.width)
        first = builder.add(entries, builder.mul(self.group, LONG(scope.frame.width)))
        kind = ir.IntType(8) if self.dtype.kind == "b" else element(self.dtype)
        address = builder.gep(self.base, [builder.mul(first, LONG(max(self.dtype.itemsize, 1)))])
        return builder.bitcast(address, ir.VectorType(kind, scope.frame.width).as_pointer())

    def move_to(self, scope: Scope, group: Any) -> None:
        del scope
        self.group = group

    def at(self, scope, index):
        value = scope.builder.load(self._address(scope, index), align=max(self.dtype.itemsize, 1))
        if self.dtype.kind == "b":
            value = scope.builder.trunc(value, scope.code.vector(bool))
        return Lane(value, self.dtype)

    def put(self, scope: Scope, index, lane: Any, row: Any = 0) -> None:
        value = value_of(scope.code, lane, self.dtype)
        if self.dtype.kind == "b":
            value = scope.builder.zext(value, scope.code.vector(np.uint8))
        scope.builder.store(value, self._address(scope, index, row), align=max(self.dtype.itemsize, 1))


class RowArray(Buffer):
    """The same where lanes are bodies: (n, entries) in memory, at one trajectory."""

    def __init__(self, frame: Frame, aval, count: Any):
        super().__init__(frame.pointer(), aval.shape, aval.dtype, SAME, plain=True)
        self.count = count

    def move_to(self, scope: Scope, group: Any) -> None:
        self.start = times(scope.builder, group, self.size)

    def put(self, scope: Scope, index, lane: Any, row: Any = None) -> None:
        if row is None:
            super().put(scope, index, lane)
            return
        before = times(scope.builder, scope.builder.mul(row, self.count), self.size)
        self.view(self.shape, self.strides, plus(scope.builder, self.start, before)).put(scope, index, lane)
