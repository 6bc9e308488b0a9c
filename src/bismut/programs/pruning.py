"""A program without what is never read.

An equation stays if one of its results is used or if it has effects; of calls, loops and branches only those results stay that are used, and with
them the inputs and the work that lead there: of the derivative of an energy not the energy, of a loop not the number that is only counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from bismut.programs.program import CALL, LOOPS, Equation, Literal, Program

Used = list[bool]
Memo = dict[tuple[int, tuple[bool, ...]], tuple[Program, Used]]


def pruned(program: Program, used: Sequence[bool] | None = None) -> Program:
    """The program that gives the used outputs, by default all, from the same inputs."""
    return _live(program, [True] * len(program.outvars) if used is None else list(used), {})[0]


def _live(program: Program, used: Used, memo: Memo) -> tuple[Program, Used]:
    """The program with the used outputs alone, and which of its inputs are read. One that occurs twice stays one."""
    key = (id(program), tuple(used))
    if key in memo:
        return memo[key]
    outvars = list(compress(program.outvars, used))
    wanted = {v for v in outvars if not isinstance(v, Literal)}
    eqns: list[Equation] = []
    for equation in reversed(program.eqns):
        marks = [v in wanted for v in equation.outvars]
        if not any(marks) and not equation.effects:
            continue
        rule = _RULES.get(equation.primitive.name)
        slim = equation if rule is None or equation.effects or not equation.programs else rule(equation, marks, memo)
        eqns.append(slim)
        wanted.update(v for v in slim.invars if not isinstance(v, Literal))
    known = [v in wanted for v in program.constvars]
    new = Program(program.invars, outvars, eqns[::-1], list(compress(program.constvars, known)), list(compress(program.consts, known)))
    memo[key] = new, [v in wanted for v in program.invars]
    return memo[key]


def _cut(program: Program, inputs: Sequence[bool]) -> Program:
    """The program without inputs that it does not read."""
    if all(inputs):
        return program
    return Program(list(compress(program.invars, inputs)), program.outvars, program.eqns, program.constvars, program.consts)


def _call(equation: Equation, used: Used, memo: Memo) -> Equation:
    inner, reads = _live(equation.params["jaxpr"], used, memo)
    return equation.restricted(reads, used, jaxpr=_cut(inner, reads))


def _cond(equation: Equation, used: Used, memo: Memo) -> Equation:
    parts = [_live(branch, used, memo) for branch in equation.params["branches"]]
    reads = [any(marks) for marks in zip(*(marks for _, marks in parts), strict=True)]
    return equation.restricted([True, *reads], used, branches=tuple(_cut(branch, reads) for branch, _ in parts))


def _scan(equation: Equation, used: Used, memo: Memo) -> Equation:
    p = equation.params
    nc, nk = p["num_consts"], p["num_carry"]
    carry, rows = used[:nk], used[nk:]
    while True:  # what a carry that is used depends on is used
        body, reads = _live(p["jaxpr"], [*carry, *rows], memo)
        more = [a or b for a, b in zip(carry, reads[nc : nc + nk], strict=True)]
        if more == carry:
            break
        carry = more
    reads = [*reads[:nc], *carry, *reads[nc + nk :]]
    return equation.restricted(reads, [*carry, *rows], jaxpr=_cut(body, reads), num_consts=sum(reads[:nc]), num_carry=sum(carry))


def _while(equation: Equation, used: Used, memo: Memo) -> Equation:
    p = equation.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    cond, asked = _live(p["cond_jaxpr"], [True], memo)
    carry = [a or b for a, b in zip(used, asked[nc:], strict=True)]
    while True:
        body, reads = _live(p["body_jaxpr"], carry, memo)
        more = [a or b for a, b in zip(carry, reads[nb:], strict=True)]
        if more == carry:
            break
        carry = more
    for_cond, for_body = asked[:nc], reads[:nb]
    params = {
        "cond_jaxpr": _cut(cond, [*for_cond, *carry]),
        "body_jaxpr": _cut(body, [*for_body, *carry]),
        "cond_nconsts": sum(for_cond),
        "body_nconsts": sum(for_body),
    }
    return equation.restricted([*for_cond, *for_body, *carry], carry, **params)


def _loop(equation: Equation, used: Used, memo: Memo) -> Equation:
    layout = equation.params["layout"]
    item, arguments = _live(equation.params["jaxpr"], layout.wanted(used), memo)
    reads, new = layout.pruned(used, arguments)
    return equation.restricted(reads, used, jaxpr=_cut(item, layout.spread(reads)), layout=new)


_RULES = {CALL: _call, "cond": _cond, "scan": _scan, "while": _while, **dict.fromkeys(LOOPS, _loop)}
