"""Functions as programs of ours: what JAX traces is read once, by one file (`jaxprs`), and everyone else reads what that gives."""

from bismut.programs.jaxprs import TracedFunction, as_function, bind, closed_over, custom_gradients, expansion, may_lack_gradient, separated, trace
from bismut.programs.layout import Bonds, LoopLayout, Reach
from bismut.programs.operations import (
    arithmetic,
    bessel,
    body_loops,
    control,
    gamma,
    gather_scatter,
    incomplete,
    keys,
    linear_algebra,
    logic,
    reductions,
    shaping,
    sorting,
    windows,
)
from bismut.programs.program import CALL, LOOPS, Equation, Literal, Program, Refused
from bismut.programs.structure import constants, equations, expanded_count, items, largest, operation_count, reached

__all__ = [
    "CALL",
    "LOOPS",
    "Bonds",
    "Equation",
    "Literal",
    "LoopLayout",
    "Program",
    "Reach",
    "Refused",
    "TracedFunction",
    "as_function",
    "bind",
    "closed_over",
    "constants",
    "custom_gradients",
    "equations",
    "expanded_count",
    "expansion",
    "items",
    "largest",
    "may_lack_gradient",
    "operation_count",
    "reached",
    "separated",
    "trace",
]
