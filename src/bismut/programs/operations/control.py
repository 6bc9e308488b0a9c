"""Calls, loops and branches.

Trajectories run side by side, so a loop goes on until the last of them has finished, and a branch is taken if one of them wants it; those that have
finished, or want another branch, keep what they had. What a trajectory gets does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bismut.programs.codegen.elementary.formula import Mask
from bismut.programs.codegen.field import Array, Field, allocate, array_level, entry, fill, lanes, stored
from bismut.programs.codegen.frame import IN_LOOPS, Scope
from bismut.programs.codegen.lane import OWN, SAME, Lane, array_of, constant, first_of, value_of
from bismut.programs.codegen.loop_carry import LoopCarry, is_shared, keep, ready, relabelled, replace, row_of
from bismut.programs.codegen.walk import run
from bismut.programs.evaluation import run as run_numpy
from bismut.programs.operation import Operation, operation
from bismut.programs.program import CALL
from bismut.programs.structure import reached

SHORT = 5  # rounds up to which a loop over rows is written out


@operation(CALL)
class _Call(Operation):
    hands_on = True

    def evaluate(self, equation, inputs):
        return run_numpy(equation.params["jaxpr"], inputs)

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if equation.params.get("loops"):  # over memory: written out it would be thousands of operations
            scope = Scope(scope.frame, scope.code, IN_LOOPS, scope, scope.hoists, scope.wide)
        return run(scope, equation.params["jaxpr"], inputs)


@operation("while")
class _While(Operation):
    overwrites = True

    def evaluate(self, equation, inputs):
        p = equation.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        for_cond, for_body, carry = inputs[:first], inputs[first:second], inputs[second:]
        while np.any(on := np.asarray(run_numpy(p["cond_jaxpr"], [*for_cond, *carry])[0])):
            new = run_numpy(p["body_jaxpr"], [*for_body, *carry])
            # Of many at once, those that have finished keep what they had.
            at = lambda x, on=on: on.reshape(*on.shape, *[1] * (np.ndim(x) - on.ndim))
            carry = [np.where(at(x), x, old) for x, old in zip(new, carry, strict=True)] if on.ndim else new
        return carry

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if is_shared(inputs, scope):
            return relabelled(self.emit(scope.shared(), equation, inputs))
        p = equation.params
        nc, nb = p["cond_nconsts"], p["body_nconsts"]
        cond, body = p["cond_jaxpr"], p["body_jaxpr"]
        inputs = [ready(scope, x) for x in inputs]
        for_cond, for_body, start = [*map(keep, inputs[:nc])], [*map(keep, inputs[nc : nc + nb])], inputs[nc + nb :]
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
        carries = [
            LoopCarry(scope, v.aval, v.aval.size > scope.small or isinstance(x, Field), OWN if mark else SAME, over=x)
            for v, x, mark in zip(body.outvars, start, own, strict=True)
        ]
        for h, x in zip(carries, start, strict=True):
            h.set(scope, x)
        builder = scope.builder
        on = None if alike else LoopCarry(scope, wanted, memory=False, level=OWN)

        def going(at: Scope, before: Array | None = None):
            """One bit: whether any lane goes on, of those that did before."""
            conditions = lanes(at, run(at, cond, [*for_cond, *(h.get(at) for h in carries)])[0])
            if on is None:
                return first_of(at.code, conditions[()], 1)
            if before is not None:
                conditions = array_of([at.lane("and", list(both)) for both in zip(before.flat, conditions.flat, strict=True)], wanted.shape)
            on.set(at, conditions)
            anyone: Any = np.bool_(False)
            for lane in conditions.flat:
                anyone = at.lane("or", [anyone, lane])
            return Mask(at.code, value_of(at.code, anyone, bool)).somewhere()

        first = going(scope.inside())
        loop, done = builder.append_basic_block("while"), builder.append_basic_block("done")
        builder.cbranch(first, loop, done)
        builder.position_at_end(loop)
        inner = scope.inside()
        new = run(inner, body, [*for_body, *(h.lend(inner) if on is None else h.get(inner) for h in carries)])
        replace(inner, carries, new, None if on is None else on.get(inner))
        after = scope.inside()
        builder.cbranch(going(after, None if on is None else on.get(after)), loop, done)
        builder.position_at_end(done)
        return [h.lend(scope) for h in carries]


@operation("scan")
class _Scan(Operation):
    def evaluate(self, equation, inputs):
        p = equation.params
        first, second = p["num_consts"], p["num_consts"] + p["num_carry"]
        shared, carry, rows = inputs[:first], inputs[first:second], inputs[second:]
        order = range(p["length"])
        outputs: dict[int, list] = {}
        for k in reversed(order) if p["reverse"] else order:
            out = run_numpy(p["jaxpr"], [*shared, *carry, *(row[k] for row in rows)])
            carry, outputs[k] = out[: len(carry)], out[len(carry) :]
        empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in p["jaxpr"].out_avals[len(carry) :]]
        return [*carry, *(np.stack([outputs[k][i] for k in order]) if order else none for i, none in enumerate(empty))]

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if is_shared(inputs, scope):
            return relabelled(self.emit(scope.shared(), equation, inputs))
        p = equation.params
        length, body, back = p["length"], p["jaxpr"], p["reverse"]
        nc, nk = p["num_consts"], p["num_carry"]
        if not length or (length <= SHORT and all(not isinstance(x, Field) for x in inputs)):
            return _written_out(scope, equation, inputs)
        inputs = [ready(scope, x) for x in inputs]
        shared, start, rows = inputs[:nc], inputs[nc : nc + nk], [stored(scope, x) if x.shape[0] else x for x in inputs[nc + nk :]]
        carries = [
            LoopCarry(scope, v.aval, v.aval.size > scope.small or isinstance(x, Field), OWN) for v, x in zip(body.outvars[:nk], start, strict=True)
        ]
        for h, x in zip(carries, start, strict=True):
            h.set(scope, x)
        stacked = [allocate(scope, v.aval.shape, v.aval.dtype, OWN) for v in equation.outvars[nk:]]
        with scope.loop(length) as (inner, i):
            k = inner.builder.sub(i.type(length - 1), i) if back else i
            out = run(inner, body, [*shared, *(h.get(inner) for h in carries), *(row_of(inner, x, k) for x in rows)])
            for target, x in zip(stacked, out[nk:], strict=True):
                fill(inner, target.part(inner, k), x)
            replace(inner, carries, out[:nk])
        return [*(h.get(scope) for h in carries), *stacked]


def _written_out(scope: Scope, equation, inputs: list[np.ndarray]) -> list[Array]:
    """A short loop without the loop: what is known of its rows is folded."""
    p = equation.params
    nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
    shared, carry, rows = inputs[:nc], inputs[nc : nc + nk], inputs[nc + nk :]
    stacked: list[list] = [[] for _ in equation.outvars[nk:]]
    for k in reversed(range(p["length"])) if p["reverse"] else range(p["length"]):
        row = [x[k] if isinstance(x[k], np.ndarray) else array_of([x[k]], ()) for x in rows]
        out = run(scope, body, [*shared, *carry, *row])
        carry = out[:nk]
        for values, x in zip(stacked, out[nk:], strict=True):
            values.append(lanes(scope, x))
    if not p["length"]:
        return [*carry, *(array_of([], v.aval.shape) for v in equation.outvars[nk:])]
    return [*carry, *(np.stack(values[::-1] if p["reverse"] else values) for values in stacked)]


@operation("cond")
class _Cond(Operation):
    def evaluate(self, equation, inputs):
        which, branches = int(inputs[0]), equation.params["branches"]
        return run_numpy(branches[min(max(which, 0), len(branches) - 1)], inputs[1:])

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        branches, which = equation.params["branches"], entry(scope, inputs[0], ())
        arguments = [ready(scope, x) for x in inputs[1:]]
        last = len(branches) - 1
        if constant(which):
            return run(scope, branches[int(np.clip(int(which), 0, last))], arguments)
        if is_shared(inputs, scope):
            return relabelled(self.emit(scope.shared(), equation, inputs))
        avals = [v.aval for v in equation.outvars]
        alike = which.level >= SAME
        carries = [
            LoopCarry(scope, aval, aval.size > scope.small, SAME if alike and all(array_level(x) >= SAME for x in arguments) else OWN)
            for aval in avals
        ]
        builder = scope.builder
        for k, branch in enumerate(branches):
            wants = _wants(scope, which, k, last)
            with builder.if_then(first_of(scope.code, wants, 1) if alike else Mask(scope.code, wants.value).somewhere()):
                inner = scope.inside()
                out = run(inner, branch, arguments)
                # The first branch leaves nothing behind for others to keep, and an unset variable must not be read.
                replace(inner, carries, out, None if alike else wants) if k else _begin(inner, carries, out)
            if k == 0 and not alike:
                with builder.if_then(builder.not_(Mask(scope.code, wants.value).somewhere())):
                    for h in carries:
                        h.set(scope.inside(), array_of([h.dtype.type(0)] * int(np.prod(h.shape)), h.shape))
        return [h.get(scope) for h in carries]


def _begin(scope: Scope, carries: Sequence[LoopCarry], out: Sequence[Array]) -> None:
    for h, x in zip(carries, out, strict=True):
        h.set(scope, x)


def _wants(scope: Scope, which: Lane, k: int, last: int) -> Lane:
    """Whether branch k is the one; numbers out of range mean the first or the last."""
    if which.dtype.kind == "b":
        return which if k else scope.lane("not", [which])
    number = which.dtype.type(k)
    if last == 0:
        return scope.lane("eq", [which, which])
    return scope.lane("le" if k == 0 else "ge" if k == last else "eq", [which, number])
