"""Arrays that loops carry, and what code that runs early leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bismut.programs.codegen.field import Array, Buffer, Field, Formula, allocate, array_level, entry, fill, in_place, stored, throughout
from bismut.programs.codegen.frame import Scope, Variable
from bismut.programs.codegen.indices import spread
from bismut.programs.codegen.lane import OWN, SHARED, Lane, array_of, constant


class LoopCarry:
    """An array that a loop carries: variables, or a place in memory, that of `over` if it may be written over."""

    def __init__(self, scope: Scope, aval, memory: bool, level: int, over: Any = None):
        self.shape, self.dtype, self.level = aval.shape, np.dtype(aval.dtype), level
        spare = memory and isinstance(over, Buffer) and over.spare and over.level <= level
        self.memory = over.protected() if spare else allocate(scope, aval.shape, aval.dtype, level) if memory else None
        self.variables = [] if memory else [Variable(scope, aval.dtype) for _ in range(aval.size)]

    def get(self, scope: Scope) -> Array:
        if self.memory is not None:
            return self.memory
        return array_of([variable.get(scope, self.level) for variable in self.variables], self.shape)

    def lend(self, scope: Scope) -> Array:
        """The same for one who gives back what comes next: memory may be written over."""
        return self.get(scope) if self.memory is None else self.memory.spared()

    def set(self, scope: Scope, array: Array) -> None:
        if self.memory is not None:
            if not in_place(array, self.memory):
                fill(scope, self.memory, array)
            return
        for variable, index in zip(self.variables, np.ndindex(*self.shape), strict=True):
            variable.set(scope, entry(scope, array, index))


def replace(scope: Scope, carries: Sequence[LoopCarry], new: Sequence[Array], where: Any = None) -> None:
    """Set all, where a lane says so, or one of an array of lanes for each entry of the first axes. What is new may depend on all that is old, so it
    is computed before anything is overwritten."""
    ready: list[Array] = []
    for h, x in zip(carries, new, strict=True):
        if h.memory is None:
            ready.append(array_of([entry(scope, x, index) for index in np.ndindex(*h.shape)], h.shape))
        else:
            ready.append(x if in_place(x, h.memory) else _detached(scope, x, carries))
    for h, x in zip(carries, ready, strict=True):
        if where is None:
            h.set(scope, x)
        elif h.memory is None:
            old = h.get(scope)
            chosen = lambda i, old=old, x=x: scope.lane("select_n", [_of_item(scope, where, i), old[i], x[i]])
            h.set(scope, array_of([chosen(index) for index in np.ndindex(*h.shape)], h.shape))
        else:
            _choose(scope, h.memory, x, where)


def _detached(scope: Scope, x: Array, carries: Sequence[LoopCarry]) -> Array:
    """An array in memory that no loop carries."""
    if isinstance(x, Buffer) and not any(h.memory is not None and x.owner is h.memory.owner for h in carries):
        return x
    copy = allocate(scope, x.shape, x.dtype if isinstance(x, Field) else x.flat[0].dtype, OWN)
    fill(scope, copy, x)
    return copy


def _of_item(scope: Scope, where: Any, index: Sequence) -> Any:
    """A condition is one lane, or an array of them over the first axes."""
    return entry(scope, where, index[: where.ndim]) if isinstance(where, np.ndarray) else where


def _choose(scope: Scope, target: Buffer, new: Array, where: Any) -> None:
    def one(inner: Scope, index) -> None:
        target.put(inner, index, inner.lane("select_n", [_of_item(inner, where, index), target.at(inner, index), entry(inner, new, index)]))

    if not in_place(new, target):
        throughout(scope, target.shape, one)


def is_shared(inputs: Sequence[Array], scope: Scope) -> bool:
    return scope.hoists and all(array_level(x) == SHARED for x in inputs)


def relabelled(outputs: Sequence[Array]) -> list[Array]:
    """Results of code that ran early."""
    results = []
    for x in outputs:
        if isinstance(x, Field):
            results.append(keep(x))
            results[-1].level = SHARED
        else:
            relabel = lambda lane: lane if constant(lane) else Lane(lane.value, lane.dtype, SHARED)
            results.append(array_of([relabel(lane) for lane in x.flat], x.shape))
    return results


def keep(x: Array) -> Array:
    return x.protected() if isinstance(x, Buffer) else x


def ready(scope: Scope, x: Array) -> Array:
    """An array that a loop reads again and again is computed once, and put into memory once."""
    return stored(scope, x) if isinstance(x, Field) or x.size > scope.small else x


def row_of(scope: Scope, x: Field, k: Any) -> Array:
    """One entry along the first axis: lanes if it is small."""
    shape = x.shape[1:]
    if int(np.prod(shape)) > scope.small:
        part = x.part(scope, k) if isinstance(x, Buffer) else Formula(shape, x.dtype, OWN, lambda inner, index: x.at(inner, (k, *index)))
        return stored(scope, part) if spread(k) else part
    return array_of([x.at(scope, (k, *index)) for index in np.ndindex(*shape)], shape)
