"""The loops around a step.

    for each group of W trajectories:   for each tick:   for each step of its stride:  ΔW, step       then those look whose turn it is

A group stays in registers, or in a part of the workspace that fits the cache, from the first step of a call to the last. Functions are called with
one table of addresses and whole numbers, in the order in which they are taken from the frame here and written by `engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from bismut.engines.native.columns import ColumnArray, RowArray
from bismut.engines.native.tracing import Programs
from bismut.programs import Program, equations, expanded_count, operation_count, reached
from bismut.programs.codegen.accumulators import PortionSums, sum_of
from bismut.programs.codegen.field import Array, Buffer, allocate, entry, everywhere, fill, in_place, lanes, longest, throughout
from bismut.programs.codegen.frame import IN_LOOPS, IN_REGISTERS, LONGEST, Frame, Scope, Variable
from bismut.programs.codegen.indices import LONG, times
from bismut.programs.codegen.lane import OWN, SAME, SHARED, Lane, array_of, constant
from bismut.programs.codegen.loop_carry import LoopCarry, replace, row_of
from bismut.programs.codegen.neighbour_pairs import MANY, near_enough
from bismut.programs.codegen.walk import FEW, run
from bismut.programs.operation import lookup

LARGEST = 40_000  # scalar operations up to which a step is written out; how much of them is left once what is known is folded, is another matter
# Entries that are gathered at once, from which a step is loops: they are items, such as pairs. 91 pairs in three dimensions run as fast in a loop and
# compile in a third of the time, 435 in a fiftieth.
GATHERED = 256
# Scalar operations per equation, on the average, from which a step is loops: it is a few operations on large arrays, such as products of matrices,
# which run as fast in loops and compile in a tenth of the time. On 20 unknowns that all meet, where it is 39, loops run in 0.0040 s and are 0.2 MB of
# code, written out they run in 0.0052 and are 3.5 MB; steps on points and groups have 1 to 9. Factorisations of few rows are written out in any case,
# and loops around them cost: of matrices of 16 rows, 0.08 s instead of 0.012. Those of more rows are loops, as is all around them.
LARGE_ARRAYS = 25


class Batchwise:
    """What the functions of a program have in common: the table, the numbers, the loop over groups."""

    def __init__(
        self, module: ir.Module, name: str, programs: Programs, width: int, fused: bool, dtype: Any, across: bool, threads: bool, short: bool
    ):
        self.frame = frame = Frame(module, name, width, fused, across, short, threads)
        self.programs, self.dtype = programs, np.dtype(dtype)
        self.limit = LONGEST if short else None
        self.scope = Scope(frame, frame.late, IN_REGISTERS if short else IN_LOOPS)
        self.groups, self.width = frame.entry(), frame.entry()
        self.h_address, self.t0_address = frame.pointer(), frame.pointer()
        scalar = lambda base: Buffer(base, (), dtype, SHARED, plain=True).at(self.scope, ())
        self.h, self.t0 = scalar(self.h_address), scalar(self.t0_address)
        self.numbers = [self._number(aval) for aval in programs.numbers]

    def _number(self, aval) -> Array:
        buffer = Buffer(self.frame.pointer(), aval.shape, aval.dtype, SHARED, plain=True)
        return buffer if aval.size > self.scope.small else lanes(self.scope, buffer)

    def columns(self, avals: Sequence) -> list:
        return [self.column(aval) for aval in avals]

    def column(self, aval) -> Any:
        return (RowArray if self.frame.across else ColumnArray)(self.frame, aval, self.width)

    def memory(self, avals: Sequence) -> list[Buffer]:
        """What a watch remembers: (groups, entries, W), so that what belongs to a group lies together, and is changed where it lies. Where lanes are
        bodies, one number instead of W."""
        level, plain = (SAME, True) if self.frame.across else (OWN, False)
        return [Buffer(self.frame.pointer(), aval.shape, aval.dtype, level, owner=object(), plain=plain) for aval in avals]

    def at_group(self, scope: Scope, columns: Sequence[ColumnArray | RowArray], group: Any) -> None:
        for column in columns:
            column.move_to(scope, group)

    def remembered(self, scope: Scope, memory: Sequence[Buffer], group: Any) -> list[Buffer]:
        return [one.view(one.shape, one.strides, times(scope.builder, group, one.size)) for one in memory]

    def time(self, scope: Scope, k: Any) -> np.ndarray:
        """t = t0 + h k."""
        number = scope.splat(k, np.int64)
        steps = scope.lane("convert_element_type", [number], {"new_dtype": self.dtype})
        product = scope.lane("mul", [self.h, steps])
        return array_of([Lane(scope.code.add(self.t0.value, product.value), self.dtype, number.level)], ())  # rounded twice, as everywhere else

    def large(self, aval) -> bool:
        return aval.size > self.scope.small

    def read(self, scope: Scope, column: ColumnArray) -> Array:
        return column if self.large(column) else lanes(scope, column)

    def hold(self, scope: Scope, aval) -> LoopCarry:
        return LoopCarry(scope, aval, self.large(aval), OWN)


def short_enough(programs: Programs) -> bool:
    """Whether a step may be written out, loops over few bodies and all; how long it becomes (`LONGEST`) is seen when it is written. This is a matter
    of the system alone: watches have no say."""
    parts = [programs.begin.program, programs.step.program]
    everything = [e for part in parts for e in equations(part)]
    if any(lookup(e.primitive.name).in_loops(e) for e in everything):
        return False
    gathered = max((e.outvars[0].aval.size for e in everything if e.primitive.name == "gather"), default=0)
    return gathered <= GATHERED and not any(map(of_large_arrays, parts)) and all(expanded_count(part) <= LARGEST for part in parts)


def of_large_arrays(program: Program) -> bool:
    """Whether a program is few operations on large arrays, none of which factorises a matrix."""
    everything = list(equations(program))
    factorised = any(lookup(e.primitive.name).factorises for e in everything)
    return not factorised and operation_count(program) > LARGE_ARRAYS * len(everything)


def crowded(program: Program) -> bool:
    """Whether lanes are bodies: many of them meet, and only near ones. This is a matter of the system alone."""
    met = [e for e in equations(program) if e.primitive.name == "pairs" and e.params["layout"].bonds is None and e.params["layout"].length >= MANY]
    return bool(met) and all(map(near_enough, met))


def write_begin(module: ir.Module, programs: Programs, width: int, fused: bool, dtype: Any, across: bool, threads: bool, short: bool) -> Frame:
    """begin: states ↦ carries."""
    f = Batchwise(module, "begin", programs, width, fused, dtype, across, threads, short)
    step = f.frame.entry()
    states, carries = f.columns(programs.state), f.columns(programs.carry)
    with f.scope.loop(f.groups) as (scope, g):
        f.at_group(scope, [*states, *carries], g)
        with f.frame.limited(f.limit):
            out = run(scope, programs.begin.program, [*(f.read(scope, c) for c in states), f.time(scope, step), *f.numbers])
        for column, x in zip(carries, out, strict=True):
            fill(scope, column, x)
    f.frame.close()
    return f.frame


def write_watch(module: ir.Module, programs: Programs, width: int, fused: bool, dtype: Any, across: bool, threads: bool, short: bool) -> Frame:
    """watch: carries ↦ memories of all watches, as they begin."""
    f = Batchwise(module, "watch", programs, width, fused, dtype, across, threads, short)
    step = f.frame.entry()
    carries = f.columns(programs.carry)
    memories = [f.memory(first.shapes) for first, _ in programs.watches]
    with f.scope.loop(f.groups) as (scope, g):
        f.at_group(scope, carries, g)
        state, t = [f.read(scope, carries[k]) for k in programs.where], f.time(scope, step)
        for (first, _), memory in zip(programs.watches, memories, strict=True):
            for place, x in zip(f.remembered(scope, memory, g), run(scope, first.program, [*state, t, *f.numbers]), strict=True):
                fill(scope, place, x)
    f.frame.close()
    return f.frame


class Watching:
    """One watch on its way: what it remembers, how many steps until it looks, how many rows it has written."""

    def __init__(self, f: Batchwise, first, look):
        self.look, self.split = look, len(first.shapes)
        self.every, self.due = f.frame.entry(), f.frame.entry()
        self.memory, self.rows = f.memory(first.shapes), f.columns(look.shapes[self.split :])
        self.own = own_memory(first.program, look.program, len(f.programs.state))
        self.left, self.row = f.frame.slot(LONG), f.frame.slot(LONG)
        self.carried: list[LoopCarry] = []

    def begin(self, f: Batchwise, scope: Scope, group: Any) -> None:
        self.here = f.remembered(scope, self.memory, group)
        own = lambda mark: OWN if mark and scope.wide else SAME
        self.carried = [
            LoopCarry(scope, place, place.size > FEW, own(mark), over=place.spared()) for place, mark in zip(self.here, self.own, strict=True)
        ]
        for carried, place in zip(self.carried, self.here, strict=True):
            carried.set(scope, place)
        scope.builder.store(self.due, self.left)
        scope.builder.store(LONG(0), self.row)

    def tick(self, f: Batchwise, scope: Scope, steps: Any, state: list, t: Any) -> None:
        b = scope.builder
        b.store(b.sub(b.load(self.left), steps), self.left)
        with b.if_then(b.icmp_signed("==", b.load(self.left), LONG(0))):
            inner, row = scope.inside(), b.load(self.row)
            out = run(inner, self.look.program, [*(h.lend(inner) for h in self.carried), *state, t, *f.numbers])
            for column, x in zip(self.rows, out[self.split :], strict=True):
                throughout(inner, column.shape, lambda at, i, column=column, x=x: column.put(at, i, entry(at, x, i), row))
            replace(inner, self.carried, out[: self.split])
            b.store(b.add(row, LONG(1)), self.row)
            b.store(self.every, self.left)

    def end(self, scope: Scope) -> None:
        for carried, place in zip(self.carried, self.here, strict=True):
            if not in_place(carried.get(scope), place):
                fill(scope, place, carried.get(scope))


def own_memory(first, look, state: int) -> list[bool]:
    """Which leaves of a memory differ between trajectories: a number of looks does not."""
    rest = [False] * (len(first.invars) - state)
    own = reached(first, [True] * state + rest)
    while True:
        after = reached(look, [*own, *[True] * state, *rest])[: len(own)]
        wider = [a or b for a, b in zip(own, after, strict=True)]
        if wider == own:
            return own
        own = wider


def write_advance(
    module: ir.Module, programs: Programs, per: int, width: int, fused: bool, dtype: Any, across: bool, threads: bool, short: bool
) -> Frame:
    """advance: carries, memories and failures, in place; rows. `lead` ticks, one or none, come before the others and are without steps."""
    f = Batchwise(module, "advance", programs, width, fused, dtype, across, threads, short)
    frame = f.frame
    step, lead, ticks, stride, phase = (frame.entry() for _ in range(5))
    numbers, failed = f.column(_Scalar(np.uint64)), f.column(_Scalar(np.int64))
    carries = f.columns(programs.carry)
    watches = [Watching(f, first, look) for first, look in programs.watches]
    k_slot, fresh = frame.slot(LONG), frame.slot(ir.IntType(1))
    lost = Variable(f.scope, np.int64)
    carried = [f.hold(f.scope, aval) for aval in programs.carry]
    buffer = allocate(f.scope, (per, programs.channels), f.dtype, OWN)
    columns = [numbers, failed, *carries, *(c for w in watches for c in w.rows)]
    with f.scope.loop(f.groups) as (scope, g):
        f.at_group(scope, columns, g)
        for h, column in zip(carried, carries, strict=True):
            h.set(scope, column)
        lost.set(scope, failed.at(scope, ()))
        counter_words = _counter(scope, numbers.at(scope, ()))
        for w in watches:
            w.begin(f, scope, g)
        scope.builder.store(step, k_slot)
        scope.builder.store(ir.IntType(1)(1), fresh)
        with scope.loop(scope.builder.add(lead, ticks)) as (tick, number):
            steps = tick.builder.select(tick.builder.icmp_signed("<", number, lead), LONG(0), stride)
            with tick.loop(steps) as (inner, _):
                k = inner.builder.load(k_slot)
                dW = _drawn(f, inner, buffer, counter_words, k, phase, per, fresh)
                with frame.limited(f.limit):
                    given = [*(h.get(inner) for h in carried), dW, array_of([f.h], ()), f.time(inner, k), *f.numbers]
                    new = run(inner, programs.step.program, given)
                replace(inner, carried, new)
                _note_failure(inner, [carried[i] for i in programs.where], lost, k)
                inner.builder.store(inner.builder.add(k, LONG(1)), k_slot)
            if watches:
                state = [carried[i].get(tick) for i in programs.where]
                t = f.time(tick, tick.builder.load(k_slot))
                for w in watches:
                    w.tick(f, tick, steps, state, t)
        for h, column in zip(carried, carries, strict=True):
            fill(scope, column, h.get(scope))
        failed.put(scope, (), lost.get(scope))
        for w in watches:
            w.end(scope)
    frame.close()
    return frame


class _Scalar:
    """The shape of one number."""

    shape, size = (), 1

    def __init__(self, dtype: Any):
        self.dtype = np.dtype(dtype)


def _counter(scope: Scope, number: Lane) -> list[np.ndarray]:
    """A 64-bit number as its low and its high word."""
    convert = lambda lane: scope.lane("convert_element_type", [lane], {"new_dtype": np.dtype(np.uint32)})
    high = scope.lane("shift_right_logical", [number, np.uint64(32)])
    return [array_of([convert(number)], ()), array_of([convert(high)], ())]


def _drawn(f: Batchwise, scope: Scope, buffer: Buffer, counter_words: list, k: Any, phase: Any, per: int, fresh: Any) -> Array:
    """ΔW of step k. A draw serves `per` steps: it is made at the first of them, and where a call begins."""
    channels = f.programs.channels
    if not channels:
        return np.empty((0,), object)
    b = scope.builder
    place = b.urem(b.add(k, phase), LONG(per))
    with b.if_then(b.or_(b.icmp_signed("==", place, LONG(0)), b.load(fresh))):
        inner = scope.inside()
        counter = _counter(inner, inner.splat(k, np.uint64))
        drawn = run(inner, f.programs.draw.program, [*counter_words, *counter, array_of([f.h], ()), *f.numbers])[0]
        fill(inner, buffer, drawn)
        b.store(ir.IntType(1)(0), fresh)
    part = buffer.part(scope, place)
    return part if f.large(part) else row_of(scope, buffer, place)


def _note_failure(scope: Scope, state: Sequence[LoopCarry], lost: Variable, k: Any) -> None:
    """The first step after which a state is not finite: Σ (x − x) is zero, or NaN."""
    reals = [h for h in state if h.dtype.kind == "f"]
    if not reals:
        return
    parts = [_unlike_itself(scope, h.get(scope), h.dtype) for h in reals]
    total = parts[0]
    for part in parts[1:]:
        total = scope.lane("add", [total, scope.lane("convert_element_type", [part], {"new_dtype": total.dtype})])
    bad = scope.lane("ne", [total, total])
    before = lost.get(scope)
    new = scope.lane("and", [bad, scope.lane("lt", [before, np.int64(0)])])
    lost.set(scope, scope.lane("select_n", [new, before, scope.splat(k, np.int64)]))


def _unlike_itself(scope: Scope, array: Array, dtype: np.dtype) -> Any:
    """Σ (x − x) over an array of reals."""
    shape = array.shape

    def difference(at: Scope, x: Any) -> Any:
        return dtype.type(0) if constant(x) else Lane(at.code.sub(x.value, x.value), dtype)

    def add(at: Scope, total: Any, index: tuple) -> None:
        total.add(at, array_of([difference(at, entry(at, array, index))], ()))

    aval = _Scalar(dtype)
    if scope.wide or not shape or max(shape) < scope.frame.width:
        total = sum_of(scope, aval)
        everywhere(scope, shape, lambda at, index: add(at, total, index))
        return total.get(scope)[()]
    axis = longest(shape)
    rest = [n for k, n in enumerate(shape) if k != axis]
    sums = PortionSums(scope, [aval], shape[axis])
    with scope.portions(shape[axis]) as (portion, number, first, after):
        (total,) = sums.begin(portion)
        with portion.items(shape[axis], first, after) as (inner, i, _):
            everywhere(inner, rest, lambda at, index: add(at, total, (*index[:axis], i, *index[axis:])))
        sums.end(portion, number)
    return sums.get(scope)[0][()]
