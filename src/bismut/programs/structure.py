"""Questions about a program: what it consists of, what it costs, what reaches what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bismut.programs.operation import lookup
from bismut.programs.program import CALL, LOOPS, Equation, Literal, Program

Through = Callable[[Equation, list[bool]], list[bool]]


def equations(program: Program) -> Iterator[Equation]:
    """All equations, those inside others too."""
    for equation in program.eqns:
        yield equation
        for inner in equation.programs:
            yield from equations(inner)


def constants(program: Program) -> Iterator[Any]:
    """All values that are known in a program and in those inside it: its constants, and those where they are used."""
    inside = [inner for equation in equations(program) for inner in equation.programs]
    for one in (program, *inside):
        yield from one.consts
        yield from (atom.val for atoms in (one.outvars, *(e.invars for e in one.eqns)) for atom in atoms if isinstance(atom, Literal))


def operation_count(program: Program) -> int:
    """The number of scalar operations a program stands for, a loop counted once."""
    return sum(lookup(equation.primitive.name).cost(equation) for equation in equations(program))


def items(equation: Equation) -> int:
    """How often a loop over bodies goes around."""
    layout = equation.params["layout"]
    return layout.length if equation.primitive.name == "each" else layout.pairs


def expanded_count(program: Program) -> int:
    """The same with loops over bodies counted as often as they go around."""
    return sum(_expanded(equation) for equation in program.eqns)


def _expanded(equation: Equation) -> int:
    if not equation.programs:
        return lookup(equation.primitive.name).cost(equation)
    rounds = items(equation) if equation.primitive.name in LOOPS else 1
    return rounds * sum(map(expanded_count, equation.programs))


def largest(program: Program) -> int:
    """The bytes of the largest array that an equation gives."""
    return max((v.aval.size * v.aval.dtype.itemsize for equation in equations(program) for v in equation.outvars), default=1)


def reached(program: Program, inputs: Sequence[bool], through: Through | None = None) -> list[bool]:
    """Which outputs the marked inputs reach. `through` says it for an equation and its marked inputs; by default all outputs, of a call those that
    are reached in it."""
    marked = {v for v, mark in zip(program.invars, inputs, strict=True) if mark}
    for equation in program.eqns:
        marks = [not isinstance(v, Literal) and v in marked for v in equation.invars]
        if not any(marks):
            continue
        if through is not None:
            after = through(equation, marks)
        elif equation.primitive.name == CALL:
            after = reached(equation.params["jaxpr"], marks)
        else:
            after = [True] * len(equation.outvars)
        marked.update(v for v, mark in zip(equation.outvars, after, strict=True) if mark)
    return [not isinstance(v, Literal) and v in marked for v in program.outvars]
