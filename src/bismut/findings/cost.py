"""Work, counted in operations and never timed.

    seconds of a budget  =  trajectories × steps × operations of a step / RATE

so that equal measurements come out equal on a machine that is busy, slow or fast. Operations are those of the program of a step, loops as often as
they run. They are known to about a factor of four: constants are folded, and some operations take longer than others.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.programs import Equation, Program, trace

RATE = 5e10  # operations a second, of two quiet cores; 25, 77 and 38 a nanosecond measured on one, of a pendulum, a top and eight dipoles
_BY_XLA = 5  # times as long where XLA computes
_TURNS = 4  # of a loop that runs until convergence
_NEAR = 64.0  # bodies within reach of one another, where a cell list is used


def step_operations(scheme: Scheme, state: State) -> float:
    """Scalar operations of one step of one trajectory."""
    dtype = scheme.system.dtype
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), State(state.q, state.p))
    number = jax.ShapeDtypeStruct((), dtype)
    increments = jax.ShapeDtypeStruct((scheme.channels,), dtype)
    return operations_of(trace(lambda *arguments: kernel.one_step(scheme, *arguments), shapes, number, increments, number).program)


def seconds_for(operations: float, mode: str | None = None) -> float:
    """What so many operations take, by the count; `mode` is the engine that does them."""
    return operations * (_BY_XLA if mode == "xla" else 1) / RATE


def operations_of(program: Program, near: float = _NEAR) -> float:
    """Scalar operations, those in loops as often as these run, with so many bodies near one another where there is a cutoff."""
    return float(sum(_of_equation(equation, near) for equation in program.eqns))


def _of_equation(equation: Equation, near: float) -> float:
    name, parameters = equation.primitive.name, equation.params
    inner = [operations_of(part, near) for part in equation.programs]
    if inner:
        return max(inner) if name == "cond" else _repeated(name, parameters, near) * sum(inner)
    size = sum(v.aval.size for v in equation.outvars)
    if name == "dot_general":
        (left, _), _ = parameters["dimension_numbers"]
        size *= int(np.prod([equation.invars[0].aval.shape[k] for k in left]))
    return float(size)


def _repeated(name: str, parameters: dict[str, Any], near: float) -> float:
    """How often the inside of an equation runs."""
    if name == "scan":
        return float(parameters["length"])
    if name not in ("each", "pairs"):
        return float(_TURNS if name == "while" else 1)
    layout = parameters["layout"]
    if name == "each":
        return float(layout.length)
    if layout.bonds is not None:
        return float(len(layout.bonds.i))
    return 0.5 * layout.length * min(layout.length - 1, near if layout.reach is not None else layout.length)
