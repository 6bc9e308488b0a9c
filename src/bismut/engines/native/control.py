"""Loops and branches of a program.

Trajectories run side by side, so a loop goes on until the last of them has finished, and a branch is taken if one of them wants it; those that have
finished, or want another branch, keep what they had. What a trajectory gets does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bismut.engines.native.arithmetic import somewhere
from bismut.engines.native.field import Array, Field, Formula, Stored, allocate, array_level, entry, fill, in_place, lanes, stored, throughout
from bismut.engines.native.frame import Scope, Variable
from bismut.engines.native.lane import OWN, SAME, SHARED, Lane, array_of, constant, first_of, value_of
from bismut.engines.native.places import spread
from bismut.engines.native.walk import rule, run
from bismut.programs import reached

SHORT = 5  # rounds up to which a loop over rows is written out


class Held:
    """An array that a loop carries: variables, or a place in memory, that of `over` if it may be written over."""

    def __init__(self, scope: Scope, aval, memory: bool, level: int, over: Any = None):
        self.shape, self.dtype, self.level = aval.shape, np.dtype(aval.dtype), level
        spare = memory and isinstance(over, Stored) and over.spare and over.level <= level
        self.memory = over.kept() if spare else allocate(scope, aval.shape, aval.dtype, level) if memory else None
        self.variables = [] if memory else [Variable(scope.frame, aval.dtype) for _ in range(aval.size)]

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

    def settled(self, scope: Scope) -> Array:
        """What is there now, to be used after the loop."""
        if self.memory is None:
            return self.get(scope)
        return self.memory


def replace(scope: Scope, held: Sequence[Held], new: Sequence[Array], where: Any = None) -> None:
    """Set all, where a lane says so, or one of an array of lanes for each entry of the first axes. What is new may depend on all that is old, so it
    is computed before anything is overwritten."""
    ready: list[Array] = []
    for h, x in zip(held, new, strict=True):
        if h.memory is None:
            ready.append(array_of([entry(scope, x, index) for index in np.ndindex(*h.shape)], h.shape))
        else:
            ready.append(x if in_place(x, h.memory) else _apart(scope, x, held))
    for h, x in zip(held, ready, strict=True):
        if where is None:
            h.set(scope, x)
        elif h.memory is None:
            old = h.get(scope)
            chosen = lambda i, old=old, x=x: scope.lane("select_n", [_of_item(scope, where, i), old[i], x[i]])
            h.set(scope, array_of([chosen(index) for index in np.ndindex(*h.shape)], h.shape))
        else:
            _choose(scope, h.memory, x, where)


def _apart(scope: Scope, x: Array, held: Sequence[Held]) -> Array:
    """An array in memory that no loop carries."""
    if isinstance(x, Stored) and not any(h.memory is not None and x.owner is h.memory.owner for h in held):
        return x
    copy = allocate(scope, x.shape, x.dtype if isinstance(x, Field) else x.flat[0].dtype, OWN)
    fill(scope, copy, x)
    return copy


def _of_item(scope: Scope, where: Any, index: Sequence) -> Any:
    """A condition is one lane, or an array of them over the first axes."""
    return entry(scope, where, index[: where.ndim]) if isinstance(where, np.ndarray) else where


def _choose(scope: Scope, target: Stored, new: Array, where: Any) -> None:
    def one(inner: Scope, index) -> None:
        target.put(inner, index, inner.lane("select_n", [_of_item(inner, where, index), target.at(inner, index), entry(inner, new, index)]))

    if not in_place(new, target):
        throughout(scope, target.shape, one)


def is_shared(inputs: Sequence[Array], scope: Scope) -> bool:
    return scope.hoists and all(array_level(x) == SHARED for x in inputs)


def relabelled(outputs: Sequence[Array]) -> list[Array]:
    """Results of code that ran early."""
    found = []
    for x in outputs:
        if isinstance(x, Field):
            found.append(_keep(x))
            found[-1].level = SHARED
        else:
            relabel = lambda lane: lane if constant(lane) else Lane(lane.value, lane.dtype, SHARED)
            found.append(array_of([relabel(lane) for lane in x.flat], x.shape))
    return found


def _keep(x: Array) -> Array:
    return x.kept() if isinstance(x, Stored) else x


def _ready(scope: Scope, x: Array) -> Array:
    """An array that a loop reads again and again is computed once, and put into memory once."""
    return stored(scope, x) if isinstance(x, Field) or x.size > scope.small else x


@rule("while")
def _while(scope: Scope, equation, inputs):
    if is_shared(inputs, scope):
        return relabelled(_while(scope.shared(), equation, inputs))
    p = equation.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    cond, body = p["cond_jaxpr"], p["body_jaxpr"]
    inputs = [_ready(scope, x) for x in inputs]
    for_cond, for_body, start = [*map(_keep, inputs[:nc])], [*map(_keep, inputs[nc : nc + nb])], inputs[nc + nb :]
    own = [array_level(x) == OWN for x in start]
    while True:  # what a carry depends on may differ, so it may
        after = reached(body, [*(array_level(x) == OWN for x in for_body), *own])
        wider = [a or b for a, b in zip(own, after, strict=True)]
        if wider == own:
            break
        own = wider
    wanted = cond.outvars[0].aval  # of many loops at once, an array: each item goes on as long as it wants
    alike = not reached(cond, [*(array_level(x) == OWN for x in for_cond), *own])[0] and not wanted.shape
    if not alike:
        own = [True] * len(own)
    held = [
        Held(scope, v.aval, v.aval.size > scope.small or isinstance(x, Field), OWN if mark else SAME, over=x)
        for v, x, mark in zip(body.outvars, start, own, strict=True)
    ]
    for h, x in zip(held, start, strict=True):
        h.set(scope, x)
    builder = scope.builder
    on = None if alike else Held(scope, wanted, memory=False, level=OWN)

    def going(at: Scope, before: Array | None = None):
        """One bit: whether anyone goes on, of those who did before."""
        found = lanes(at, run(at, cond, [*for_cond, *(h.get(at) for h in held)])[0])
        if on is None:
            return first_of(at.code, found[()], 1)
        if before is not None:
            found = array_of([at.lane("and", list(both)) for both in zip(before.flat, found.flat, strict=True)], wanted.shape)
        on.set(at, found)
        anyone: Any = np.bool_(False)
        for lane in found.flat:
            anyone = at.lane("or", [anyone, lane])
        return somewhere(at.code, value_of(at.code, anyone, bool))

    first = going(scope.inside())
    loop, done = builder.append_basic_block("while"), builder.append_basic_block("done")
    builder.cbranch(first, loop, done)
    builder.position_at_end(loop)
    inner = scope.inside()
    new = run(inner, body, [*for_body, *(h.lend(inner) if on is None else h.get(inner) for h in held)])
    replace(inner, held, new, None if on is None else on.get(inner))
    again = scope.inside()
    builder.cbranch(going(again, None if on is None else on.get(again)), loop, done)
    builder.position_at_end(done)
    return [h.lend(scope) for h in held]


@rule("scan")
def _scan(scope: Scope, equation, inputs):
    if is_shared(inputs, scope):
        return relabelled(_scan(scope.shared(), equation, inputs))
    p = equation.params
    length, body, back = p["length"], p["jaxpr"], p["reverse"]
    nc, nk = p["num_consts"], p["num_carry"]
    if not length or (length <= SHORT and all(not isinstance(x, Field) for x in inputs)):
        return _written_out(scope, equation, inputs)
    inputs = [_ready(scope, x) for x in inputs]
    shared, start, rows = inputs[:nc], inputs[nc : nc + nk], [stored(scope, x) if x.shape[0] else x for x in inputs[nc + nk :]]
    held = [Held(scope, v.aval, v.aval.size > scope.small or isinstance(x, Field), OWN) for v, x in zip(body.outvars[:nk], start, strict=True)]
    for h, x in zip(held, start, strict=True):
        h.set(scope, x)
    kept = [allocate(scope, v.aval.shape, v.aval.dtype, OWN) for v in equation.outvars[nk:]]
    with scope.loop(length) as (inner, i):
        k = inner.builder.sub(i.type(length - 1), i) if back else i
        out = run(inner, body, [*shared, *(h.get(inner) for h in held), *(row_of(inner, x, k) for x in rows)])
        for target, x in zip(kept, out[nk:], strict=True):
            fill(inner, target.part(inner, k), x)
        replace(inner, held, out[:nk])
    return [*(h.settled(scope) for h in held), *kept]


def _written_out(scope: Scope, equation, inputs: list[np.ndarray]) -> list[Array]:
    """A short loop without the loop: what is known of its rows is folded."""
    p = equation.params
    nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
    shared, carry, rows = inputs[:nc], inputs[nc : nc + nk], inputs[nc + nk :]
    kept: list[list] = [[] for _ in equation.outvars[nk:]]
    for k in reversed(range(p["length"])) if p["reverse"] else range(p["length"]):
        row = [x[k] if isinstance(x[k], np.ndarray) else array_of([x[k]], ()) for x in rows]
        out = run(scope, body, [*shared, *carry, *row])
        carry = out[:nk]
        for values, x in zip(kept, out[nk:], strict=True):
            values.append(lanes(scope, x))
    if not p["length"]:
        return [*carry, *(array_of([], v.aval.shape) for v in equation.outvars[nk:])]
    return [*carry, *(np.stack(values[::-1] if p["reverse"] else values) for values in kept)]


def row_of(scope: Scope, x: Field, k: Any) -> Array:
    """One entry along the first axis: lanes if it is small."""
    shape = x.shape[1:]
    if int(np.prod(shape)) > scope.small:
        part = x.part(scope, k) if isinstance(x, Stored) else Formula(shape, x.dtype, OWN, lambda inner, index: x.at(inner, (k, *index)))
        return stored(scope, part) if spread(k) else part
    return array_of([x.at(scope, (k, *index)) for index in np.ndindex(*shape)], shape)


@rule("cond")
def _cond(scope: Scope, equation, inputs):
    branches, which = equation.params["branches"], entry(scope, inputs[0], ())
    arguments = [_ready(scope, x) for x in inputs[1:]]
    last = len(branches) - 1
    if constant(which):
        return run(scope, branches[int(np.clip(int(which), 0, last))], arguments)
    if is_shared(inputs, scope):
        return relabelled(_cond(scope.shared(), equation, inputs))
    avals = [v.aval for v in equation.outvars]
    alike = which.level >= SAME
    held = [Held(scope, aval, aval.size > scope.small, SAME if alike and all(array_level(x) >= SAME for x in arguments) else OWN) for aval in avals]
    builder = scope.builder
    for k, branch in enumerate(branches):
        wants = _wants(scope, which, k, last)
        with builder.if_then(first_of(scope.code, wants, 1) if alike else somewhere(scope.code, wants.value)):
            inner = scope.inside()
            out = run(inner, branch, arguments)
            # The first branch leaves nothing behind for others to keep, and an unset variable must not be read.
            replace(inner, held, out, None if alike else wants) if k else _begin(inner, held, out)
        if k == 0 and not alike:
            with builder.if_then(builder.not_(somewhere(scope.code, wants.value))):
                for h in held:
                    h.set(scope.inside(), array_of([h.dtype.type(0)] * int(np.prod(h.shape)), h.shape))
    return [h.settled(scope) for h in held]


def _begin(scope: Scope, held: Sequence[Held], out: Sequence[Array]) -> None:
    for h, x in zip(held, out, strict=True):
        h.set(scope, x)


def _wants(scope: Scope, which: Lane, k: int, last: int) -> Lane:
    """Whether branch k is the one; numbers out of range mean the first or the last."""
    if which.dtype.kind == "b":
        return which if k else scope.lane("not", [which])
    number = which.dtype.type(k)
    if last == 0:
        return scope.lane("eq", [which, which])
    return scope.lane("le" if k == 0 else "ge" if k == last else "eq", [which, number])
