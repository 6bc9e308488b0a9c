"""Functions as programs of ours: what JAX traces is read once, by one file (`jaxprs`), and everyone else reads what that gives."""

from bismut.programs.jaxprs import Traced, as_function, bind, closed_over, expansion, separated, trace
from bismut.programs.layout import Bonds, Layout, Reach
from bismut.programs.program import CALL, LOOPS, Aval, Equation, Literal, Primitive, Program, Refused
from bismut.programs.pruning import pruned
from bismut.programs.structure import constants, equations, largest, operations, reached

__all__ = [
    "CALL",
    "LOOPS",
    "Aval",
    "Bonds",
    "Equation",
    "Layout",
    "Literal",
    "Primitive",
    "Program",
    "Reach",
    "Refused",
    "Traced",
    "as_function",
    "bind",
    "closed_over",
    "constants",
    "equations",
    "expansion",
    "largest",
    "operations",
    "pruned",
    "reached",
    "separated",
    "trace",
]
