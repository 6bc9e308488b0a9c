"""What a function depends on, read off its program.

    depends(f, x, rest) is False   ⟹   f does not change with x
    affine(f, x) is True           ⟹   f(x) = A x + b, because every operation that x reaches is known to be affine in what it is given

The answer is structural: no numbers are tried. It is how a scheme finds out by itself that its equation is linear, or explicit, or splits
into bodies, instead of being told. "Depends" and "not affine" only mean that the opposite is not evident: what is unknown counts as the worst.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.jaxprs import trace
from bismut.programs.operation import lookup
from bismut.programs.program import CALL, LOOPS, Equation, Refused
from bismut.programs.structure import constants, reached
from bismut.tracing import traced


def depends(function: Callable, x, *rest) -> bool:
    """Whether any output of function(x, *rest) can depend on x."""
    try:
        program = trace(function, x, *rest).program
    except Refused:
        return True
    count = len(jax.tree.leaves(x))
    return any(reached(program, [i < count for i in range(len(program.invars))], _Through()))


def affine(function: Callable, x) -> bool:
    """Whether function(x) is evidently affine in x."""
    through = _Through()
    try:
        program = trace(function, x).program
    except Refused:
        return False
    reached(program, [True] * len(program.invars), through)
    return not through.bent


def holds_infinity(function: Callable, *arguments) -> bool:
    """Whether an infinite number is among the constants of a function."""
    try:
        program = trace(function, *arguments).program
    except Refused:
        return True
    return any(map(infinite, constants(program)))


def infinite(value) -> bool:
    """Whether any entry of an array is infinite; False of one that JAX traces."""
    if traced(value) or not jnp.issubdtype(jnp.result_type(value), jnp.floating):
        return False
    return bool(np.isinf(np.asarray(value)).any())


class _Through:
    """Which outputs of an equation its marked inputs reach; names of operations on the way that are not evidently affine are noted."""

    def __init__(self) -> None:
        self.bent: list[str] = []

    def __call__(self, equation: Equation, inputs: list[bool]) -> list[bool]:
        name = equation.primitive.name
        if name in LOOPS:  # items that do not know of each other
            layout = equation.params["layout"]
            return layout.joined(reached(equation.params["jaxpr"], layout.spread(inputs), self))
        if name == CALL:
            # One with a derivative of its own is looked into for what it depends on; whether it is affine its text does not say, because a step
            # is solved with the derivative.
            if equation.params["custom"]:
                self.bent.append(equation.params["name"])
            return reached(equation.params["jaxpr"], inputs, self)
        if not lookup(name).affine(equation, inputs):
            self.bent.append(name)
        return [True] * len(equation.outvars)  # anything with control flow counts as depending on all it is given
